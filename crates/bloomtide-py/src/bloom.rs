//! `BloomFilter` for Python. No algorithm here: words in, core calls, records out.

use crate::fork;
use crate::open::open_shared;
use crate::records::{plan_record, stats_record};
use crate::structure::prelude::*;
use bloomtide_core::filters::Measure;
use bloomtide_core::{BloomFilter as Core, BloomPlan, Error, KeyHash, Placement};
use std::sync::atomic::{AtomicBool, Ordering};

/// A set that may wrongly say "present", never wrongly "absent".
///
/// Give a goal, `BloomFilter(capacity, error_rate)`, or sizes, `BloomFilter(bits=..., hashes=...)`.
#[pyclass(frozen, module = "bloomtide")]
pub(crate) struct BloomFilter {
    core: Core,
    /// Batches that write without holding the interpreter.
    writers: AtomicUsize,
    /// `close` was called: no new use may begin.
    closing: AtomicBool,
    /// How often this process had been forked when the filter was made.
    forks: usize,
    watch: Watch,
}

/// Words of Python's that become a plan.
pub(crate) fn plan_of(_: &Bound<'_, PyType>, words: &Words<'_>) -> PyResult<BloomPlan> {
    words.require_kind(&["bloom"])?;
    let (for_goal, for_sizes) = (BloomPlan::for_goal, BloomPlan::for_sizes);
    let planned = |Placement { layout, derivation, cells, hashes }| BloomPlan {
        layout,
        derivation,
        bits: cells,
        hashes,
        capacity: None,
        error_rate: None,
    };
    let (plan, capacity, error_rate) = words.placed("bits", for_goal, for_sizes, planned)?;
    Ok(BloomPlan { capacity, error_rate, ..plan })
}

shared!(
    BloomFilter,
    Core,
    |core| Loaded::Bloom(core),
    |core| *core,
    #[inline(always)]
    fn require_open(&self, py: Python<'_>) -> PyResult<()> {
        if self.core.file().is_some() && self.closing.load(Ordering::SeqCst) {
            return Err(self.closed_error(py));
        }
        Ok(())
    },
    #[inline(always)]
    fn require_writable(&self, py: Python<'_>) -> PyResult<()> {
        let Some(file) = self.core.file() else { return Ok(()) };
        self.require_open(py)?;
        if self.forks != fork::count() {
            return Err(fork::error(py, file.path()));
        }
        if file.writable() {
            return Ok(());
        }
        Err(to_python(py, Error::ReadOnly { path: file.path().to_owned() }))
    },
    #[inline(always)]
    fn require_whole(&self) -> Result<()> {
        self.core.require_whole()
    },
    watched!();
);
whole!(BloomFilter);
merged!(BloomFilter);
loaded!(BloomFilter, Bloom);
asked!(BloomFilter);
planned!(
    BloomFilter,
    Core,
    "(capacity=None, error_rate=None, *, layout=None, bits=None, hashes=None, paper=None, hash='xxh3', seed=0, secret=None)",
    "($type, capacity=None, error_rate=None, *, layout=None, bits=None, hashes=None, paper=None)",
    "($type, plan, *, hash='xxh3', seed=0, secret=None)"
);

by_words!(
    BloomFilter,
    /// Maps a filter's file into memory, shared by every process that opens it.
    ///
    /// mode "r" asks only, "r+" adds to an existing file, "c" makes the file if there is none.
    /// Parameters that are given must be those of the file.
    open,
    "($type, path, capacity=None, error_rate=None, *, mode='r', layout=None, bits=None, hashes=None, paper=None, hash=None, seed=None, secret=None)",
    |cls, words| {
        let made = BloomFilter::new(open_shared(cls, &words)?);
        files::looked_at(words.py, Py::new(words.py, made)?.into_any())
    }
);

impl BloomFilter {
    pub(crate) fn new(core: Core) -> Self {
        BloomFilter {
            watch: Watch::new(core.plan().capacity).long_if(core.file().is_some()),
            core,
            writers: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            forks: fork::count(),
        }
    }

    #[cold]
    fn closed_error(&self, py: Python<'_>) -> PyErr {
        let path = self.core.file().map(|file| file.path().to_owned()).unwrap_or_default();
        to_python(py, Error::Closed { path })
    }

    /// `add`, which `short_calls.rs` puts on the class.
    #[inline(always)]
    pub(crate) fn add_one(&self, key: &Object<'_>) -> PyResult<bool> {
        let hash = hash_key(self.core.hasher(), key, None)?;
        if !writers::alone(&self.writers) || self.watch.is_long(hash) {
            return self.add_longer(key.py(), hash);
        }
        // SAFETY: a mapped filter always goes the long way; this thread holds the interpreter, and no batch writes
        // without it.
        Ok(unsafe { self.core.add_unsynchronised(hash) })
    }

    /// The same beside batches, of a mapped filter, or with a look afterwards.
    #[inline(never)]
    fn add_longer(&self, py: Python<'_>, hash: KeyHash) -> PyResult<bool> {
        let new = {
            let _registered = writers::Registered::new(&self.writers);
            self.require_writable(py)?;
            self.core.add(hash)
        };
        self.core.require_whole().or_raise(py)?;
        if self.watch.is_due(hash) && new {
            self.look(py)?;
        }
        Ok(new)
    }

