//! `UrlFilter` for Python.
//!
//! A URL may need a new layer, so the whole filter sits behind one lock.

mod goal;

use crate::errors::{in_row, nothing_added};
use crate::key::with_text;
use crate::keys::Needs;
use crate::records::stats_record;
use crate::structure::prelude::*;
use bloomtide_core::filters::{PrefixCount, READ_FIRST};
use bloomtide_core::{Canon, Key, UrlFilter as Core, UrlPlan, canonical};
use goal::{SIZING, from_record, plan_of, sizes_object, to_record};
use pyo3::types::PyList;
use std::sync::{Mutex, PoisonError};

/// For verbs that have no use for digests.
const NO_HASHER: Hasher = Hasher::Xxh3 { seed: 0 };

/// URLs that were seen, with a layer for each depth: whole URLs, hosts and directories can be asked for.
#[pyclass(frozen, module = "bloomtide")]
pub(crate) struct UrlFilter {
    core: Locked<Core>,
    plan: UrlPlan,
    hasher: Hasher,
}

locked!(UrlFilter, Core, |_this, py, made| UrlFilter::new(made));
whole!(UrlFilter);
merged!(UrlFilter);
loaded!(UrlFilter, Url);

impl UrlFilter {
    pub(crate) fn new(core: Core) -> Self {
        let (plan, hasher) = (core.plan().clone(), *core.hasher());
        UrlFilter { core: Locked::new(core), plan, hasher }
    }
}

/// What `then` makes of a URL's bytes.
fn with_url<T>(url: &Bound<'_, PyAny>, then: impl FnOnce(&[u8]) -> Result<T>) -> PyResult<T> {
    let outcome = with_text(url, None, |key| match key {
        Key::Text(bytes) | Key::Bytes(bytes) => then(bytes),
        _ => then(&[]),
    })?;
    outcome.or_raise(url.py())
}

fn is_sequence(keys: &Bound<'_, PyAny>) -> bool {
    keys.is_exact_instance_of::<PyList>() || keys.is_exact_instance_of::<PyTuple>()
}

/// Refuses the first item of a list or tuple that is no URL. Reads the items where they are, while a batch that
/// lets go of the interpreter would copy them.
fn check_items(keys: &Bound<'_, PyAny>, options: Options) -> PyResult<()> {
    /// Items after which other Python threads may go on.
    const TURN: usize = 1 << 15;
    let py = keys.py();
    let mut buffer = Vec::new();
    for (row, key) in keys.try_iter()?.enumerate() {
        let key = key?;
        if key.is_none() && options.skip_nulls {
            continue;
        }
        let outcome = with_text(&key, Some(row), |key| match key {
            Key::Text(url) | Key::Bytes(url) => {
                canonical(url, &Canon::default(), &mut buffer).map(|_| ())
            }
            _ => Ok(()),
        })?;
        outcome.map_err(|error| in_row(py, to_python(py, error), row))?;
        if row % TURN == TURN - 1 {
            py.detach(|| ());
        }
    }
    Ok(())
}

