//! The verbs of `UrlFilter` over many URLs.

use crate::keys::Batch;
use bloomtide_core::filters::PrefixCount;
use bloomtide_core::{Crew, Error, Hasher, KeySource, UrlFilter};
use std::sync::{Mutex, PoisonError, RwLock};

type Outcome = Result<(), (usize, Error)>;

/// Refuses what is no URL.
pub(super) struct CheckUrls;

/// Adds; unless that was done, checks the rows of each part before the first of them goes in.
pub(super) struct AddUrls<'a> {
    pub(super) filter: &'a RwLock<UrlFilter>,
    pub(super) hasher: Hasher,
    pub(super) checked: bool,
}

/// Asks.
pub(super) struct ContainsUrls<'a> {
    pub(super) filter: &'a RwLock<UrlFilter>,
    pub(super) hasher: Hasher,
}

/// Counts prefixes.
pub(super) struct CountPrefixes(pub(super) Mutex<PrefixCount>);

/// A batch that has no use for digests.
const NO_HASHER: Hasher = Hasher::Xxh3 { seed: 0 };

impl Batch for CheckUrls {
    type Answer = ();
    // Nobody asks for them.
    const DTYPE: &'static str = "V0";
    const KEEPS: bool = true;
    const TEXTS: bool = true;

    fn hasher(&self) -> Hasher {
        NO_HASHER
    }

    fn run<S: KeySource + ?Sized>(&self, keys: &S, _: &mut [()], crew: &mut Crew) -> Outcome {
        UrlFilter::check_many(keys, crew).map_err(|error| (0, error))
    }
}

impl Batch for AddUrls<'_> {
    type Answer = bool;
    const DTYPE: &'static str = "bool";
    const KEEPS: bool = true;
    const TEXTS: bool = true;

    fn hasher(&self) -> Hasher {
        self.hasher
    }

    fn run<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [bool], crew: &mut Crew) -> Outcome {
        if !self.checked {
            UrlFilter::check_many(keys, crew).map_err(|error| (0, error))?;
        }
        self.filter.write().unwrap_or_else(PoisonError::into_inner).add_many(keys, out, crew)
    }
}

impl Batch for ContainsUrls<'_> {
    type Answer = bool;
    const DTYPE: &'static str = "bool";
    const KEEPS: bool = true;
    const TEXTS: bool = true;

    fn hasher(&self) -> Hasher {
        self.hasher
    }

    fn run<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [bool], crew: &mut Crew) -> Outcome {
        let filter = self.filter.read().unwrap_or_else(PoisonError::into_inner);
        filter.contains_many(keys, out, crew).map_err(|error| (0, error))
    }
}

impl Batch for CountPrefixes {
    type Answer = ();
    const DTYPE: &'static str = "V0";
    const KEEPS: bool = true;
    const TEXTS: bool = true;

    fn hasher(&self) -> Hasher {
        NO_HASHER
    }

    fn run<S: KeySource + ?Sized>(&self, keys: &S, _: &mut [()], _: &mut Crew) -> Outcome {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counted.add_many(keys).map_err(|error| (0, error))
    }
}
