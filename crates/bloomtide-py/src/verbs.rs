//! The verbs over many keys, each with what it needs of its filter.

use crate::count::Any;
use crate::keys::Batch;
use crate::weights::Weights;
use bloomtide_core::{
    BloomFilter, CountingBloomFilter, Crew, Error, Hasher, KeySource, ScalableBloomFilter,
};
use pyo3::prelude::*;
use std::sync::atomic::AtomicUsize;
use std::sync::{PoisonError, RwLock};

type Outcome = Result<(), (usize, Error)>;

/// Adds to a filter whose writers register, see `writers.rs`.
pub(crate) struct Add<'a, F> {
    pub(crate) filter: &'a F,
    pub(crate) writers: &'a AtomicUsize,
    /// Refuses to go on when the filter was closed meanwhile, by a key's own code or another thread.
    pub(crate) ready: &'a (dyn Fn(Python<'_>) -> PyResult<()> + Sync),
}

/// Asks whether keys are inside.
pub(crate) struct Contains<'a, F>(pub(crate) &'a F);

/// Asks how often keys are inside.
pub(crate) struct Count<'a>(pub(crate) &'a CountingBloomFilter);

/// Adds to a scalable filter, whose lock orders the writers.
pub(crate) struct Grow<'a> {
    pub(crate) filter: &'a RwLock<ScalableBloomFilter>,
    pub(crate) hasher: Hasher,
}

/// Asks a scalable filter.
pub(crate) struct ContainsLocked<'a> {
    pub(crate) filter: &'a RwLock<ScalableBloomFilter>,
    pub(crate) hasher: Hasher,
}

impl Batch for Add<'_, BloomFilter> {
    type Answer = bool;
    const DTYPE: &'static str = "bool";

    fn hasher(&self) -> Hasher {
        *self.filter.hasher()
    }

    fn writers(&self) -> Option<&AtomicUsize> {
        Some(self.writers)
    }

    fn ready(&self, py: Python<'_>) -> PyResult<()> {
        (self.ready)(py)
    }

    fn run<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [bool], crew: &mut Crew) -> Outcome {
        self.filter.add_many(keys, out, crew);
        Ok(())
    }
}

impl Batch for Add<'_, CountingBloomFilter> {
    type Answer = bool;
    const DTYPE: &'static str = "bool";

    fn hasher(&self) -> Hasher {
        *self.filter.hasher()
    }

    fn writers(&self) -> Option<&AtomicUsize> {
        Some(self.writers)
    }

    fn ready(&self, py: Python<'_>) -> PyResult<()> {
        (self.ready)(py)
    }

    fn run<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [bool], crew: &mut Crew) -> Outcome {
        self.filter.add_many(keys, out, crew);
        Ok(())
    }
}

impl Batch for Contains<'_, BloomFilter> {
    type Answer = bool;
    const DTYPE: &'static str = "bool";

    fn hasher(&self) -> Hasher {
        *self.0.hasher()
    }

    fn run<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [bool], crew: &mut Crew) -> Outcome {
        self.0.contains_many(keys, out, crew);
        Ok(())
    }
}

impl Batch for Contains<'_, CountingBloomFilter> {
    type Answer = bool;
    const DTYPE: &'static str = "bool";

    fn hasher(&self) -> Hasher {
        *self.0.hasher()
    }

    fn run<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [bool], crew: &mut Crew) -> Outcome {
        self.0.contains_many(keys, out, crew);
        Ok(())
    }
}

impl Batch for Count<'_> {
    type Answer = u32;
    const DTYPE: &'static str = "uint32";

    fn hasher(&self) -> Hasher {
        *self.0.hasher()
    }

    fn run<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [u32], crew: &mut Crew) -> Outcome {
        self.0.count_many(keys, out, crew);
        Ok(())
    }
}

impl Batch for Grow<'_> {
    type Answer = bool;
    const DTYPE: &'static str = "bool";

    fn hasher(&self) -> Hasher {
        self.hasher
    }

    fn run<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [bool], crew: &mut Crew) -> Outcome {
        // Growing goes key by key, so threads would only wait for each other.
        let _ = crew;
        self.filter.write().unwrap_or_else(PoisonError::into_inner).add_many(keys, out)
    }
}

