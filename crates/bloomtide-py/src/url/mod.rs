//! `UrlFilter` for Python.
//!
//! A URL may need a new layer, so the whole filter sits behind one lock: many readers or one writer. Nobody
//! asks for the interpreter while holding it, so waiting for it cannot deadlock.

mod goal;

use crate::errors::{OrRaise, nothing_added, to_python};
use crate::files;
use crate::key::with_text;
use crate::keys::{self, Needs, Options, Part, Verb};
use crate::params;
use crate::records::{record, stats_record};
use bloomtide_core::filters::PrefixCount;
use bloomtide_core::snapshot::{Kind, Loaded};
use bloomtide_core::{Crew, Error, Hasher, Key, Result, UrlFilter as Core, UrlPlan};
use goal::{from_record, plan_of, sizes_object, to_record};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// For verbs that have no use for digests.
const NO_HASHER: Hasher = Hasher::Xxh3 { seed: 0 };

/// URLs that were seen, with a layer for each depth: whole URLs, hosts and directories can be asked for.
#[pyclass(frozen, module = "bloomtide")]
pub(crate) struct UrlFilter {
    core: RwLock<Core>,
    plan: UrlPlan,
    hasher: Hasher,
}

impl UrlFilter {
    pub(crate) fn new(core: Core) -> Self {
        let (plan, hasher) = (core.plan().clone(), *core.hasher());
        UrlFilter { core: RwLock::new(core), plan, hasher }
    }

    // A poisoned lock means a panic inside the core, which has none; its data is still sound.
    fn read(&self) -> RwLockReadGuard<'_, Core> {
        self.core.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Core> {
        self.core.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn from_loaded(py: Python<'_>, loaded: Loaded) -> PyResult<Self> {
        match loaded {
            Loaded::Url(core) => Ok(UrlFilter::new(*core)),
            other => {
                let got = other.kind().name().to_owned();
                Err(to_python(py, Error::Kind { expected: "url", got }))
            }
        }
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

#[pymethods]
impl UrlFilter {
    #[new]
    #[pyo3(
        signature = (capacity, error_rate=None, max_layers=None, *, bind="salted_xor", layer_sizes=None,
                     hash="xxh3", seed=0, secret=None),
        text_signature = "(capacity, error_rate=0.01, max_layers=8, *, bind='salted_xor', layer_sizes=None, hash='xxh3', seed=0, secret=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn py_new(
        py: Python<'_>,
        capacity: &Bound<'_, PyAny>,
        error_rate: Option<&Bound<'_, PyAny>>,
        max_layers: Option<&Bound<'_, PyAny>>,
        bind: &str,
        layer_sizes: Option<&Bound<'_, PyAny>>,
        hash: &str,
        seed: i128,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let plan = plan_of(py, capacity, error_rate, max_layers, bind, layer_sizes)?;
        let hasher = params::hasher(py, hash, seed, secret)?;
        Ok(UrlFilter::new(Core::new(plan, hasher).or_raise(py)?))
    }

    /// Sizes and predicted error for a goal, with every layer there may be; allocates nothing.
    #[classmethod]
    #[pyo3(
        signature = (capacity, error_rate=None, max_layers=None, *, bind="salted_xor", layer_sizes=None),
        text_signature = "($type, capacity, error_rate=0.01, max_layers=8, *, bind='salted_xor', layer_sizes=None)"
    )]
    fn plan<'py>(
        cls: &Bound<'py, PyType>,
        capacity: &Bound<'_, PyAny>,
        error_rate: Option<&Bound<'_, PyAny>>,
        max_layers: Option<&Bound<'_, PyAny>>,
        bind: &str,
        layer_sizes: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = cls.py();
        to_record(py, &plan_of(py, capacity, error_rate, max_layers, bind, layer_sizes)?)
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

    /// Reads a file that `save` wrote.
    #[classmethod]
    fn load(cls: &Bound<'_, PyType>, path: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::from_loaded(cls.py(), files::load(path, Some(Kind::Url))?)
    }

