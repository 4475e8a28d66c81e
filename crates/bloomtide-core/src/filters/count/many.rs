//! Batches of a filter whose counters grow.
//!
//! Questions split the batch by rows. Additions to a blocked filter split by partition: a key's cells are
//! in one, so every thread rebuilds only what is its own. Classic keys have cells in many partitions,
//! and removals may fail at any row: those go one by one.

use super::state::State;
use super::turn::Turn;
use super::{CountFilter, FEW, MOST};
use crate::batch::{self, GROUP, KeySource};
use crate::cells::{GrowingCells, smallest_each};
use crate::crew::{Crew, Hands};
use crate::error::{Error, Result};
use crate::filters::Policy;
use crate::filters::group::{self, Group};
use crate::filters::repeated::{self, Gathered, Repeated};
use crate::hash::KeyHash;
use crate::owners::{Dealing, Owners, Part};
use crate::placement::Layout;
use crossbeam_epoch::{self as epoch, Guard};
use std::convert::Infallible;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// What a batch comes to: the row that failed, after all rows before it went in.
pub type Outcome = std::result::Result<(), (usize, Error)>;

impl<C: GrowingCells> CountFilter<C> {
    /// Adds every key, in order, `counts[row]` times or once; `out[row]` as `add` would have answered.
    pub fn add_many(
        &self,
        keys: &dyn KeySource,
        counts: Option<&[u64]>,
        out: &mut [bool],
        crew: &mut Crew,
    ) -> Outcome {
        let plan = self.plan();
        let by_partition = plan.placement.layout == Layout::Blocked;
        let hands = crew.muster(keys.len());
        if by_partition && hands.count() > 1 {
            return self.add_by_partition(keys, counts, out, hands);
        }
        if by_partition && plan.policy == Policy::Plain && group::serves(&plan.placement) {
            if counts.is_none() {
                return self.add_gathered(keys, out);
            }
            return self.add_groups(keys, 0..keys.len(), counts, out);
        }
        self.by_groups(keys, 0..keys.len(), |rows, digests, _| {
            self.add_rows(&mut Turn::at(&self.gate), rows, digests, counts, out)
        })
    }

    /// Adds keys one by one.
    fn add_rows(
        &self,
        turn: &mut Turn<'_>,
        rows: Range<usize>,
        digests: &[KeyHash],
        counts: Option<&[u64]>,
        out: &mut [bool],
    ) -> Outcome {
        for (row, digest) in rows.zip(digests) {
            let count = counts.map_or(1, |counts| counts[row]);
            out[row] = self.add_in(turn, *digest, count).map_err(|error| (row, error))?;
        }
        Ok(())
    }

    /// Adds the keys of a plain, blocked filter by groups.
    fn add_groups(
        &self,
        keys: &dyn KeySource,
        rows: Range<usize>,
        counts: Option<&[u64]>,
        out: &mut [bool],
    ) -> Outcome {
        let mut by = [1; GROUP];
        self.groups(keys, rows, |rows, group| {
            if let Some(counts) = counts {
                by[..rows.len()].copy_from_slice(&counts[rows.clone()]);
            }
            let first = rows.start;
            let new = &mut out[rows];
            self.add_group(group, &by, new).map_err(|(key, error)| (first + key, error))
        })
    }

    /// The same where keys that come again are added at once, as long as there are enough of them.
    fn add_gathered(&self, keys: &dyn KeySource, out: &mut [bool]) -> Outcome {
        let add = |rows: Range<usize>, window: &[KeyHash], repeated: &Repeated<true>| {
            let first = rows.start;
            self.add_repeated(window, repeated, &mut out[rows])
                .map_err(|(row, error)| (first + row, error))
        };
        let rest = repeated::in_windows(keys, &self.hasher, 0..keys.len(), add)?;
        self.add_groups(keys, rest, None, out)
    }

    /// Adds what was gathered from a window.
    fn add_repeated(
        &self,
        window: &[KeyHash],
        repeated: &Repeated<true>,
        out: &mut [bool],
    ) -> Outcome {
        let keys = Gathered { window, rows: repeated.rows() };
        out.fill(false);
        let (mut by, mut new) = ([0; GROUP], [false; GROUP]);
        self.groups(&keys, 0..keys.len(), |group, positions| {
            let rows = &keys.rows[group.clone()];
            by.iter_mut().zip(rows).for_each(|(by, row)| *by = repeated.count(*row));
            let new = &mut new[..rows.len()];
            self.add_group(positions, &by, new).map_err(|(key, error)| {
                let failed = usize::from(rows[key]);
                self.take_back(&keys, group.start + key);
                (failed, error)
            })?;
            for (row, new) in rows.iter().zip(new) {
                out[usize::from(*row)] = *new;
            }
            Ok(())
        })
    }

