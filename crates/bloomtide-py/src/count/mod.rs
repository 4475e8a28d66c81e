//! `CountFilter` for Python: counters that grow, in one of two storages, whole or in partitions.
//!
//! The paper's four names are its constructors: subclasses that fix the storage and whether there are
//! partitions. Every object is of one of them, also when it was made by `CountFilter(...)`, so that its class
//! tells which file it becomes.

mod plan;

use crate::structure::prelude::*;
use bloomtide_core::cells::{
    DynamicCells, DynamicShape, GrowingCells, Rebuilds, SpectralCells, SpectralShape,
};
use bloomtide_core::filters::{CountFilter as Core, CountPlan, Measure, Overfull};
use bloomtide_core::snapshot::Frozen;
use bloomtide_core::{Error, Estimate, KeyHash, KeySource, epoch};
use plan::{AnyPlan, plan_of, plan_record};
use std::sync::OnceLock;
use std::time::Instant;

/// A filter of one of the two storages; whole or partitioned is in its plan.
pub(crate) enum Any {
    Dynamic(Core<DynamicCells>),
    Spectral(Core<SpectralCells>),
}

/// The same expression for both.
macro_rules! each {
    ($any:expr, $filter:ident => $do:expr) => {
        match $any {
            Any::Dynamic($filter) => $do,
            Any::Spectral($filter) => $do,
        }
    };
}

/// The same verb of both, between two filters of one kind.
macro_rules! between {
    ($one:expr, $other:expr, $verb:ident) => {
        match ($one, $other) {
            (Any::Dynamic(one), Any::Dynamic(other)) => one.$verb(other),
            (Any::Spectral(one), Any::Spectral(other)) => one.$verb(other),
            (one, other) => one.require_kind(other),
        }
    };
}

