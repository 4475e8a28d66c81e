//! A filter of growing counters, whichever cells it has.

use bloomtide_core::cells::{DynamicCells, DynamicShape, Rebuilds, SpectralCells, SpectralShape};
use bloomtide_core::filters::{CountFilter, Measure};
use bloomtide_core::snapshot::{Frozen, Kind};
use bloomtide_core::{
    Crew, Error, Estimate, Hasher, KeyHash, KeySource, Placement, Policy, Result, epoch,
};
use std::sync::OnceLock;
use std::time::Instant;

/// One of the two storages; whole or partitioned is in the plan.
pub(crate) enum Any {
    Dynamic(CountFilter<DynamicCells>),
    Spectral(CountFilter<SpectralCells>),
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
pub(crate) use each;

/// What both plans have.
pub(crate) struct Common {
    pub(crate) placement: Placement,
    pub(crate) policy: Policy,
    pub(crate) partitions: u64,
    pub(crate) total: u64,
    pub(crate) capacity: Option<u64>,
    pub(crate) error_rate: Option<f64>,
}

/// Nanoseconds since the first call.
pub(crate) fn clock() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

impl Any {
    pub(crate) fn common(&self) -> Common {
        each!(self, filter => {
            let plan = filter.plan();
            Common {
                placement: plan.placement,
                policy: plan.policy,
                partitions: plan.cut().partitions(),
                total: plan.total,
                capacity: plan.capacity,
                error_rate: plan.error_rate,
            }
        })
    }

    pub(crate) fn dynamic(&self) -> Option<DynamicShape> {
        match self {
            Any::Dynamic(filter) => Some(filter.plan().shape),
            Any::Spectral(_) => None,
        }
    }