    /// Takes back what was added too early: occurrences of keys behind the one that failed.
    #[cold]
    fn take_back(&self, keys: &Gathered<'_>, failed: usize) {
        let mut turn = Turn::at(&self.gate);
        let added = |digest: &KeyHash| {
            keys.rows[..failed].iter().any(|row| keys.window[usize::from(*row)] == *digest)
        };
        let behind = &keys.window[usize::from(keys.rows[failed]) + 1..];
        for digest in behind.iter().filter(|digest| added(digest)) {
            let cells = self.plan().placement.distinct::<FEW>(*digest);
            self.lower(&mut turn, cells.as_slice(), 1);
        }
    }

    /// Adds a group of keys, or fails at one of them.
    fn add_group(&self, group: &Group, by: &[u64; GROUP], new: &mut [bool]) -> Outcome {
        let mut turn = Turn::at(&self.gate);
        let mut next = 0;
        while next < new.len() {
            let state = self.state(turn.guard());
            let cells = &group.positions[..state.plan.hashes() as usize];
            let raised = state.cells.raise_group(cells, by, next..new.len(), new);
            let Err(stopped) = raised else { break };
            let key = stopped.key;
            let own = &group.key::<FEW>(key)[..cells.len()];
            new[key] =
                self.raise_rest(&mut turn, own, stopped, by[key]).map_err(|error| (key, error))?;
            next = key + 1;
        }
        Ok(())
    }

    fn add_by_partition(
        &self,
        keys: &dyn KeySource,
        counts: Option<&[u64]>,
        out: &mut [bool],
        hands: Hands<'_>,
    ) -> Outcome {
        let _uncut = self.cutting.read().unwrap_or_else(PoisonError::into_inner);
        let plan = self.plan();
        let (cut, placement) = (plan.cut(), plan.placement);
        let failed: Mutex<Option<(usize, Error)>> = Mutex::new(None);
        let items = |row, hash| std::iter::once((cut.locate(placement.block(hash)).0, (hash, row)));
        let apply = |part: Part<'_, (KeyHash, usize)>| {
            // SAFETY: the batch is inside the gate, and its threads change different partitions.
            let mut turn = unsafe { Turn::alone() };
            let ahead = |(hash, _)| self.ahead(hash);
            part.add(ahead, |items, new| {
                for ((hash, row), new) in items.iter().zip(new) {
                    let count = counts.map_or(1, |counts| counts[*row]);
                    *new = self.add_in(&mut turn, *hash, count).unwrap_or_else(|error| {
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        failed.get_or_insert((*row, error));
                        false
                    });
                }
            });
        };
        let owners = Owners::new(hands.count(), cut.partitions());
        let dealing = Dealing { keys, hasher: &self.hasher, owners, per_key: 1, items, apply };
        dealing.run(out, &hands, || self.gate.enter());
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// Asks for the first cell of a key that is not needed yet.
    #[inline(always)]
    fn ahead(&self, hash: KeyHash) {
        // SAFETY: inside the gate nothing is replaced.
        let state = self.state(unsafe { epoch::unprotected() });
        let cells = state.plan.placement.all::<FEW>(hash);
        cells.as_slice().iter().for_each(|cell| state.cells.prefetch(*cell));
    }

    /// Removes every key, in order, `counts[row]` times or once, until one is absent.
    pub fn remove_many(&self, keys: &dyn KeySource, counts: Option<&[u64]>) -> Outcome {
        self.by_groups(keys, 0..keys.len(), |rows, digests, _| {
            let mut turn = Turn::at(&self.gate);
            for (digest, row) in digests.iter().zip(rows) {
                let count = counts.map_or(1, |counts| counts[row]);
                self.remove_in(&mut turn, *digest, count).map_err(|error| (row, error))?;
            }
            Ok(())
        })
    }

    /// Adds, removes (below zero) or only counts (zero), in order, until a key is absent; `out[row]` is the
    /// key's count after it.
    pub fn change_many(&self, keys: &dyn KeySource, changes: &[i64], out: &mut [u64]) -> Outcome {
        self.by_groups(keys, 0..keys.len(), |rows, digests, group| {
            let mut turn = Turn::at(&self.gate);
            let plan = self.plan();
            let (placement, plainly) = (plan.placement, plan.policy == Policy::Plain);
            for (key, row) in rows.enumerate() {
                let (digest, change) = (digests[key], changes[row]);
                let count = match group {
                    Some(group) => {
                        let cells = &group.key::<FEW>(key)[..placement.hashes as usize];
                        let state = self.state(turn.guard());
                        match plainly.then(|| state.cells.shift(cells, change)).flatten() {
                            Some(count) => Ok(count),
                            None => self.change_one(&mut turn, cells, change),
                        }
                    }
                    None => {
                        let cells = placement.distinct::<MOST>(digest);
                        self.change_one(&mut turn, cells.as_slice(), change)
                    }
                };
                out[row] = count.map_err(|error| (row, error))?;
            }
            Ok(())
        })
    }

