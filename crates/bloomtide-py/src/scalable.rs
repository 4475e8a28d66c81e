//! `ScalableBloomFilter` for Python.
//!
//! Growing replaces nothing but adds a layer, so the whole filter sits behind one lock.

use crate::structure::prelude::*;
use bloomtide_core::{Derivation, LayerPlan, Placement, ScalableBloomFilter as Core, ScalablePlan};

/// A Bloom filter that grows when it is full and keeps its error under the target.
#[pyclass(frozen, module = "bloomtide")]
pub(crate) struct ScalableBloomFilter {
    core: Locked<Core>,
    plan: ScalablePlan,
    hasher: Hasher,
}

behind_lock!(ScalableBloomFilter, Core, Scalable);
whole!(ScalableBloomFilter);
loaded!(ScalableBloomFilter, Scalable);
asked!(ScalableBloomFilter);
planned!(
    ScalableBloomFilter,
    Core,
    "(capacity=1572864, error_rate=0.01, *, growth=8.0, tightening=0.5, paper=None, hash='xxh3', seed=0, secret=None)",
    "($type, capacity=1572864, error_rate=0.01, *, growth=8.0, tightening=0.5, paper=None)",
    "($type, plan, *, hash='xxh3', seed=0, secret=None)"
);

fn plan_of(_: &Bound<'_, PyType>, words: &Words<'_>) -> PyResult<ScalablePlan> {
    words.require_kind(&["scalable"])?;
    let usual = ScalablePlan::default();
    ScalablePlan {
        capacity: words.whole("capacity")?.unwrap_or(usual.capacity),
        error_rate: words.error_rate()?.unwrap_or(usual.error_rate),
        growth: words.get("growth", usual.growth)?,
        tightening: words.get("tightening", usual.tightening)?,
        derivation: words.derivation()?,
        ..usual
    }
    .checked()
    .or_raise(words.py)
}

/// The sizes of one layer.
fn sizes_of(layer: &LayerPlan, derivation: Derivation, bytes: u64) -> Sizes {
    let (cells, hashes) = (layer.cells(), layer.hashes());
    Sizes {
        kind: "bloom",
        capacity: Some(layer.capacity),
        error_rate: Some(layer.error_rate),
        placement: Placement { layout: layer.layout(), derivation, cells, hashes },
        counter_bits: 1,
        bytes,
    }
}

/// Those of the whole filter, whose layers have so many cells and at most so many hashes.
fn whole_sizes(plan: &ScalablePlan, first: Sizes, cells: u64, hashes: u32, bytes: u64) -> Sizes {
    let (capacity, error_rate) = (Some(plan.capacity), Some(plan.error_rate));
    let placement = Placement { cells, hashes, ..first.placement };
    Sizes { kind: "scalable", capacity, error_rate, placement, bytes, ..first }
}

/// Sizes and predicted error of the first layer. Twice the capacity is a second layer, with the smaller
/// error that its number gives it.
fn plan_record<'py>(py: Python<'py>, plan: &ScalablePlan) -> Answer<'py> {
    let (first, second) = (plan.layer(0).or_raise(py)?, plan.layer(1).or_raise(py)?);
    let capacity = plan.capacity as f64;
    let error_at = |keys: f64| match keys > capacity {
        true => (first.error_at(capacity) + second.error_at(capacity)).min(1.0),
        false => first.error_at(keys),
    };
    let bytes = first.bytes();
    let sizes = sizes_of(&first, plan.derivation, bytes);
    whole_sizes(plan, sizes, first.cells(), first.hashes(), bytes).plan(
        py,
        error_at,
        |dict| fields!(dict => growth: plan.growth, tightening: plan.tightening),
    )
}

impl ScalableBloomFilter {
    pub(crate) fn new(core: Core) -> Self {
        let (plan, hasher) = (*core.plan(), *core.hasher());
        ScalableBloomFilter { core: Locked::new(core), plan, hasher }
    }
}

