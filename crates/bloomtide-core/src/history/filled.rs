//! Which rows of a segment have cells: those with events. A row of an empty window costs its record and no bit.

use super::RowRecord;

/// The rows with cells, in order. Where every row has some, nothing is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filled {
    rows: usize,
    /// Their numbers among all rows, unless they are all.
    numbers: Option<Vec<u32>>,
}

impl Filled {
    /// The rows that have events.
    pub(super) fn of(rows: &[RowRecord]) -> Self {
        let numbers: Vec<u32> =
            (0..).zip(rows).filter(|(_, row)| row.events > 0).map(|(number, _)| number).collect();
        let every = numbers.len() == rows.len();
        Filled { rows: rows.len(), numbers: (!every).then_some(numbers) }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.numbers.as_ref().map_or(self.rows, Vec::len)
    }

    /// How many rows there are, with the empty ones.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// How many of them lie before a row; for one of them, its place.
    #[inline]
    pub(super) fn before(&self, row: usize) -> usize {
        match &self.numbers {
            None => row.min(self.rows),
            Some(numbers) => numbers.partition_point(|number| (*number as usize) < row),
        }
    }

    /// The number of the one at a place.
    #[inline]
    pub(super) fn number(&self, place: usize) -> usize {
        self.numbers.as_ref().map_or(place, |numbers| numbers[place] as usize)
    }

    /// The places of all rows; that of an empty one means nothing.
    pub(super) fn places(&self) -> Vec<u32> {
        (0..self.rows).map(|row| self.before(row) as u32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_numbers_are_inverse_and_empty_rows_have_none() {
        let events = [0, 3, 0, 0, 1, 2, 0];
        let rows = events.map(|events| RowRecord { events, ..RowRecord::empty(0, 1) });
        let filled = Filled::of(&rows);
        assert_eq!((filled.len(), filled.rows()), (3, 7));
        assert_eq!([0, 1, 2].map(|place| filled.number(place)), [1, 4, 5]);
        assert_eq!(filled.places(), [0, 0, 1, 1, 1, 2, 3]);
        assert_eq!(filled.before(99), 3);
        for place in 0..3 {
            assert_eq!(filled.before(filled.number(place)), place);
        }
        assert_eq!(Filled::of(&rows[4..6]), Filled { rows: 2, numbers: None });
    }
}
