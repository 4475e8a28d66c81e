//! Which keys of an open segment are kept by name: the most frequent ones, in bounded memory.
//!
//! Every total is exact (`table.rs`), so nothing is estimated here; but a key can be named only while an event
//! brings it. So keys are listed as soon as their total reaches a threshold. When there are too many, the
//! rarest go and the threshold rises. It rises by an eighth at least, so that keys of nearly the same
//! total do not come and go with every event; a list of four times as many as are wanted makes up for it.
//!
//! A batch lists marks first and brings the keys at its end: the threshold has risen by then, and few are
//! left to be looked up.

use super::table::Table;
use super::{Mark, Named};
use crate::error::Result;
use crate::key::{Key, OwnedKey};

/// How many times more than wanted stay when the list is thinned out; twice that many make it necessary.
const SPARE: usize = 4;
/// Bytes for each name that is wanted; together they bound the list. A few names may take as much as
/// eight, so that the longest key has room.
const BYTES: usize = 2048;
/// Longer keys have no name.
pub(super) const LONGEST: usize = 4096;

/// Bytes of names that every sealed segment may have.
const LEAST: usize = 2048;

/// The names that a sealed segment with so many pairs of key and row can afford: an eighth of what the pairs
/// take themselves, at four bytes each. Long keys that came once or twice each would otherwise be most of
/// a segment. `unlisted` counts those that go.
pub(super) fn affordable(names: Vec<Named>, unlisted: u64, pairs: usize) -> (Vec<Named>, u64) {
    let (mut kept, budget) = (names, LEAST.max(pairs / 2));
    let sums = kept.iter().scan(0, |sum, named| {
        *sum += named.key.encoded_len();
        Some(*sum)
    });
    let stay = sums.take_while(|sum| *sum <= budget).count();
    // The names come by count, so the first that goes is the most frequent of those.
    let unlisted = kept.get(stay).map_or(unlisted, |gone| unlisted.max(gone.count));
    kept.truncate(stay);
    (kept, unlisted)
}

#[derive(Clone, Debug)]
struct Listed {
    mark: Mark,
    /// None while a batch has not brought it yet.
    key: Option<OwnedKey>,
}

impl Listed {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.key.as_ref().map_or(0, |key| key.heap_bytes() as usize)
    }
}

/// The keys that may be among the most frequent.
#[derive(Clone, Debug)]
pub(super) struct Names {
    wanted: usize,
    /// Totals from here on are listed.
    threshold: u64,
    listed: Vec<Listed>,
    bytes: usize,
}

impl Names {
    pub(super) fn new(wanted: usize) -> Self {
        // Totals reach no more than this.
        let threshold = if wanted == 0 { u64::MAX } else { 1 };
        Names { wanted, threshold, listed: Vec::new(), bytes: 0 }
    }

    /// Whether a key of that total must be listed; settled keys have zero.
    #[inline(always)]
    pub(super) fn wants(&self, total: u64) -> bool {
        total >= self.threshold && self.wanted > 0
    }

    /// Lists a mark, whose key follows.
    pub(super) fn list(&mut self, mark: Mark, table: &mut Table) {
        table.settle(mark, true);
        let listed = Listed { mark, key: None };
        self.bytes += listed.bytes();
        self.listed.push(listed);
        self.thin_out(table);
    }

    /// The key of a mark that was listed without. True if it is new on the list.
    pub(super) fn name(&mut self, mark: Mark, key: Key<'_>, table: &mut Table) -> Result<bool> {
        let Some(at) = self.listed.iter().rposition(|each| each.mark == mark && each.key.is_none())
        else {
            return Ok(false);
        };
        let owned = OwnedKey::of(key)?;
        if owned.encoded_len() > LONGEST {
            // It stays settled, so that it is not asked for with every event.
            self.bytes -= self.listed.swap_remove(at).bytes();
            return Ok(false);
        }
        self.bytes += owned.heap_bytes() as usize;
        self.listed[at].key = Some(owned);
        self.thin_out(table);
        Ok(true)
    }

    /// Takes marks off whose keys did not follow.
    pub(super) fn drop_nameless(&mut self, table: &mut Table) {
        self.listed.retain(|each| {
            if each.key.is_none() {
                table.settle(each.mark, false);
                self.bytes -= each.bytes();
            }
            each.key.is_some()
        });
    }

    fn budget(&self) -> usize {
        BYTES * self.wanted.max(8)
    }

    fn thin_out(&mut self, table: &mut Table) {
        if self.listed.len() <= 2 * SPARE * self.wanted && self.bytes <= self.budget() {
            return;
        }
        // The order of equals is that of marks, so that equal events leave equal lists.
        self.listed.sort_by_cached_key(|each| (u64::MAX - table.total(each.mark), each.mark));
        let (mut stay, mut bytes) = (0, 0);
        while stay < (SPARE * self.wanted).min(self.listed.len()) {
            bytes += self.listed[stay].bytes();
            if 2 * bytes > self.budget() {
                break;
            }
            stay += 1;
        }
        for gone in self.listed.drain(stay..) {
            table.settle(gone.mark, false);
        }
        self.bytes = self.listed.iter().map(Listed::bytes).sum();
        let least = self.listed.last().map_or(self.threshold, |each| table.total(each.mark));
        let risen = least.saturating_add(least / 8).saturating_add(1);
        self.threshold = self.threshold.max(risen);
    }

    /// The most frequent keys, and the largest total of all others.
    pub(super) fn top(&self, table: &Table) -> (Vec<Named>, u64) {
        let named = self.listed.iter().filter_map(|each| Some((each.mark, each.key.as_ref()?)));
        let mut named: Vec<_> = named.map(|(mark, key)| (table.total(mark), mark, key)).collect();
        named.sort_unstable_by_key(|(total, mark, _)| (u64::MAX - total, *mark));
        named.truncate(self.wanted);
        let mut marks: Vec<Mark> = named.iter().map(|(_, mark, _)| *mark).collect();
        marks.sort_unstable();
        let unlisted = table.totals().fold(0, |most, (mark, total)| {
            if total > most && marks.binary_search(&mark).is_err() { total } else { most }
        });
        let names = named.into_iter().map(|(count, _, key)| Named { key: key.clone(), count });
        (names.collect(), unlisted)
    }

    /// Every key that has a name.
    pub(super) fn keys(&self) -> impl Iterator<Item = &OwnedKey> {
        self.listed.iter().filter_map(|each| each.key.as_ref())
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(count: u64, length: usize) -> Named {
        Named { key: OwnedKey::of(Key::Bytes(&vec![b'a'; length])).unwrap(), count }
    }

    #[test]
    fn a_small_segment_has_few_long_names_and_unlisted_counts_the_rest() {
        let names: Vec<Named> = (0..100).map(|i| named(1000 - i, 100)).collect();
        let (kept, unlisted) = affordable(names.clone(), 3, 100);
        assert!((15..=20).contains(&kept.len()), "{}", kept.len());
        assert_eq!(unlisted, names[kept.len()].count);
        let (more, _) = affordable(names.clone(), 3, 10_000);
        assert!(more.len() > 2 * kept.len());
        assert_eq!(affordable(names.clone(), 3, 1 << 20), (names, 3));
    }
}
