//! Which rows of a segment have cells: those with events. A row of an empty window costs its record and no bit.

use super::RowRecord;

/// The rows with cells, in order.
#[derive(Clone, Debug)]
pub(super) struct Filled {
    /// Their numbers among all rows.
    numbers: Vec<u32>,
    /// How many of them lie before each row, and at last before the end.
    before: Vec<u32>,
}

impl Filled {
    /// The rows that have events.
    pub(super) fn of(rows: &[RowRecord]) -> Self {
        let (mut numbers, mut before) = (Vec::new(), vec![0]);
        for (number, row) in (0..).zip(rows) {
            if row.seen.events > 0 {
                numbers.push(number);
            }
            before.push(numbers.len() as u32);
        }
        Filled { numbers, before }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// How many of them lie before a row; for one of them, its place.
    #[inline]
    pub(super) fn before(&self, row: usize) -> usize {
        self.before[row.min(self.before.len() - 1)] as usize
    }

    /// The number of the one at a place.
    #[inline]
    pub(super) fn number(&self, place: usize) -> usize {
        self.numbers[place] as usize
    }
}
