//! The exact counts of one open segment: an open table from marks to their counts by row.
//!
//! A slot holds what an event needs, its key's newest row: one line of memory for an event. What a key had
//! in older rows hangs on a chain, newest first.
//!
//! A mark's home is its first bits and the entries behind it follow, so the table is almost sorted by mark
//! as it lies, and growing reads and writes it in one sweep. Marks are halves of digests; who lets strangers choose keys uses the keyed hash.

use super::{Item, Mark};
use crate::batch::prefetch;
use crate::error::{Error, Result};

/// The end of a chain.
const NONE: u32 = u32::MAX;
/// In a slot's row: the key is among the names, or too long for them.
const SETTLED: u32 = 1 << 31;

/// One key. Empty if its total is zero.
#[derive(Clone, Copy, Debug)]
struct Slot {
    mark: Mark,
    /// In all rows.
    total: u64,
    /// In the newest row.
    count: u64,
    /// The newest row, and `SETTLED`.
    row: u32,
    /// Where its chain begins.
    older: u32,
}

const EMPTY: Slot = Slot { mark: 0, total: 0, count: 0, row: 0, older: NONE };

/// What a key had in an older row.
#[derive(Clone, Copy, Debug)]
struct Older {
    count: u64,
    row: u32,
    next: u32,
}

/// Marks with their counts by row.
#[derive(Clone, Debug)]
pub(super) struct Table {
    slots: Vec<Slot>,
    /// How far a mark is shifted to be a home.
    drop: u32,
    len: usize,
    older: Vec<Older>,
}

impl Default for Table {
    fn default() -> Self {
        Table { slots: vec![EMPTY; 16], drop: 64 - 4, len: 0, older: Vec::new() }
    }
}

impl Table {
    /// How many pairs of key and row there are.
    pub(super) fn entries(&self) -> usize {
        self.len + self.older.len()
    }

    #[inline(always)]
    fn home(&self, mark: Mark) -> usize {
        (mark >> self.drop) as usize
    }

    #[inline(always)]
    fn mask(&self) -> usize {
        self.slots.len() - 1
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, mark: Mark) {
        prefetch(&raw const self.slots[self.home(mark)]);
    }

    /// The slot of a mark, or the empty one where it belongs.
    #[inline(always)]
    fn place(&self, mark: Mark) -> usize {
        let mut at = self.home(mark);
        while self.slots[at].mark != mark && self.slots[at].total != 0 {
            at = (at + 1) & self.mask();
        }
        at
    }

    fn find(&self, mark: Mark) -> Option<&Slot> {
        Some(&self.slots[self.place(mark)]).filter(|slot| slot.total != 0)
    }

    /// Adds to a key's row. Its total now, if the key is not settled; zero if it is.
    #[inline(always)]
    pub(super) fn add(&mut self, mark: Mark, row: u32, count: u64) -> Result<u64> {
        let at = self.place(mark);
        let slot = &mut self.slots[at];
        if slot.total == 0 {
            return self.insert(at, Slot { mark, total: count, count, row, older: NONE });
        }
        let newest = slot.row & !SETTLED;
        if newest == row {
            slot.count = slot.count.saturating_add(count);
        } else {
            self.add_elsewhere(at, row, count)?;
        }
        let slot = &mut self.slots[at];
        slot.total = slot.total.saturating_add(count);
        Ok(if slot.row & SETTLED == 0 { slot.total } else { 0 })
    }

    /// Puts a key into the empty slot where it belongs, or where it belongs among more slots.
    fn insert(&mut self, mut at: usize, slot: Slot) -> Result<u64> {
        if self.len >= self.slots.len() / 8 * 5 {
            self.grow()?;
            at = self.place(slot.mark);
        }
        self.slots[at] = slot;
        self.len += 1;
        Ok(slot.total)
    }