    pub(crate) fn spectral(&self) -> Option<SpectralShape> {
        match self {
            Any::Spectral(filter) => Some(filter.plan().shape),
            Any::Dynamic(_) => None,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        each!(self, filter => filter.kind())
    }

    #[inline(always)]
    pub(crate) fn hasher(&self) -> &Hasher {
        each!(self, filter => filter.hasher())
    }

    #[inline(always)]
    pub(crate) fn add(&self, hash: KeyHash, count: u64) -> Result<bool> {
        each!(self, filter => filter.add(hash, count))
    }

    /// # Safety
    /// No other thread changes this filter during the call.
    pub(crate) unsafe fn add_unsynchronised(&self, hash: KeyHash, count: u64) -> Result<bool> {
        // SAFETY: the caller's promise.
        each!(self, filter => unsafe { filter.add_unsynchronised(hash, count) })
    }

    /// The same if it is short; None if it is not, and then nothing was changed.
    ///
    /// # Safety
    /// As of `add_unsynchronised`.
    #[inline(always)]
    pub(crate) unsafe fn add_shortly(&self, hash: KeyHash, count: u64) -> Option<bool> {
        match self {
            // SAFETY: the caller's promise.
            Any::Dynamic(filter) => unsafe { filter.add_shortly(hash, count) },
            Any::Spectral(_) => None,
        }
    }

    pub(crate) fn remove(&self, hash: KeyHash, count: u64) -> Result<()> {
        each!(self, filter => filter.remove(hash, count))
    }

    #[inline(always)]
    pub(crate) fn count(&self, hash: KeyHash, guard: &epoch::Guard) -> u64 {
        each!(self, filter => filter.count(hash, guard))
    }

    pub(crate) fn add_many(
        &self,
        keys: &dyn KeySource,
        counts: Option<&[u64]>,
        out: &mut [bool],
        crew: &mut Crew,
    ) -> std::result::Result<(), (usize, Error)> {
        each!(self, filter => filter.add_many(keys, counts, out, crew))
    }

    pub(crate) fn remove_many(
        &self,
        keys: &dyn KeySource,
        counts: Option<&[u64]>,
        out: &mut [bool],
    ) -> std::result::Result<(), (usize, Error)> {
        each!(self, filter => filter.remove_many(keys, counts, out))
    }

    pub(crate) fn change_many(
        &self,
        keys: &dyn KeySource,
        changes: &[i64],
        out: &mut [u64],
    ) -> std::result::Result<(), (usize, Error)> {
        each!(self, filter => filter.change_many(keys, changes, out))
    }

    pub(crate) fn count_many(&self, keys: &dyn KeySource, out: &mut [u64], crew: &mut Crew) {
        each!(self, filter => filter.count_many(keys, out, crew));
    }

    pub(crate) fn contains_many(&self, keys: &dyn KeySource, out: &mut [bool], crew: &mut Crew) {
        each!(self, filter => filter.contains_many(keys, out, crew));
    }

    pub(crate) fn estimate(&self, hash: KeyHash, confidence: f64) -> Estimate {
        each!(self, filter => filter.estimate(hash, confidence))
    }

    pub(crate) fn positions(&self, hash: KeyHash) -> Vec<u64> {
        each!(self, filter => filter.positions(hash))
    }

    /// Every counter, in order.
    pub(crate) fn values(&self) -> Vec<u64> {
        use bloomtide_core::cells::GrowingCells;
        each!(self, filter => filter.look(|cells, guard| {
            (0..cells.len()).map(|cell| cells.get(cell, guard)).collect()
        }))
    }

    fn require_same_kind(&self, other: &Any) -> Result<()> {
        if self.kind() == other.kind() {
            return Ok(());
        }
        Err(Error::incompatible("kind", self.kind().name(), other.kind().name()))
    }

    pub(crate) fn require_compatible(&self, other: &Any) -> Result<()> {
        self.require_same_kind(other)?;
        match (self, other) {
            (Any::Dynamic(a), Any::Dynamic(b)) => a.require_compatible(b),
            (Any::Spectral(a), Any::Spectral(b)) => a.require_compatible(b),
            (a, b) => a.require_same_kind(b),
        }
    }

    pub(crate) fn merge(&self, other: &Any) -> Result<()> {
        self.require_same_kind(other)?;
        match (self, other) {
            (Any::Dynamic(a), Any::Dynamic(b)) => a.merge(b),
            (Any::Spectral(a), Any::Spectral(b)) => a.merge(b),
            (a, b) => a.require_same_kind(b),
        }
    }

    pub(crate) fn same_as(&self, other: &Any) -> bool {
        match (self, other) {
            (a, b) if a.kind() != b.kind() => false,
            (Any::Dynamic(a), Any::Dynamic(b)) => a.same_as(b),
            (Any::Spectral(a), Any::Spectral(b)) => a.same_as(b),
            _ => false,
        }
    }

    pub(crate) fn copy(&self) -> Result<Any> {
        Ok(match self {
            Any::Dynamic(filter) => Any::Dynamic(filter.copy()?),
            Any::Spectral(filter) => Any::Spectral(filter.copy()?),
        })
    }

    pub(crate) fn clear(&self) -> Result<()> {
        each!(self, filter => filter.clear())
    }

    pub(crate) fn repartition(&self, partitions: u64, adaptive: bool) -> Result<()> {
        match self {
            Any::Dynamic(filter) => {
                filter.repartition(partitions, |shape| DynamicShape { adaptive, ..shape })
            }
            Any::Spectral(filter) => filter.repartition(partitions, |shape| shape),
        }
    }

    pub(crate) fn measure(&self) -> Measure {
        each!(self, filter => filter.measure())
    }

    pub(crate) fn bytes(&self) -> u64 {
        each!(self, filter => filter.bytes())
    }

    pub(crate) fn rebuilds(&self) -> Rebuilds {
        each!(self, filter => filter.rebuilds())
    }

    pub(crate) fn validate(&self) -> Result<()> {
        each!(self, filter => filter.validate())
    }

    pub(crate) fn freeze(&self) -> Result<Frozen> {
        each!(self, filter => filter.freeze())
    }
}