#[pymethods]
impl ScalableBloomFilter {
    /// Adds the key unless it may be inside; True iff it was certainly absent before.
    #[pyo3(signature = (key, /, *more), text_signature = "($self, key, /)")]
    fn add(&self, key: &Object<'_>, more: &Bound<'_, PyTuple>) -> PyResult<bool> {
        params::refuse_more(key.py(), "count", more)?;
        let hash = hash_key(&self.hasher, key, None)?;
        self.write().add(hash).or_raise(key.py())
    }

    /// Adds every key in order; a NumPy array of what `add` would have answered.
    #[pyo3(signature = (keys, *more, **options))]
    #[pyo3(text_signature = "($self, keys, *, nulls='refuse', threads=1)")]
    fn add_many<'py>(
        &self,
        keys: &Object<'py>,
        more: &Bound<'py, PyTuple>,
        options: Option<&Dict<'py>>,
    ) -> Answer<'py> {
        params::refuse_more(keys.py(), "counts", more)?;
        // Growing goes key by key, so threads would only wait for each other.
        let add =
            |part: Part<'_>, out: &mut [bool], _: &mut Crew| self.write().add_many(part.keys, out);
        let options = Options::of(keys.py(), options)?;
        keys::run(&Verb::new(&self.hasher, &add), keys, options)
    }

    fn __contains__(&self, key: &Object<'_>) -> PyResult<bool> {
        Ok(self.read().contains(hash_key(&self.hasher, key, None)?))
    }

    /// Number of keys that were called new.
    fn estimated_items(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.read().measure().0.items)
    }

    /// Fill, estimated keys, compound error now and memory; each layer in `layers`.
    fn stats<'py>(&self, py: Python<'py>) -> Answer<'py> {
        let (whole, layers, plans, bytes) = py.detach(|| {
            let core = self.read();
            let (whole, layers) = core.measure();
            let plans: Vec<_> = core.layers().copied().collect();
            (whole, layers, plans, core.layer_bytes().collect::<Vec<_>>())
        });
        let derivation = self.plan.derivation;
        let records = plans
            .iter()
            .zip(layers.iter().zip(&bytes))
            .map(|(plan, (layer, bytes))| {
                sizes_of(plan, derivation, *bytes).stats(py, layer, |_| Ok(()))
            })
            .collect::<PyResult<Vec<_>>>()?;
        let cells = plans.iter().map(LayerPlan::cells).sum();
        let hashes = plans.iter().map(LayerPlan::hashes).max().unwrap_or(0);
        let first = sizes_of(&plans[0], derivation, bytes[0]);
        let sizes = whole_sizes(&self.plan, first, cells, hashes, bytes.iter().sum());
        // However many keys there are, it grows with them.
        let (layers, warnings) = (PyTuple::new(py, records)?, PyTuple::empty(py));
        let rebuilds = plans.len() - 1;
        sizes.stats(py, &whole, |dict| fields!(dict => rebuilds, layers, warnings))
    }

    /// The cells of a key in each layer, oldest first.
    fn positions(&self, key: &Object<'_>) -> PyResult<Vec<Vec<u64>>> {
        let hash = hash_key(&self.hasher, key, None)?;
        Ok(self.read().layers().map(|layer| layer.positions(hash)).collect())
    }

    fn __repr__(&self) -> String {
        let ScalablePlan { capacity, error_rate, growth, tightening, .. } = self.plan;
        let layers = self.read().layers().len();
        format!(
            "<ScalableBloomFilter capacity={capacity} error_rate={error_rate} growth={growth} \
             tightening={tightening} layers={layers}>"
        )
    }
}

getters!(ScalableBloomFilter, this =>
    capacity: u64 = this.plan.capacity;
    error_rate: f64 = this.plan.error_rate;
    growth: f64 = this.plan.growth;
    tightening: f64 = this.plan.tightening;
    derivation: &'static str = this.plan.derivation.name();
);
