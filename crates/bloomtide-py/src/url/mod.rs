//! `UrlFilter` for Python.
//!
//! A URL may need a new layer, so the whole filter sits behind one lock.

mod goal;

use crate::errors::{in_row, nothing_added};
use crate::key::{plain, with_text};
use crate::keys::Needs;
use crate::records::stats_record;
use crate::structure::prelude::*;
use bloomtide_core::filters::{PrefixCount, READ_FIRST};
use bloomtide_core::url::check;
use bloomtide_core::{Key, UrlFilter as Core, UrlPlan};
use goal::{plan_of, plan_record, sizes_object};
use pyo3::sync::critical_section::with_critical_section;
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
    watch: Watch,
}

behind_lock!(UrlFilter, Core, Url, watched!(););
whole!(UrlFilter);
merged!(UrlFilter);
loaded!(UrlFilter, Url);
planned!(
    UrlFilter,
    Core,
    "(capacity, error_rate=0.01, max_layers=8, *, layer_sizes=None, paper=None, hash='xxh3', seed=0, secret=None)",
    "($type, capacity, error_rate=0.01, max_layers=8, *, layer_sizes=None, paper=None)",
    "($type, plan, *, hash='xxh3', seed=0, secret=None)"
);

impl UrlFilter {
    pub(crate) fn new(core: Core) -> Self {
        let (plan, hasher) = (core.plan().clone(), *core.hasher());
        let watch = Watch::new(Some(plan.capacity));
        UrlFilter { core: Locked::new(core), plan, hasher, watch }
    }
}

/// What `then` makes of a URL's bytes.
fn with_url<T>(url: &Object<'_>, then: impl FnOnce(&[u8]) -> Result<T>) -> PyResult<T> {
    let outcome = with_text(url, None, |key| match key {
        Key::Text(bytes) | Key::Bytes(bytes) => then(bytes),
        _ => then(&[]),
    })?;
    outcome.or_raise(url.py())
}

fn is_sequence(keys: &Object<'_>) -> bool {
    keys.is_exact_instance_of::<PyList>() || keys.is_exact_instance_of::<PyTuple>()
}

/// Refuses the first item of a list or tuple that is no URL. Reads the items where they are, while a batch that
/// lets go of the interpreter would copy them.
fn check_items(keys: &Object<'_>, options: Options) -> PyResult<()> {
    /// Items after which other Python threads may go on.
    const TURN: usize = 1 << 15;
    let py = keys.py();
    let mut buffer = Vec::new();
    let len = keys.len()?;
    let mut check_item = |row: usize, key: &Object<'_>| {
        if key.is_none() && options.skip_nulls {
            return Ok(());
        }
        let outcome = match plain(key) {
            Some(Key::Text(url) | Key::Bytes(url)) => check(url, &mut buffer),
            _ => with_text(key, Some(row), |key| match key {
                Key::Text(url) | Key::Bytes(url) => check(url, &mut buffer),
                _ => Ok(()),
            })?,
        };
        outcome.map_err(|error| in_row(py, to_python(py, error), row))?;
        if row % TURN == TURN - 1 {
            py.detach(|| ());
        }
        Ok(())
    };
    with_critical_section(keys, || keys::each_item(keys, 0..len, len, &mut check_item))
}