/// Verbs that both have.
macro_rules! forward {
    ($($(#[$attribute:meta])* fn $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty)?;)*) => {
        impl Any {
            $(
                $(#[$attribute])*
                pub(crate) fn $name(&self, $($argument: $type),*) $(-> $answer)? {
                    each!(self, filter => filter.$name($($argument),*))
                }
            )*
        }
    };
}

/// A row that failed, after all rows before it went well.
type Outcome = std::result::Result<(), (usize, Error)>;

forward! {
    fn kind() -> Kind;
    #[inline(always)]
    fn hasher() -> &Hasher;
    #[inline(always)]
    fn add(hash: KeyHash, count: u64) -> Result<bool>;
    fn add_many(keys: &dyn KeySource, counts: Option<&[u64]>, out: &mut [bool], crew: &mut Crew) -> Outcome;
    fn remove(hash: KeyHash, count: u64) -> Result<()>;
    fn remove_many(keys: &dyn KeySource, counts: Option<&[u64]>) -> Outcome;
    fn change_many(keys: &dyn KeySource, changes: &[i64], out: &mut [u64]) -> Outcome;
    #[inline(always)]
    fn count(hash: KeyHash, guard: &epoch::Guard) -> u64;
    fn count_many(keys: &dyn KeySource, out: &mut [u64], crew: &mut Crew);
    fn contains_many(keys: &dyn KeySource, out: &mut [bool], crew: &mut Crew);
    fn estimate(hash: KeyHash, confidence: f64) -> Estimate;
    fn positions(hash: KeyHash) -> Vec<u64>;
    fn clear() -> Result<()>;
    fn measure() -> Measure;
    fn overfull() -> Option<Overfull>;
    fn bytes() -> u64;
    fn rebuilds() -> Rebuilds;
    fn validate() -> Result<()>;
    fn freeze() -> Result<Frozen<'static>>;
}

impl Any {
    /// An empty filter.
    fn new(plan: AnyPlan, hasher: Hasher) -> Result<Any> {
        match plan {
            AnyPlan::Dynamic(plan, _) => Core::new(plan, hasher).map(Any::Dynamic),
            AnyPlan::Spectral(plan) => Core::new(plan, hasher).map(Any::Spectral),
        }
    }

    fn shapes(&self) -> (Option<DynamicShape>, Option<SpectralShape>) {
        match self {
            Any::Dynamic(filter) => (Some(filter.plan().shape), None),
            Any::Spectral(filter) => (None, Some(filter.plan().shape)),
        }
    }

    /// Every counter, in order.
    fn values(&self) -> Vec<u64> {
        each!(self, filter => filter.look(|cells, guard| cells.values(guard).collect()))
    }

    fn copy(&self) -> Result<Any> {
        match self {
            Any::Dynamic(filter) => filter.copy().map(Any::Dynamic),
            Any::Spectral(filter) => filter.copy().map(Any::Spectral),
        }
    }

    fn require_kind(&self, other: &Any) -> Result<()> {
        if self.kind() == other.kind() {
            return Ok(());
        }
        Err(Error::incompatible("kind", self.kind().name(), other.kind().name()))
    }

    fn require_compatible(&self, other: &Any) -> Result<()> {
        self.require_kind(other)?;
        between!(self, other, require_compatible)
    }

    fn merge(&self, other: &Any) -> Result<()> {
        self.require_kind(other)?;
        between!(self, other, merge)
    }

    fn same_as(&self, other: &Any) -> bool {
        self.kind() == other.kind()
            && match (self, other) {
                (Any::Dynamic(one), Any::Dynamic(other)) => one.same_as(other),
                (Any::Spectral(one), Any::Spectral(other)) => one.same_as(other),
                _ => false,
            }
    }
}

/// How many partitions `"auto"` makes of a filter.
fn usual_of<C: GrowingCells>(filter: &Core<C>) -> u64 {
    let plan = filter.plan();
    C::usual_partitions(plan.cells(), &plan.shape)
}

/// Memory of one more partition of a storage, beside its counters.
pub(crate) fn partition_entry_bytes(py: Python<'_>, storage: &str) -> PyResult<u64> {
    match plan::is_spectral(py, storage)? {
        true => Ok(SpectralCells::ENTRY_BYTES),
        false => Ok(DynamicCells::ENTRY_BYTES),
    }
}

/// Nanoseconds since the first call.
fn clock() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Counts keys under skew: counters take the bits that their counts need.
///
/// storage="dynamic" begins small and grows, "spectral" takes its memory at once. With partitions a hot key widens the
/// counters of its partition only.
#[pyclass(frozen, subclass, module = "bloomtide")]
pub(crate) struct CountFilter {
    core: Any,
    /// Batches that write without holding the interpreter.
    writers: AtomicUsize,
    watch: Watch,
}

shared!(
    CountFilter,
    Any,
    |core| match core {
        Any::Dynamic(filter) => Loaded::Dynamic(filter),
        Any::Spectral(filter) => Loaded::Spectral(filter),
    },
    |core| core.freeze()?,
    watched!();
);
whole!(CountFilter);
merged!(CountFilter);
asked!(CountFilter);
counted!(CountFilter, u64);
planned!(
    CountFilter,
    Any,
    "(capacity=None, error_rate=None, *, storage='dynamic', partitions=1, total=None, counter_bits=None, shrink=0.5, slack=0.1, policy='plain', layout=None, cells=None, hashes=None, paper=None, hash='xxh3', seed=0, secret=None)",
    "($type, capacity=None, error_rate=None, *, storage=None, partitions=None, total=None, counter_bits=None, shrink=0.5, slack=0.1, policy='plain', layout=None, cells=None, hashes=None, skew=1.0, paper=None)",
    "($type, plan, *, hash='xxh3', seed=0, secret=None)"
);

impl CountFilter {
    fn new(core: Any) -> Self {
        each!(&core, filter => filter.set_clock(clock));
        let capacity = each!(&core, filter => filter.plan().capacity);
        CountFilter { core, writers: AtomicUsize::new(0), watch: Watch::new(capacity) }
    }

    pub(crate) fn core(&self) -> &Any {
        &self.core
    }

    /// `count`, which `short_calls.rs` puts on the classes.
    #[inline(always)]
    pub(crate) fn count_one(&self, key: &Object<'_>) -> PyResult<u64> {
        let hash = hash_key(self.core.hasher(), key, None)?;
        if writers::alone(&self.writers) {
            // SAFETY: this thread holds the interpreter, and no batch writes without it.
            return Ok(self.core.count(hash, unsafe { epoch::unprotected() }));
        }
        Ok(self.core.count(hash, &epoch::pin()))
    }

    #[inline(always)]
    fn add_times(&self, key: &Object<'_>, count: u64) -> PyResult<bool> {
        let hash = hash_key(self.core.hasher(), key, None)?;
        if writers::alone(&self.writers)
            && !self.watch.is_due(hash)
            && let Any::Dynamic(filter) = &self.core
            // SAFETY: this thread holds the interpreter, and no batch writes without it.
            && let Some(new) = unsafe { filter.add_shortly(hash, count) }
        {
            return Ok(new);
        }
        self.add_longer(key.py(), hash, count)
    }

    /// What is not short, out of the way of what is.
    #[inline(never)]
    fn add_longer(&self, py: Python<'_>, hash: KeyHash, count: u64) -> PyResult<bool> {
        let added = if writers::alone(&self.writers) {
            // SAFETY: this thread holds the interpreter, and no batch writes without it.
            each!(&self.core, filter => unsafe { filter.add_unsynchronised(hash, count) })
        } else {
            self.core.add(hash, count)
        };
        let new = added.or_raise(py)?;
        if self.watch.is_due(hash) && new {
            self.look(py)?;
        }
        Ok(new)
    }

    /// What the plans of both storages have.
    fn common(&self) -> CountPlan<()> {
        each!(&self.core, filter => filter.plan().with_shape(()))
    }
}

/// What was read through a class, refused if it is of another kind than the class.
fn checked(py: Python<'_>, loaded: Loaded) -> PyResult<Py<PyAny>> {
    match &loaded {
        Loaded::Dynamic(_) | Loaded::Spectral(_) => files::to_object(py, loaded, None),
        other => {
            let got = other.kind().name().to_owned();
            Err(to_python(py, Error::Kind { expected: "dcf, pdcf, sbf or psbf", got }))
        }
    }
}

#[pymethods]
impl CountFilter {
    /// Reads a file that `save` wrote.
    #[classmethod]
    fn load(cls: &Bound<'_, PyType>, path: &Object<'_>) -> PyResult<Py<PyAny>> {
        files::looked_at(cls.py(), checked(cls.py(), files::load(path, kind_of(cls)?)?)?)
    }

    /// Reads what `to_bytes` returned.
    #[classmethod]
    fn from_bytes(cls: &Bound<'_, PyType>, data: &Object<'_>) -> PyResult<Py<PyAny>> {
        checked(cls.py(), files::from_bytes(data, kind_of(cls)?)?)
    }

    /// Adds (above zero), removes (below) or only counts (zero), in order, until a key to remove is absent.
    /// The counts after each row, as a NumPy array.
    #[pyo3(signature = (keys, changes, *, nulls="refuse"))]
    fn change_many<'py>(
        &self,
        keys: &Object<'py>,
        changes: &Object<'py>,
        nulls: &str,
    ) -> Answer<'py> {
        let options = Options::parse(keys.py(), nulls)?;
        let (keys, changes) = weights::changes(keys, changes)?;
        let change = |part: Part<'_>, out: &mut [u64], _: &mut Crew| {
            self.core.change_many(part.keys, &part.of(&changes), out)
        };
        let verb = Verb::new(self.core.hasher(), &change).writers(&self.writers);
        let answers = keys::run(&verb, &keys, options)?;
        self.look_after(keys.py(), answers.len()?)?;
        Ok(answers)
    }

    /// Cuts the cells into `partitions` other partitions; every count stays the same.
    fn repartition(&self, partitions: &Object<'_>) -> PyResult<()> {
        let py = partitions.py();
        let cells = self.common().placement.cells;
        let usual = each!(&self.core, filter => usual_of(filter));
        let partitions = plan::partitions(partitions, cells, usual)?;
        let _registered = self.register();
        py.detach(|| each!(&self.core, filter => filter.repartition(partitions))).or_raise(py)
    }

    /// Fill, estimated keys, error rate now, memory, rebuilds and the longest pause.
    fn stats<'py>(&self, py: Python<'py>) -> Answer<'py> {
        let measure = py.detach(|| self.core.measure());
        self.look(py)?;
        let (common, rebuilds) = (self.common(), self.core.rebuilds());
        let sizes = Sizes {
            kind: self.core.kind().name(),
            capacity: common.capacity,
            error_rate: common.error_rate,
            placement: common.placement,
            // A spectral counter has one bit at least.
            counter_bits: self.core.shapes().0.map_or(1, |shape| shape.width),
            bytes: self.core.bytes(),
        };
        sizes.stats(py, &measure, |dict| {
            fields!(dict =>
                partitions: common.partitions, rebuilds: rebuilds.count, moved: rebuilds.moved,
                longest_pause: rebuilds.longest as f64 * 1e-9, pauses: rebuilds.total as f64 * 1e-9)
        })
    }

    fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
        let common = this.get().common();
        let (dynamic, spectral) = this.get().core.shapes();
        let dynamic =
            dynamic.map(|shape| format!("counter_bits={} shrink={} ", shape.width, shape.shrink));
        let spectral = spectral.map(|shape| format!("slack={} ", shape.slack));
        Ok(format!(
            "<{} {}total={} {}layout={} policy={} partitions={} cells={} hashes={}>",
            this.get_type().name()?,
            shown_goal(common.capacity, common.error_rate),
            common.total,
            dynamic.or(spectral).unwrap_or_default(),
            common.placement.layout.name(),
            common.policy.name(),
            common.partitions,
            common.placement.cells,
            common.placement.hashes,
        ))
    }
}