    /// Reads what `to_bytes` returned.
    #[classmethod]
    fn from_bytes(cls: &Bound<'_, PyType>, data: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::from_loaded(cls.py(), files::from_bytes(data, Some(Kind::Url))?)
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
        if checked && let Err(error) = keys::answers(&check, keys, options) {
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

    fn __or__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<Self> {
        let other = other.get();
        // One lock at a time: two filters merged both ways at once must not wait for each other.
        let made = py.detach(|| {
            let (mut made, other) = (self.read().copy()?, other.read().copy()?);
            made.merge(&other).map(|()| made)
        });
        made.or_raise(py).map(UrlFilter::new)
    }

    fn __ior__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        self.merge(py, other)
    }

    /// Becomes the filter of both, as if every URL of `other` had been added.
    fn merge(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        let other = other.get();
        let merged = py.detach(|| {
            let other = other.read().copy()?;
            self.write().merge(&other)
        });
        merged.or_raise(py)
    }

    /// A copy.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        py.detach(|| self.read().copy()).or_raise(py).map(UrlFilter::new)
    }

    /// Forgets every URL, and the layers with them.
    fn clear(&self, py: Python<'_>) {
        py.detach(|| self.write().clear());
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> bool {
        let other = other.get();
        // One lock at a time: two filters compared both ways at once must not wait for each other.
        py.detach(|| {
            std::ptr::eq(self, other) || {
                let theirs = other.read().copy();
                theirs.is_ok_and(|theirs| self.read().same_as(&theirs))
            }
        })
    }

    /// Estimated number of distinct URLs inside, from the fill of X.
    fn estimated_items(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.read().measure().0.items)
    }

    /// Memory and fill of all cells, URLs and error of X; each layer in `layers`, from the root on.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (whole, layers, plans, hashes, bytes) = py.detach(|| {
            let core = self.read();
            let (whole, layers) = core.measure();
            let plans: Vec<_> = core.layers().iter().map(|layer| *layer.plan()).collect();
            (whole, layers, plans, *core.whole().plan(), core.bytes())
        });
        let records = (1u32..)
            .zip(plans.iter().zip(&layers))
            .map(|(depth, (plan, layer))| stats_record(py, plan, layer, Some(depth)))
            .collect::<PyResult<Vec<_>>>()?;
        record(py, "Stats", |fields| {
            fields.set_item("kind", "url")?;
            fields.set_item("items", whole.items)?;
            fields.set_item("capacity", self.plan.capacity)?;
            fields.set_item("error_rate", self.plan.error_rate)?;
            fields.set_item("predicted_error", whole.error)?;
            fields.set_item("fill", whole.fill)?;
            fields
                .set_item("cells", hashes.bits + plans.iter().map(|plan| plan.bits).sum::<u64>())?;
            fields.set_item("hashes", hashes.hashes)?;
            fields.set_item("counter_bits", 1)?;
            fields.set_item("bytes", bytes)?;
            fields.set_item("layers", PyTuple::new(py, records)?)
        })
    }

    /// Checks every invariant.
    fn validate(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.read().validate()).or_raise(py)
    }

    /// The cells of a URL: in each of its layers, from the root on, and at last in X.
    fn positions(&self, url: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<u64>>> {
        with_url(url, |url| self.read().positions(url))
    }

    /// Replaces the file by a snapshot, atomically and durably.
    fn save(&self, path: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = path.py();
        let core = py.detach(|| self.read().copy()).or_raise(py)?;
        files::save(py, &core, path)
    }

    /// The snapshot as bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let core = py.detach(|| self.read().copy()).or_raise(py)?;
        files::to_bytes(py, &core)
    }

    fn __reduce__<'py>(
        this: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let py = this.py();
        Ok((this.get_type().getattr("from_bytes")?, (this.get().to_bytes(py)?,)))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        let _ = memo;
        self.copy(py)
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
    fn capacity(&self) -> u64 {
        self.plan.capacity
    }

    #[getter]
    fn error_rate(&self) -> f64 {
        self.plan.error_rate
    }

    #[getter]
    fn max_layers(&self) -> u32 {
        self.plan.max_layers
    }

    #[getter]
    fn bind(&self) -> &'static str {
        self.plan.bind.name()
    }

    #[getter]
    fn layer_sizes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        sizes_object(py, &self.plan.layer_sizes)
    }

    #[getter]
    fn hash(&self) -> &'static str {
        self.hasher.name()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.hasher.seed()
    }
}