#[pymethods]
impl UrlFilter {
    /// Distinct prefixes of each depth among these URLs, counted exactly: a list for `layer_sizes`.
    #[staticmethod]
    #[pyo3(signature = (urls, max_layers=None, *, nulls="refuse"), text_signature = "(urls, max_layers=8, *, nulls='refuse')")]
    fn measure(
        urls: &Object<'_>,
        max_layers: Option<&Object<'_>>,
        nulls: &str,
    ) -> PyResult<Vec<u64>> {
        let py = urls.py();
        let max_layers = goal::layers_of(max_layers)?;
        let counted = PrefixCount::new(max_layers).or_raise(py)?;
        let counted = Mutex::new(counted);
        let count = |part: Part<'_>, _: &mut [()], _: &mut Crew| {
            locked(&counted).add_many(part.keys).map_err(|error| (0, error))
        };
        let verb = Verb::new(&NO_HASHER, &count).needs(Needs::Texts);
        keys::answers(&verb, urls, Options::parse(py, nulls)?)?;
        Ok(counted.into_inner().unwrap_or_else(PoisonError::into_inner).counts())
    }

    /// Adds the URL with all its prefixes; True iff it was certainly absent before.
    #[pyo3(signature = (url, /, *more), text_signature = "($self, url, /)")]
    fn add(&self, url: &Object<'_>, more: &Bound<'_, PyTuple>) -> PyResult<bool> {
        params::refuse_more(url.py(), "count", more)?;
        let new = with_url(url, |url| self.write().add(url))?;
        if new && self.watch.is_due_after_one() {
            self.look(url.py())?;
        }
        Ok(new)
    }

    /// Adds every URL in order; a NumPy array of what `add` would have answered.
    ///
    /// A batch with something that is no URL changes nothing; one that can be gone through only once is
    /// taken in parts, and what went in before the part with the bad URL stays.
    #[pyo3(signature = (keys, *more, **options))]
    #[pyo3(text_signature = "($self, keys, *, nulls='refuse', threads=1)")]
    fn add_many<'py>(
        &self,
        keys: &Object<'py>,
        more: &Bound<'py, PyTuple>,
        options: Option<&Dict<'py>>,
    ) -> Answer<'py> {
        params::refuse_more(keys.py(), "counts", more)?;
        let py = keys.py();
        let options = Options::of(py, options)?;
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
            // So is a list that has changed meanwhile.
            let code = error.value(py).getattr("code");
            if code.and_then(|code| code.eq("parameter")).unwrap_or(false) {
                return Err(nothing_added(py, error));
            }
        }
        let add = |part: Part<'_>, out: &mut [bool], crew: &mut Crew| {
            if !checked {
                Core::check_many(part.keys, crew).map_err(|error| (0, error))?;
            }
            self.write().add_many(part.keys, out, crew)
        };
        let answers = keys::run(&Verb::new(&self.hasher, &add).needs(Needs::Texts), keys, options)?;
        self.look_after(py, answers.len()?)?;
        Ok(answers)
    }

    fn __contains__(&self, url: &Object<'_>) -> PyResult<bool> {
        with_url(url, |url| self.read().contains(url))
    }

    /// `url in filter` for every URL, as a NumPy array.
    #[pyo3(signature = (keys, **options))]
    #[pyo3(text_signature = "($self, keys, *, nulls='refuse', threads=1)")]
    fn contains_many<'py>(&self, keys: &Object<'py>, options: Option<&Dict<'py>>) -> Answer<'py> {
        let ask = |part: Part<'_>, out: &mut [bool], crew: &mut Crew| {
            self.read().contains_many(part.keys, out, crew).map_err(|error| (0, error))
        };
        let options = Options::of(keys.py(), options)?;
        keys::run(&Verb::new(&self.hasher, &ask).needs(Needs::Texts), keys, options)
    }

    /// Whether a URL may have been added that begins with the first `depth` segments of this one.
    fn seen_prefix(&self, url: &Object<'_>, depth: &Object<'_>) -> PyResult<bool> {
        let depth = params::small("depth", depth)?;
        with_url(url, |url| self.read().seen_prefix(url, depth))
    }

    /// Whether any URL of this host may have been added: "example.org", "example.org:8080".
    fn seen_host(&self, host: &Object<'_>) -> PyResult<bool> {
        with_url(host, |host| self.read().seen_host(host))
    }

    /// Estimated number of distinct URLs inside, from the fill of X.
    fn estimated_items(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.read().measure().0.items)
    }

    /// Memory and fill of all cells, URLs and error of X; each layer in `layers`, from the root on.
    fn stats<'py>(&self, py: Python<'py>) -> Answer<'py> {
        let (whole, layers, plans, hashes, bytes, warnings) = py.detach(|| {
            let core = self.read();
            let (whole, layers) = core.measure();
            let plans: Vec<_> = core.layers().iter().map(|layer| *layer.plan()).collect();
            let warnings = core.warnings(&whole, &layers);
            (whole, layers, plans, *core.whole().plan(), core.bytes(), warnings)
        });
        self.look(py)?;
        let records = (1u32..)
            .zip(plans.iter().zip(&layers))
            .map(|(depth, (plan, layer))| stats_record(py, plan, layer, Some(depth)))
            .collect::<PyResult<Vec<_>>>()?;
        let (capacity, error_rate) = (Some(self.plan.capacity), Some(self.plan.error_rate));
        let mut sizes =
            Sizes { kind: "url", capacity, error_rate, bytes, ..Sizes::of_bloom(&hashes) };
        sizes.placement.cells += plans.iter().map(|plan| plan.bits).sum::<u64>();
        let (layers, warnings) = (PyTuple::new(py, records)?, PyTuple::new(py, warnings)?);
        sizes.stats(py, &whole, |dict| fields!(dict => layers, warnings))
    }

    /// The cells of a URL: in each of its layers, from the root on, and at last in X.
    fn positions(&self, url: &Object<'_>) -> PyResult<Vec<Vec<u64>>> {
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
    fn layer_sizes<'py>(&self, py: Python<'py>) -> Answer<'py> {
        sizes_object(py, &self.plan.layer_sizes)
    }
}

getters!(UrlFilter, this =>
    capacity: u64 = this.plan.capacity;
    error_rate: f64 = this.plan.error_rate;
    max_layers: u32 = this.plan.max_layers;
    bind: &'static str = this.plan.bind.name();
);