getters!(CountFilter, this =>
    capacity: Option<u64> = this.common().capacity;
    error_rate: Option<f64> = this.common().error_rate;
    total: u64 = this.common().total;
    hashes: u32 = this.common().placement.hashes;
    partitions: u64 = this.common().partitions;
    layout: &'static str = this.common().placement.layout.name();
    policy: &'static str = this.common().policy.name();
    derivation: &'static str = this.common().placement.derivation.name();
    storage: &'static str = if matches!(this.core, Any::Dynamic(_)) { "dynamic" } else { "spectral" };
    /// Dynamic only, as `shrink`.
    counter_bits: Option<u32> = this.core.shapes().0.map(|shape| shape.width);
    shrink: Option<f64> = this.core.shapes().0.map(|shape| shape.shrink);
    /// Spectral only.
    slack: Option<f64> = this.core.shapes().1.map(|shape| shape.slack);
);

/// The paper's names: each is a kind, and the signature of its constructor.
macro_rules! named {
    ($($(#[$doc:meta])* $name:ident, $kind:ident, $signature:tt, $plan:tt;)*) => {
        $(
            $(#[$doc])*
            #[pyclass(frozen, extends = CountFilter, module = "bloomtide")]
            pub(crate) struct $name;

            by_words!($name, #[new] py_new, $signature, |cls, words| CountFilter::made(cls, &words));
            by_words!(
                $name,
                /// Sizes, memory and predicted error for a goal; allocates nothing.
                plan, $plan, |cls, words| plan_record(words.py, &plan_of(cls, &words)?).map(Bound::unbind)
            );
        )*

        /// The kind that a class fixes; None for `CountFilter`.
        fn kind_of(class: &Bound<'_, PyType>) -> PyResult<Option<Kind>> {
            $(
                if class.is(class.py().get_type::<$name>()) {
                    return Ok(Some(Kind::$kind));
                }
            )*
            if class.is(class.py().get_type::<CountFilter>()) {
                return Ok(None);
            }
            let hint = "wrap the filter instead of inheriting from it";
            Err(parameter(class.py(), "cls", class.name()?, "CountFilter or one of its names", hint))
        }

        /// The Python object of a filter.
        pub(crate) fn to_object(py: Python<'_>, core: Any) -> PyResult<Py<PyAny>> {
            let kind = core.kind();
            let base = PyClassInitializer::from(CountFilter::new(core));
            match kind {
                $(Kind::$kind => Ok(Py::new(py, base.add_subclass($name))?.into_any()),)*
                other => Err(to_python(py, Error::Kind { expected: "dcf", got: other.name().to_owned() })),
            }
        }
    };
}

named! {
    /// Counts keys in counters of two parts, of which the upper one grows with the largest count.
    DynamicCountFilter, Dynamic,
    "(capacity=None, error_rate=None, *, total=None, counter_bits=None, shrink=0.5, policy='plain', layout=None, cells=None, hashes=None, paper=None, hash='xxh3', seed=0, secret=None)",
    "($type, capacity=None, error_rate=None, *, total=None, counter_bits=None, shrink=0.5, policy='plain', layout=None, cells=None, hashes=None, skew=1.0, paper=None)";
    /// A dynamic count filter in partitions: a hot key widens the counters of its partition only.
    PartitionedDynamicCountFilter, PartitionedDynamic,
    "(capacity=None, error_rate=None, *, partitions='auto', total=None, counter_bits=None, shrink=0.5, policy='plain', layout=None, cells=None, hashes=None, paper=None, hash='xxh3', seed=0, secret=None)",
    "($type, capacity=None, error_rate=None, *, partitions='auto', total=None, counter_bits=None, shrink=0.5, policy='plain', layout=None, cells=None, hashes=None, skew=1.0, paper=None)";
    /// Counts keys in counters that each take the bits they need.
    SpectralBloomFilter, Spectral,
    "(capacity=None, error_rate=None, *, total=None, slack=0.1, policy='plain', layout=None, cells=None, hashes=None, paper=None, hash='xxh3', seed=0, secret=None)",
    "($type, capacity=None, error_rate=None, *, total=None, slack=0.1, policy='plain', layout=None, cells=None, hashes=None, paper=None)";
    /// A spectral Bloom filter in partitions: a rebuild touches one of them.
    PartitionedSpectralBloomFilter, PartitionedSpectral,
    "(capacity=None, error_rate=None, *, partitions='auto', total=None, slack=0.1, policy='plain', layout=None, cells=None, hashes=None, paper=None, hash='xxh3', seed=0, secret=None)",
    "($type, capacity=None, error_rate=None, *, partitions='auto', total=None, slack=0.1, policy='plain', layout=None, cells=None, hashes=None, paper=None)";
}