impl Batch for ContainsLocked<'_> {
    type Answer = bool;
    const DTYPE: &'static str = "bool";

    fn hasher(&self) -> Hasher {
        self.hasher
    }

    fn run<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [bool], crew: &mut Crew) -> Outcome {
        let filter = self.filter.read().unwrap_or_else(PoisonError::into_inner);
        filter.contains_many(keys, out, crew);
        Ok(())
    }
}

/// Adds to a filter of growing counters, each key as often as its weight says.
pub(crate) struct AddCounted<'a> {
    pub(crate) filter: &'a Any,
    pub(crate) writers: &'a AtomicUsize,
    pub(crate) weights: Option<Weights>,
}

/// Removes from one.
pub(crate) struct RemoveCounted<'a> {
    pub(crate) filter: &'a Any,
    pub(crate) writers: &'a AtomicUsize,
    pub(crate) weights: Option<Weights>,
}

/// Adds to one and removes from it, row by row.
pub(crate) struct Change<'a> {
    pub(crate) filter: &'a Any,
    pub(crate) writers: &'a AtomicUsize,
    pub(crate) changes: Weights<i64>,
}

/// Asks one how often keys are inside.
pub(crate) struct AskCount<'a>(pub(crate) &'a Any);

/// Asks one whether keys are inside.
pub(crate) struct AskContains<'a>(pub(crate) &'a Any);

impl Batch for AddCounted<'_> {
    type Answer = bool;
    const DTYPE: &'static str = "bool";

    fn hasher(&self) -> Hasher {
        *self.filter.hasher()
    }

    fn writers(&self) -> Option<&AtomicUsize> {
        Some(self.writers)
    }

    fn choose(&self, rows: &mut dyn Iterator<Item = usize>) {
        if let Some(weights) = &self.weights {
            weights.choose(rows);
        }
    }

    fn run<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [bool], crew: &mut Crew) -> Outcome {
        let counts = self.weights.as_ref().map(Weights::next);
        self.filter.add_many(keys, counts.as_deref(), out, crew)
    }
}

impl Batch for RemoveCounted<'_> {
    type Answer = bool;
    const DTYPE: &'static str = "bool";

    fn hasher(&self) -> Hasher {
        *self.filter.hasher()
    }

    fn writers(&self) -> Option<&AtomicUsize> {
        Some(self.writers)
    }

    fn choose(&self, rows: &mut dyn Iterator<Item = usize>) {
        if let Some(weights) = &self.weights {
            weights.choose(rows);
        }
    }

    fn run<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [bool], _: &mut Crew) -> Outcome {
        let counts = self.weights.as_ref().map(Weights::next);
        self.filter.remove_many(keys, counts.as_deref(), out)
    }
}

impl Batch for Change<'_> {
    type Answer = u64;
    const DTYPE: &'static str = "uint64";

    fn hasher(&self) -> Hasher {
        *self.filter.hasher()
    }

    fn writers(&self) -> Option<&AtomicUsize> {
        Some(self.writers)
    }

    fn choose(&self, rows: &mut dyn Iterator<Item = usize>) {
        self.changes.choose(rows);
    }

    fn run<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [u64], _: &mut Crew) -> Outcome {
        self.filter.change_many(keys, &self.changes.next(), out)
    }
}

impl Batch for AskCount<'_> {
    type Answer = u64;
    const DTYPE: &'static str = "uint64";

    fn hasher(&self) -> Hasher {
        *self.0.hasher()
    }

    fn run<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [u64], crew: &mut Crew) -> Outcome {
        self.0.count_many(keys, out, crew);
        Ok(())
    }
}

impl Batch for AskContains<'_> {
    type Answer = bool;
    const DTYPE: &'static str = "bool";

    fn hasher(&self) -> Hasher {
        *self.0.hasher()
    }

    fn run<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [bool], crew: &mut Crew) -> Outcome {
        self.0.contains_many(keys, out, crew);
        Ok(())
    }
}