    /// One of these, for a key with these cells.
    #[inline(always)]
    fn change_one(&self, turn: &mut Turn<'_>, cells: &[u64], change: i64) -> Result<u64> {
        if change > 0 {
            self.raise(turn, cells, change.unsigned_abs())?;
        } else if change < 0 {
            self.remove_from(turn, cells, change.unsigned_abs())?;
        }
        Ok(self.state(turn.guard()).smallest(cells, turn.guard()))
    }

    /// `count` for every key.
    pub fn count_many(&self, keys: &dyn KeySource, out: &mut [u64], crew: &mut Crew) {
        self.ask_many(keys, out, crew, |count| count);
    }

    /// Whether each key may be inside.
    pub fn contains_many(&self, keys: &dyn KeySource, out: &mut [bool], crew: &mut Crew) {
        self.ask_many(keys, out, crew, |count| count != 0);
    }

    /// Asks for every key; one that comes again only once, as long as enough do.
    fn ask_many<T: Copy + Send>(
        &self,
        keys: &dyn KeySource,
        out: &mut [T],
        crew: &mut Crew,
        answer: impl Fn(u64) -> T + Sync,
    ) {
        batch::split(out, crew, |rows, out| {
            let first = rows.start;
            let once = |rows: Range<usize>, window: &[KeyHash], repeated: &Repeated<false>| {
                let out = &mut out[rows.start - first..rows.end - first];
                let keys = Gathered { window, rows: repeated.rows() };
                self.ask(&keys, 0..keys.len(), |key, count| {
                    out[usize::from(keys.rows[key])] = answer(count);
                });
                repeated.spread(out);
                Ok::<(), Infallible>(())
            };
            let Ok(rest) = repeated::in_windows(keys, &self.hasher, rows, once);
            self.ask(keys, rest, |row, count| out[row - first] = answer(count));
        });
    }

    /// Tells the count of each of these rows.
    fn ask(&self, keys: &dyn KeySource, rows: Range<usize>, mut tell: impl FnMut(usize, u64)) {
        let mut least = [0; GROUP];
        let Ok(()) = self.by_groups(keys, rows, |rows, digests, positions| {
            let guard = &epoch::pin();
            let state = self.state(guard);
            match positions {
                Some(group) => {
                    state.smallest_of_group(group, &mut least, guard);
                    rows.zip(least).for_each(|(row, least)| tell(row, least));
                }
                None => {
                    for (row, digest) in rows.zip(digests) {
                        tell(row, state.count(*digest, guard));
                    }
                }
            }
            Ok::<(), Infallible>(())
        });
    }

    /// Hashes a group of rows and prefetches its cells, then hands out the group before: its rows, their
    /// digests and, where they were derived together, their positions.
    fn by_groups<E>(
        &self,
        keys: &dyn KeySource,
        rows: Range<usize>,
        mut probe: impl FnMut(Range<usize>, &[KeyHash], Option<&Group>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        if group::serves(&self.plan().placement) {
            return self.groups(keys, rows, |rows, group| {
                probe(rows, &group.digests, (!group.repeats).then_some(group))
            });
        }
        let mut digests = [KeyHash::default(); GROUP];
        for start in rows.clone().step_by(GROUP) {
            let rows = start..rows.end.min(start + GROUP);
            keys.fill(&self.hasher, start, &mut digests[..rows.len()]);
            probe(rows, &digests, None)?;
        }
        Ok(())
    }

    /// The same where positions are derived together.
    fn groups<E>(
        &self,
        keys: &dyn KeySource,
        rows: Range<usize>,
        probe: impl FnMut(Range<usize>, &Group) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let plan = self.plan();
        let hashes = plan.hashes() as usize;
        let ahead = |group: &Group| {
            let guard = &epoch::pin();
            let cells = &self.state(guard).cells;
            if plan.placement.layout == Layout::Blocked {
                (0..GROUP).for_each(|key| match hashes {
                    4 => cells.prefetch_block(&group.key::<4>(key), guard),
                    _ => cells.prefetch_block(&group.key::<FEW>(key)[..hashes], guard),
                });
            } else {
                group.positions[..hashes].iter().flatten().for_each(|cell| cells.prefetch(*cell));
            }
        };
        group::by_groups(keys, &self.hasher, &plan.placement, rows, ahead, probe)
    }
}

impl Group {
    /// The first K cells of one key.
    #[inline(always)]
    fn key<const K: usize>(&self, key: usize) -> [u64; K] {
        std::array::from_fn(|i| self.positions[i][key])
    }
}

impl<C: GrowingCells> State<C> {
    #[inline(always)]
    fn smallest_of_group(&self, group: &Group, least: &mut [u64; GROUP], guard: &Guard) {
        let cells = &group.positions[..self.plan.hashes() as usize];
        match self.plan.placement.layout {
            Layout::Blocked => self.cells.smallest_of_group(cells, least, guard),
            Layout::Classic => smallest_each(&self.cells, cells, least, guard),
        }
    }
}
