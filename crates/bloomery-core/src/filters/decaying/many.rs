//! Batches of a time-decaying filter: rows one by one in order, their cells asked for ahead.

use super::{FEW, MOST, TimeDecayingBloomFilter, When};
use crate::batch::{self, GROUP, KeySource};
use crate::crew::Crew;
use crate::filters::group::{Group, by_groups, serves};
use crate::hash::KeyHash;
use crate::positions::Cells;
use std::convert::Infallible;
use std::ops::Range;

/// When the rows of a batch happened.
#[derive(Clone, Copy, Debug)]
pub enum Epochs<'a> {
    /// All at once.
    One(When),
    /// Each in its own epoch.
    Each(&'a [i64]),
}

impl Epochs<'_> {
    #[inline(always)]
    fn of(&self, row: usize) -> When {
        match self {
            Epochs::One(when) => *when,
            Epochs::Each(epochs) => When { epoch: epochs[row], by_clock: false },
        }
    }
}

/// Filters up to this size stay in a core's own cache, where asking ahead only costs.
const IN_CACHE: u64 = 1 << 20;

impl TimeDecayingBloomFilter {
    /// Adds every key, once or as often as `counts` says, in order; `out[i]` as `add` would have answered.
    pub fn add_many<S: KeySource + ?Sized>(
        &self,
        keys: &S,
        counts: Option<&[u64]>,
        times: Epochs<'_>,
        out: &mut [bool],
    ) {
        let count = |row: usize| counts.map_or(1, |counts| counts[row]);
        if serves(&self.plan.placement) {
            let hashes = self.plan.hashes() as usize;
            return self.by_groups(keys, 0..keys.len(), |rows, group| {
                let _entered = self.gate.enter();
                batch::at_best(|| {
                    self.prefetch_tables(group);
                    for (key, row) in rows.enumerate() {
                        let hash = group.digests[key];
                        out[row] = if group.repeats {
                            let cells = self.cells::<FEW>(hash);
                            self.raise(cells.as_slice(), hash, count(row), times.of(row))
                        } else {
                            let cells = cells_of(group, key);
                            self.raise(&cells[..hashes], hash, count(row), times.of(row))
                        };
                    }
                });
            });
        }
        match self.plan.hashes() as usize {
            ..=FEW => self.add_many_of::<FEW, S>(keys, count, times, out),
            _ => self.add_many_of::<MOST, S>(keys, count, times, out),
        }
    }

    fn add_many_of<const K: usize, S: KeySource + ?Sized>(
        &self,
        keys: &S,
        count: impl Fn(usize) -> u64,
        times: Epochs<'_>,
        out: &mut [bool],
    ) {
        let prepare = |hash| {
            let cells = self.cells::<K>(hash);
            self.store.prefetch(cells.as_slice());
            (cells, hash)
        };
        let probe = |first: usize, group: &[(Cells<K>, KeyHash)]| {
            let _entered = self.gate.enter();
            for (row, (cells, hash)) in (first..).zip(group) {
                out[row] = self.raise(cells.as_slice(), *hash, count(row), times.of(row));
            }
        };
        batch::pipeline_prepared(keys, &self.hasher, 0..keys.len(), prepare, probe);
    }

    /// `answer(units)` for every key, as of its epoch.
    pub fn ask_many<S: KeySource + ?Sized, T: Send>(
        &self,
        keys: &S,
        times: Epochs<'_>,
        out: &mut [T],
        crew: &mut Crew,
        answer: impl Fn(u64) -> T + Sync,
    ) {
        if self.now().is_none() {
            out.fill_with(|| answer(0));
            return;
        }
        batch::split(out, crew, |rows, out| self.ask_rows(keys, rows, times, out, &answer));
    }

    fn ask_rows<S: KeySource + ?Sized, T>(
        &self,
        keys: &S,
        rows: Range<usize>,
        times: Epochs<'_>,
        out: &mut [T],
        answer: impl Fn(u64) -> T,
    ) {
        let first = rows.start;
        let ask = |cells: &[u64], hash: KeyHash, row: usize| {
            let asked = self.asked(times.of(row).epoch);
            answer(self.store.units(cells, hash, asked, &self.decay))
        };
        if serves(&self.plan.placement) {
            let hashes = self.plan.hashes() as usize;
            return self.by_groups(keys, rows, |rows, group| {
                let _entered = self.enter_to_read();
                batch::at_best(|| {
                    self.prefetch_tables(group);
                    for (key, row) in rows.enumerate() {
                        let cells = cells_of(group, key);
                        out[row - first] = ask(&cells[..hashes], group.digests[key], row);
                    }
                });
            });
        }
        let prepare = |hash| {
            let cells: Cells<MOST> = self.plan.placement.all(hash);
            self.store.prefetch(cells.as_slice());
            (cells, hash)
        };
        batch::pipeline_prepared(keys, &self.hasher, rows, prepare, |start, group| {
            let _entered = self.enter_to_read();
            for (row, (cells, hash)) in (start..).zip(group) {
                out[row - first] = ask(cells.as_slice(), *hash, row);
            }
        });
    }

    /// Asks for what the lines of a group lead to. The caller may read.
    #[inline(always)]
    fn prefetch_tables(&self, group: &Group) {
        if self.store.tears() && self.bytes() > IN_CACHE {
            let hashes = self.plan.hashes() as usize;
            for key in 0..GROUP {
                self.store.prefetch_tables(&cells_of(group, key)[..hashes]);
            }
        }
    }

    fn by_groups<S: KeySource + ?Sized>(
        &self,
        keys: &S,
        rows: Range<usize>,
        mut probe: impl FnMut(Range<usize>, &Group),
    ) {
        let hashes = self.plan.hashes() as usize;
        let large = self.bytes() > IN_CACHE;
        let ahead = |group: &Group| {
            for key in (0..GROUP).filter(|_| large) {
                self.store.prefetch(&cells_of(group, key)[..hashes]);
            }
        };
        let probe = |rows, group: &Group| {
            probe(rows, group);
            Ok::<(), Infallible>(())
        };
        // Nothing in it can fail.
        let Ok(()) = by_groups(keys, &self.hasher, &self.plan.placement, rows, ahead, probe);
    }
}

/// The positions of one key; those beyond its hashes are another group's.
#[inline(always)]
fn cells_of(group: &Group, key: usize) -> [u64; FEW] {
    std::array::from_fn(|i| group.positions[i][key])
}
