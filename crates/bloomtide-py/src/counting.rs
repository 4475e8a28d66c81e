//! `CountingBloomFilter` for Python.

use crate::structure::prelude::*;
use bloomtide_core::{CountingBloomFilter as Core, CountingPlan, KeyHash};

/// Counts keys and forgets them again, in a few bits per counter.
///
/// A count is never too small while the counters are not full and only added keys are removed.
#[pyclass(frozen, module = "bloomtide")]
pub(crate) struct CountingBloomFilter {
    core: Core,
    /// Batches that write without holding the interpreter.
    writers: AtomicUsize,
    watch: Watch,
}

shared!(CountingBloomFilter, Core, |core| Loaded::Counting(core), |core| *core, watched!(););
whole!(CountingBloomFilter);
merged!(CountingBloomFilter);
loaded!(CountingBloomFilter, Counting);
asked!(CountingBloomFilter);
counted!(CountingBloomFilter, u32);
planned!(
    CountingBloomFilter,
    Core,
    "(capacity=None, error_rate=None, *, counter_bits=4, policy='plain', layout=None, cells=None, hashes=None, paper=None, hash='xxh3', seed=0, secret=None)",
    "($type, capacity=None, error_rate=None, *, counter_bits=4, policy='plain', layout=None, cells=None, hashes=None, paper=None)",
    "($type, plan, *, hash='xxh3', seed=0, secret=None)"
);

fn plan_of(_: &Bound<'_, PyType>, words: &Words<'_>) -> PyResult<CountingPlan> {
    words.require_kind(&["counting"])?;
    let counter_bits = words.small("counter_bits")?.unwrap_or(4);
    let (policy, (placement, capacity, error_rate)) = (words.policy()?, words.counters()?);
    let plan = CountingPlan { placement, counter_bits, policy, capacity, error_rate };
    plan.checked().or_raise(words.py)
}

fn sizes_of(plan: &CountingPlan) -> Sizes {
    let CountingPlan { placement, counter_bits, capacity, error_rate, .. } = *plan;
    let bytes = plan.bytes();
    Sizes { kind: "counting", capacity, error_rate, placement, counter_bits, bytes }
}

fn plan_record<'py>(py: Python<'py>, plan: &CountingPlan) -> Answer<'py> {
    let policy = |dict: &Dict<'py>| fields!(dict => policy: plan.policy.name());
    sizes_of(plan).plan(py, |keys| plan.error_at(keys), policy)
}

impl CountingBloomFilter {
    pub(crate) fn new(core: Core) -> Self {
        let watch = Watch::new(core.plan().capacity);
        CountingBloomFilter { core, writers: AtomicUsize::new(0), watch }
    }

    /// `count`, which `short_calls.rs` puts on the class.
    #[inline(always)]
    pub(crate) fn count_one(&self, key: &Object<'_>) -> PyResult<u64> {
        Ok(self.core.count(hash_key(self.core.hasher(), key, None)?))
    }

    #[inline(always)]
    fn add_times(&self, key: &Object<'_>, count: u64) -> PyResult<bool> {
        let hash = hash_key(self.core.hasher(), key, None)?;
        if !writers::alone(&self.writers) || self.watch.is_due(hash) {
            return self.add_longer(key.py(), hash, count);
        }
        // SAFETY: this thread holds the interpreter, and no batch writes without it.
        Ok(unsafe { self.core.add_unsynchronised(hash, count) })
    }

    /// The same beside batches, or with a look afterwards.
    #[cold]
    fn add_longer(&self, py: Python<'_>, hash: KeyHash, count: u64) -> PyResult<bool> {
        let new = self.core.add(hash, count);
        if self.watch.is_due(hash) && new {
            self.look(py)?;
        }
        Ok(new)
    }
}

#[pymethods]
impl CountingBloomFilter {
    /// Fill, estimated keys, error rate now, full counters and memory, measured from the cells.
    fn stats<'py>(&self, py: Python<'py>) -> Answer<'py> {
        let measure = py.detach(|| self.core.measure());
        self.look(py)?;
        sizes_of(self.core.plan()).stats(py, &measure, |_| Ok(()))
    }

    fn __repr__(&self) -> String {
        let plan = self.core.plan();
        let goal = shown_goal(plan.capacity, plan.error_rate);
        let (cells, hashes, layout) = (plan.cells(), plan.hashes(), plan.placement.layout.name());
        let (width, policy) = (plan.counter_bits, plan.policy.name());
        format!(
            "<CountingBloomFilter {goal}layout={layout} counter_bits={width} policy={policy} \
             cells={cells} hashes={hashes}>"
        )
    }
}

getters!(CountingBloomFilter, this =>
    capacity: Option<u64> = this.core.plan().capacity;
    error_rate: Option<f64> = this.core.plan().error_rate;
    hashes: u32 = this.core.plan().hashes();
    counter_bits: u32 = this.core.plan().counter_bits;
    layout: &'static str = this.core.plan().placement.layout.name();
    policy: &'static str = this.core.plan().policy.name();
    derivation: &'static str = this.core.plan().placement.derivation.name();
);