    /// `key in filter`.
    #[inline(always)]
    pub(crate) fn has_one(&self, key: &Object<'_>) -> PyResult<bool> {
        if self.core.file().is_some() {
            return self.has_mapped(key);
        }
        Ok(self.core.contains(hash_key(self.core.hasher(), key, None)?))
    }

    #[inline(never)]
    fn has_mapped(&self, key: &Object<'_>) -> PyResult<bool> {
        self.require_open(key.py())?;
        let found = self.core.contains(hash_key(self.core.hasher(), key, None)?);
        self.core.require_whole().or_raise(key.py())?;
        Ok(found)
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    pub(crate) fn hasher(&self) -> &bloomtide_core::Hasher {
        self.core.hasher()
    }

    fn measured(&self, py: Python<'_>) -> PyResult<Measure> {
        self.require_open(py)?;
        let measure = py.detach(|| self.core.measure());
        self.core.require_whole().or_raise(py)?;
        Ok(measure)
    }

    /// For who adds without holding the interpreter.
    pub(crate) fn to_write(&self, py: Python<'_>) -> PyResult<(writers::Registered<'_>, &Core)> {
        self.require_writable(py)?;
        Ok((writers::Registered::new(&self.writers), &self.core))
    }
}

#[pymethods]
impl BloomFilter {
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
        let py = keys.py();
        let options = Options::of(py, options)?;
        self.require_writable(py)?;
        let ready = |py: Python<'_>| self.require_writable(py);
        let add = |part: Part<'_>, out: &mut [bool], crew: &mut Crew| {
            self.core.add_many(part.keys, out, crew);
            Ok(())
        };
        let verb = Verb::new(self.core.hasher(), &add).writers(&self.writers).ready(&ready);
        let answers = keys::run(&verb, keys, options)?;
        self.core.require_whole().or_raise(py)?;
        self.look_after(py, answers.len()?)?;
        Ok(answers)
    }

    /// `key in filter` takes a shorter way, see `short_calls.rs`.
    fn __contains__(&self, key: &Object<'_>) -> PyResult<bool> {
        self.has_one(key)
    }

    fn __and__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let other = other.get();
        self.require_open(py)?;
        other.require_open(py)?;
        self.core.require_compatible(&other.core).or_raise(py)?;
        let made = py.detach(|| {
            self.core.copy().and_then(|copy| copy.intersect(&other.core).map(|()| copy))
        });
        self.like(py, made.or_raise(py)?)
    }

    fn __iand__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        let other = other.get();
        self.require_writable(py)?;
        other.require_open(py)?;
        let _registered = self.register();
        py.detach(|| self.core.intersect(&other.core)).or_raise(py)
    }

    /// Estimated number of distinct keys inside, from the fill; infinite when every bit is set.
    fn estimated_items(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(self.measured(py)?.items)
    }

    /// Fill, estimated keys, error rate now and memory, measured from the cells.
    fn stats<'py>(&self, py: Python<'py>) -> Answer<'py> {
        let measure = self.measured(py)?;
        self.look(py)?;
        stats_record(py, self.core.plan(), &measure, None)
    }

    /// The bits of a key, in the order they are derived.
    fn positions(&self, key: &Object<'_>) -> PyResult<Vec<u64>> {
        Ok(self.core.positions(hash_key(self.core.hasher(), key, None)?))
    }

    /// Returns when every add made before the call survives a crash. Nothing to do in memory.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.require_open(py)?;
        py.detach(|| self.core.flush()).or_raise(py)
    }

    /// Gives a mapped file back; the last writer seals it with checksums. Nothing to do in memory.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.core.file().is_none() {
            return Ok(());
        }
        // Sequentially consistent with a writer that registers and then asks whether it may write.
        self.closing.store(true, Ordering::SeqCst);
        py.detach(|| {
            // Batches of other threads that began before finish first.
            while self.writers.load(Ordering::SeqCst) != 0 {
                std::thread::yield_now();
            }
            self.core.close()
        })
        .or_raise(py)
    }

    fn __enter__(this: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        this.get().require_open(this.py())?;
        Ok(this)
    }

    #[pyo3(signature = (*exc))]
    fn __exit__(&self, py: Python<'_>, exc: &Bound<'_, PyTuple>) -> PyResult<()> {
        let _ = exc;
        self.close(py)
    }

    fn __repr__(&self) -> String {
        let plan = self.core.plan();
        let goal = shown_goal(plan.capacity, plan.error_rate);
        let path = self.path().map_or_else(String::new, |path| format!(" path={path:?}"));
        let (layout, bits, hashes) = (plan.layout.name(), plan.bits, plan.hashes);
        format!("<BloomFilter {goal}layout={layout} bits={bits} hashes={hashes}{path}>")
    }
}

getters!(BloomFilter, this =>
    capacity: Option<u64> = this.core.plan().capacity;
    error_rate: Option<f64> = this.core.plan().error_rate;
    layout: &'static str = this.core.plan().layout.name();
    bits: u64 = this.core.plan().bits;
    hashes: u32 = this.core.plan().hashes;
    derivation: &'static str = this.core.plan().derivation.name();
    path: Option<String> = this.core.file().map(|file| file.path().to_string_lossy().into_owned());
    closed: bool = this.closing.load(Ordering::Acquire);
);