#[pymethods]
impl UrlFilter {
    #[new]
    #[pyo3(
        signature = (capacity, error_rate=None, max_layers=None, **words),
        text_signature = "(capacity, error_rate=0.01, max_layers=8, *, layer_sizes=None, paper=None, hash='xxh3', seed=0, secret=None)"
    )]
    fn py_new<'py>(
        py: Python<'py>,
        capacity: &Bound<'py, PyAny>,
        error_rate: Option<&Bound<'py, PyAny>>,
        max_layers: Option<&Bound<'py, PyAny>>,
        words: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        let words = Words::new(py, words, &[SIZING, HASHING])?;
        let plan = plan_of(&words, capacity, error_rate, max_layers)?;
        Ok(UrlFilter::new(Core::new(plan, words.hasher()?).or_raise(py)?))
    }

    /// Sizes and predicted error for a goal, with every layer there may be; allocates nothing.
    #[classmethod]
    #[pyo3(
        signature = (capacity, error_rate=None, max_layers=None, **words),
        text_signature = "($type, capacity, error_rate=0.01, max_layers=8, *, layer_sizes=None, paper=None)"
    )]
    fn plan<'py>(
        cls: &Bound<'py, PyType>,
        capacity: &Bound<'py, PyAny>,
        error_rate: Option<&Bound<'py, PyAny>>,
        max_layers: Option<&Bound<'py, PyAny>>,
        words: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let words = Words::new(cls.py(), words, &[SIZING])?;
        to_record(cls.py(), &plan_of(&words, capacity, error_rate, max_layers)?)
    }

    /// An empty filter with a plan's goals.
    #[classmethod]
    #[pyo3(signature = (plan, *, hash="xxh3", seed=0, secret=None))]
    fn from_plan(
        cls: &Bound<'_, PyType>,
        plan: &Bound<'_, PyAny>,
        hash: &str,
        seed: i128,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = cls.py();
        let plan = from_record(py, plan)?;
        let hasher = params::hasher(py, hash, seed, secret)?;
        Ok(UrlFilter::new(Core::new(plan, hasher).or_raise(py)?))
    }

    /// Distinct prefixes of each depth among these URLs, counted exactly: a list for `layer_sizes`.
    #[staticmethod]
    #[pyo3(signature = (urls, max_layers=None, *, nulls="refuse"), text_signature = "(urls, max_layers=8, *, nulls='refuse')")]
    fn measure(
        urls: &Bound<'_, PyAny>,
        max_layers: Option<&Bound<'_, PyAny>>,
        nulls: &str,
    ) -> PyResult<Vec<u64>> {
        let py = urls.py();
        let max_layers = goal::layers_of(max_layers)?;
        let counted = PrefixCount::new(max_layers).or_raise(py)?;
        let counted = Mutex::new(counted);
        let count = |part: Part<'_>, _: &mut [()], _: &mut Crew| {
            let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
            counted.add_many(part.keys).map_err(|error| (0, error))
        };
        let verb = Verb::new(&NO_HASHER, &count).needs(Needs::Texts);
        keys::answers(&verb, urls, Options::parse(py, nulls, 1)?)?;
        Ok(counted.into_inner().unwrap_or_else(PoisonError::into_inner).counts())
    }

    /// Adds the URL with all its prefixes; True iff it was certainly absent before.
    #[pyo3(signature = (url, /))]
    fn add(&self, url: &Bound<'_, PyAny>) -> PyResult<bool> {
        with_url(url, |url| self.write().add(url))
    }

    /// Adds every URL in order; a NumPy array of what `add` would have answered.
    ///
    /// A batch with something that is no URL changes nothing; one that can be gone through only once is
    /// taken in parts, and what went in before the part with the bad URL stays.
    #[pyo3(signature = (keys, *, nulls="refuse", threads=1))]
    fn add_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        nulls: &str,
        threads: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = keys.py();
        let options = Options::parse(py, nulls, threads)?;
        let checked = keys.len().is_ok();
        let check = |part: Part<'_>, _: &mut [()], crew: &mut Crew| {
            Core::check_many(part.keys, crew).map_err(|error| (0, error))
        };
        let check = Verb::new(&NO_HASHER, &check).needs(Needs::Texts);
        let outcome = match keys.len() {
            Err(_) => Ok(()),
            Ok(_) if !is_sequence(keys) => keys::answers(&check, keys, options).map(|_| ()),
            // The adding reads so few before it adds one.
            Ok(..=READ_FIRST) => Ok(()),
            Ok(_) => check_items(keys, options),
        };
        if let Err(error) = outcome {
            // A null or what is no text ends the batch where it is, as in every filter: what comes before
            // it goes in. That is for the adding itself to find.
            if error.value(py).getattr("code")?.eq("parameter")? {
                return Err(nothing_added(py, error));
            }
        }
        let add = |part: Part<'_>, out: &mut [bool], crew: &mut Crew| {
            if !checked {
                Core::check_many(part.keys, crew).map_err(|error| (0, error))?;
            }
            self.write().add_many(part.keys, out, crew)
        };
        keys::run(&Verb::new(&self.hasher, &add).needs(Needs::Texts), keys, options)
    }

    fn __contains__(&self, url: &Bound<'_, PyAny>) -> PyResult<bool> {
        with_url(url, |url| self.read().contains(url))
    }

    /// `url in filter` for every URL, as a NumPy array.
    #[pyo3(signature = (keys, *, nulls="refuse", threads=1))]
    fn contains_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        nulls: &str,
        threads: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ask = |part: Part<'_>, out: &mut [bool], crew: &mut Crew| {
            self.read().contains_many(part.keys, out, crew).map_err(|error| (0, error))
        };
        let options = Options::parse(keys.py(), nulls, threads)?;
        keys::run(&Verb::new(&self.hasher, &ask).needs(Needs::Texts), keys, options)
    }

    /// Whether a URL may have been added that begins with the first `depth` segments of this one.
    fn seen_prefix(&self, url: &Bound<'_, PyAny>, depth: &Bound<'_, PyAny>) -> PyResult<bool> {
        let depth = params::small("depth", depth)?;
        with_url(url, |url| self.read().seen_prefix(url, depth))
    }

    /// Whether any URL of this host may have been added: "example.org", "example.org:8080".
    fn seen_host(&self, host: &Bound<'_, PyAny>) -> PyResult<bool> {
        with_url(host, |host| self.read().seen_host(host))
    }

    /// Estimated number of distinct URLs inside, from the fill of X.
    fn estimated_items(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.read().measure().0.items)
    }

    /// Memory and fill of all cells, URLs and error of X; each layer in `layers`, from the root on.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (whole, layers, plans, hashes, bytes, warnings) = py.detach(|| {
            let core = self.read();
            let (whole, layers) = core.measure();
            let plans: Vec<_> = core.layers().iter().map(|layer| *layer.plan()).collect();
            let warnings = core.warnings(&whole, &layers);
            (whole, layers, plans, *core.whole().plan(), core.bytes(), warnings)
        });
        let records = (1u32..)
            .zip(plans.iter().zip(&layers))
            .map(|(depth, (plan, layer))| stats_record(py, plan, layer, Some(depth)))
            .collect::<PyResult<Vec<_>>>()?;
        let (capacity, error_rate) = (Some(self.plan.capacity), Some(self.plan.error_rate));
        let mut sizes =
            Sizes { kind: "url", capacity, error_rate, bytes, ..Sizes::of_bloom(&hashes) };
        sizes.placement.cells += plans.iter().map(|plan| plan.bits).sum::<u64>();
        sizes.stats(py, &whole, |fields| {
            fields.set_item("layers", PyTuple::new(py, records)?)?;
            fields.set_item("warnings", PyTuple::new(py, warnings)?)
        })
    }

    /// The cells of a URL: in each of its layers, from the root on, and at last in X.
    fn positions(&self, url: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<u64>>> {
        with_url(url, |url| self.read().positions(url))
    }

    fn __repr__(&self) -> String {
        let UrlPlan { capacity, error_rate, max_layers, bind, layer_sizes } = &self.plan;
        let (bind, sizes) = (bind.name(), layer_sizes.name());
        let layers = self.read().layers().len();
        format!(
            "<UrlFilter capacity={capacity} error_rate={error_rate} max_layers={max_layers} bind={bind} \
             layer_sizes={sizes} layers={layers}>"
        )
    }

    #[getter]
    fn layer_sizes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        sizes_object(py, &self.plan.layer_sizes)
    }
}

getters!(UrlFilter, this =>
    capacity: u64 = this.plan.capacity;
    error_rate: f64 = this.plan.error_rate;
    max_layers: u32 = this.plan.max_layers;
    bind: &'static str = this.plan.bind.name();
);
