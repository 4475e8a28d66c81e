//! Batches of a time-decaying filter: rows one by one in order, their cells asked for ahead.

use super::store::{Store, on};
use super::{FEW, MOST, TimeDecayingBloomFilter, When};
use crate::batch::{self, GROUP, KeySource, on_the_best_processor};
use crate::crew::Crew;
use crate::filters::Policy;
use crate::filters::group::{Group, IN_CACHE, each_group, serves};
use crate::filters::repeated::{self, Gathered, Repeated};
use crate::hash::KeyHash;
use crate::positions::Cells;
use std::convert::Infallible;
use std::ops::Range;
use std::sync::atomic::Ordering;

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

impl TimeDecayingBloomFilter {
    /// Adds every key, once or as often as `counts` says, in order; `out[i]` as `add` would have answered.
    pub fn add_many(
        &self,
        keys: &dyn KeySource,
        counts: Option<&[u64]>,
        times: Epochs<'_>,
        out: &mut [bool],
    ) {
        if serves(&self.plan.placement) {
            let mut rows = 0..keys.len();
            if let (Epochs::One(when), None) = (times, counts) {
                if !self.gathers(when) {
                    // As a rule the first keys move the time there.
                    rows.start = GROUP.min(rows.end);
                    self.add_groups(keys, 0..rows.start, None, times, out);
                }
                if self.gathers(when) {
                    return self.add_gathered(keys, rows, when, out);
                }
            }
            return self.add_groups(keys, rows, counts, times, out);
        }
        let count = |row: usize| counts.map_or(1, |counts| counts[row]);
        match self.plan.hashes() as usize {
            ..=FEW => self.add_many_of::<FEW>(keys, count, times, out),
            _ => self.add_many_of::<MOST>(keys, count, times, out),
        }
    }

    fn add_groups(
        &self,
        keys: &dyn KeySource,
        rows: Range<usize>,
        counts: Option<&[u64]>,
        times: Epochs<'_>,
        out: &mut [bool],
    ) {
        self.by_groups(keys, rows, |rows, group| {
            let _entered = self.gate.enter();
            add_group(self, rows, group, counts, times, out);
        });
    }

    /// Whether ten adds of a key are one add of ten. Not if the time of each is judged by itself: it may be late, or a
    /// vote.
    fn gathers(&self, when: When) -> bool {
        self.plan.policy == Policy::Plain && when.epoch == self.time.calm.load(Ordering::Relaxed)
    }

    /// Adds keys that come again at once, as long as there are enough of them.
    fn add_gathered(&self, keys: &dyn KeySource, rows: Range<usize>, when: When, out: &mut [bool]) {
        let times = Epochs::One(when);
        let (mut counts, mut new) = (Vec::new(), Vec::new());
        let add = |rows: Range<usize>, window: &[KeyHash], repeated: &Repeated<true>| {
            let keys = Gathered { window, rows: repeated.rows() };
            counts.clear();
            counts.extend(keys.rows.iter().map(|row| repeated.count(*row)));
            new.resize(keys.len(), false);
            self.add_groups(&keys, 0..keys.len(), Some(&counts), times, &mut new);
            let out = &mut out[rows];
            out.fill(false);
            for (row, new) in keys.rows.iter().zip(&new) {
                out[usize::from(*row)] = *new;
            }
            Ok::<(), Infallible>(())
        };
        let Ok(rest) = repeated::in_windows(keys, &self.hasher, rows, add);
        self.add_groups(keys, rest, None, times, out);
    }

    #[inline(always)]
    fn add_group(
        &self,
        rows: Range<usize>,
        group: &Group,
        counts: Option<&[u64]>,
        times: Epochs<'_>,
        out: &mut [bool],
    ) {
        self.prefetch_tables(group);
        let hashes = self.plan.hashes() as usize;
        for (key, row) in rows.enumerate() {
            let count = counts.map_or(1, |counts| counts[row]);
            out[row] = if group.repeats {
                let cells = self.cells::<FEW>(group.digests[key]);
                self.raise(group.digests[key], cells.as_slice(), count, times.of(row))
            } else {
                let cells = cells_of(group, key);
                self.raise(group.digests[key], &cells[..hashes], count, times.of(row))
            };
        }
    }