    /// Adds to a row that is not the key's newest so far.
    fn add_elsewhere(&mut self, at: usize, row: u32, count: u64) -> Result<()> {
        let slot = &mut self.slots[at];
        let (newest, settled) = (slot.row & !SETTLED, slot.row & SETTLED);
        if row > newest {
            let older = Older { count: slot.count, row: newest, next: slot.older };
            let link = push(&mut self.older, older)?;
            (slot.count, slot.row, slot.older) = (count, row | settled, link);
            return Ok(());
        }
        // Rows fall along the chain.
        let (mut before, mut next) = (NONE, slot.older);
        while next != NONE && self.older[next as usize].row > row {
            (before, next) = (next, self.older[next as usize].next);
        }
        if next != NONE && self.older[next as usize].row == row {
            let older = &mut self.older[next as usize];
            older.count = older.count.saturating_add(count);
            return Ok(());
        }
        let link = push(&mut self.older, Older { count, row, next })?;
        match before {
            NONE => slot.older = link,
            before => self.older[before as usize].next = link,
        }
        Ok(())
    }

    /// Twice the slots.
    #[cold]
    fn grow(&mut self) -> Result<()> {
        let mut slots = Vec::new();
        let wanted = 2 * self.slots.len();
        if wanted > NONE as usize || slots.try_reserve_exact(wanted).is_err() {
            return Err(too_large(wanted));
        }
        slots.resize(wanted, EMPTY);
        let old = std::mem::replace(&mut self.slots, slots);
        self.drop -= 1;
        for slot in old.into_iter().filter(|slot| slot.total != 0) {
            let at = self.place(slot.mark);
            self.slots[at] = slot;
        }
        Ok(())
    }

    /// The total of a key; zero if it is not inside.
    pub(super) fn total(&self, mark: Mark) -> u64 {
        self.find(mark).map_or(0, |slot| slot.total)
    }

    /// Says whether a key that is inside needs no name any more.
    pub(super) fn settle(&mut self, mark: Mark, settled: bool) {
        let at = self.place(mark);
        let slot = &mut self.slots[at];
        slot.row = slot.row & !SETTLED | if settled { SETTLED } else { 0 };
    }

    /// Whether the key is inside and needs no name.
    pub(super) fn is_settled(&self, mark: Mark) -> bool {
        self.find(mark).is_some_and(|slot| slot.row & SETTLED != 0)
    }

    /// The rows of a key and its count in each, the newest first.
    pub(super) fn rows_of(&self, mark: Mark) -> impl Iterator<Item = (u32, u64)> {
        self.find(mark).into_iter().flat_map(|slot| self.chain(slot))
    }

    fn chain(&self, slot: &Slot) -> impl Iterator<Item = (u32, u64)> + use<'_> {
        let mut next = slot.older;
        let older = std::iter::from_fn(move || {
            let older = self.older.get(next as usize)?;
            next = older.next;
            Some((older.row, older.count))
        });
        std::iter::once((slot.row & !SETTLED, slot.count)).chain(older)
    }

    /// Every key and its total, in no order.
    pub(super) fn totals(&self) -> impl Iterator<Item = (Mark, u64)> {
        let full = self.slots.iter().filter(|slot| slot.total != 0);
        full.map(|slot| (slot.mark, slot.total))
    }

    /// Every count, by mark, then by row.
    pub(super) fn items(&self) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        items.try_reserve_exact(self.entries()).map_err(|_| too_large(self.entries()))?;
        for slot in self.slots.iter().filter(|slot| slot.total != 0) {
            let item = |(row, count)| Item { mark: slot.mark, row, count };
            items.extend(self.chain(slot).map(item));
        }
        items.sort_unstable_by_key(|item| (item.mark, item.row));
        Ok(items)
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> u64 {
        (size_of::<Slot>() * self.slots.capacity() + size_of::<Older>() * self.older.capacity())
            as u64
    }
}

/// Where the new entry is.
fn push(chains: &mut Vec<Older>, older: Older) -> Result<u32> {
    let at = chains.len();
    if at >= NONE as usize || chains.try_reserve(1).is_err() {
        return Err(too_large(at));
    }
    chains.push(older);
    Ok(at as u32)
}

#[cold]
pub(super) fn too_large(entries: usize) -> Error {
    let needed = (entries as u64).saturating_mul(size_of::<Slot>() as u64);
    Error::Capacity { needed, limit: isize::MAX as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_zero_is_a_key_like_any_other() {
        let mut table = Table::default();
        assert_eq!(table.total(0), 0);
        assert_eq!(table.add(0, 3, 2).unwrap(), 2);
        assert_eq!((table.entries(), table.total(0)), (1, 2));
    }
}