    fn add_many_of<const K: usize>(
        &self,
        keys: &dyn KeySource,
        count: impl Fn(usize) -> u64,
        times: Epochs<'_>,
        out: &mut [bool],
    ) {
        let prepare = |hash| {
            let cells = self.cells::<K>(hash);
            on!(&self.store, level => level.prefetch(cells.as_slice()));
            (hash, cells)
        };
        let probe = |first: usize, group: &[(KeyHash, Cells<K>)]| {
            let _entered = self.gate.enter();
            for (row, (hash, cells)) in (first..).zip(group) {
                out[row] = self.raise(*hash, cells.as_slice(), count(row), times.of(row));
            }
        };
        batch::pipeline_prepared(keys, &self.hasher, 0..keys.len(), prepare, probe);
    }

    /// `answer(units)` for every key, as of its epoch.
    pub fn ask_many<T: Send>(
        &self,
        keys: &dyn KeySource,
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

    fn ask_rows<T>(
        &self,
        keys: &dyn KeySource,
        rows: Range<usize>,
        times: Epochs<'_>,
        out: &mut [T],
        answer: impl Fn(u64) -> T,
    ) {
        let first = rows.start;
        if self.aside() != 0 {
            return self.ask_each(keys, first, |row| times.of(row).epoch, out, answer);
        }
        if serves(&self.plan.placement) {
            let mut units = [0; GROUP];
            self.by_groups(keys, rows, |rows, group| {
                let _entered = self.enter_to_read();
                ask_group(self, rows.clone(), group, times, &mut units);
                for (row, units) in rows.zip(units) {
                    out[row - first] = answer(units);
                }
            });
            return;
        }
        let prepare = |hash| {
            let cells: Cells<MOST> = self.plan.placement.all(hash);
            on!(&self.store, level => level.prefetch(cells.as_slice()));
            cells
        };
        batch::pipeline_prepared(keys, &self.hasher, rows, prepare, |start, group| {
            let _entered = self.enter_to_read();
            for (row, cells) in (start..).zip(group) {
                out[row - first] = answer(self.smallest(cells.as_slice(), times.of(row).epoch));
            }
        });
    }

    #[inline(always)]
    fn ask_group(
        &self,
        rows: Range<usize>,
        group: &Group,
        times: Epochs<'_>,
        units: &mut [u64; GROUP],
    ) {
        self.prefetch_tables(group);
        let hashes = self.plan.hashes() as usize;
        for (key, row) in rows.enumerate() {
            units[key] = self.smallest(&cells_of(group, key)[..hashes], times.of(row).epoch);
        }
    }

    /// Asks for what the lines of a group lead to. The caller may read.
    #[inline(always)]
    fn prefetch_tables(&self, group: &Group) {
        if self.store.tears() && self.bytes() > IN_CACHE {
            let hashes = self.plan.hashes() as usize;
            for key in 0..GROUP {
                let cells = cells_of(group, key);
                on!(&self.store, level => level.prefetch_tables(&cells[..hashes]));
            }
        }
    }

    fn by_groups(
        &self,
        keys: &dyn KeySource,
        rows: Range<usize>,
        probe: impl FnMut(Range<usize>, &Group),
    ) {
        let hashes = self.plan.hashes() as usize;
        let large = self.bytes() > IN_CACHE;
        let ahead = |group: &Group| {
            for key in (0..GROUP).filter(|_| large) {
                let cells = cells_of(group, key);
                on!(&self.store, level => level.prefetch(&cells[..hashes]));
            }
        };
        each_group(keys, &self.hasher, &self.plan.placement, rows, ahead, probe);
    }
}

on_the_best_processor!(add_group(
    &TimeDecayingBloomFilter,
    rows: Range<usize>,
    group: &Group,
    counts: Option<&[u64]>,
    times: Epochs<'_>,
    out: &mut [bool]
));
on_the_best_processor!(ask_group(
    &TimeDecayingBloomFilter,
    rows: Range<usize>,
    group: &Group,
    times: Epochs<'_>,
    units: &mut [u64; GROUP]
));

/// The positions of one key; those beyond its hashes are another group's.
#[inline(always)]
fn cells_of(group: &Group, key: usize) -> [u64; FEW] {
    std::array::from_fn(|i| group.positions[i][key])
}
