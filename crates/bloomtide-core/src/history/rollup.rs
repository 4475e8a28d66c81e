//! Sealed segments become rows of the segment above them: built from their items, so it is sized for its own
//! load, and its errors are its own and not theirs added up.

use super::items::Items;
use super::names::affordable;
use super::open::Seen;
use super::{Contents, Item, MAX_ROWS, Mark, Named, RowRecord};
use crate::error::{Error, Result};
use crate::hash::Hasher;
use crate::key::{Key, OwnedKey};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// Which row a smaller segment becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOf {
    /// By its begin: rows span so much time. Several may become one row.
    Time(i64),
    /// By its place among them: one row each.
    Order,
}

/// What the segment above these is made of. `names` keys are listed by name.
pub fn roll_up(
    items: &[&[u8]],
    level: u8,
    span: (i64, i64),
    row_of: RowOf,
    names: usize,
    hasher: &Hasher,
) -> Result<Contents> {
    let opened = items.iter().map(|data| Items::open(data, hasher));
    let mut children = opened.collect::<Result<Vec<_>>>()?;
    let (rows, places) = rows(&children, span, row_of)?;
    let items = merge(&mut children, &places)?;
    let (names, unlisted) = top(&children, &items, names, hasher)?;
    let (names, unlisted) = affordable(names, unlisted, items.len());
    let contents = Contents { level, begin: span.0, end: span.1, rows, items, names, unlisted };
    contents.check().map(|()| contents)
}

/// The rows, and which of them each child becomes.
fn rows(
    children: &[Items<'_>],
    (begin, end): (i64, i64),
    row_of: RowOf,
) -> Result<(Vec<RowRecord>, Vec<u32>)> {
    let outside = |child: &Items<'_>| child.begin < begin || child.end > end;
    if let Some(child) = children.iter().find(|child| outside(child)) {
        let got = format!("{} to {}", child.begin, child.end);
        return Err(Error::parameter("items", got, "within begin and end", "check the level"));
    }
    let too_many = |got: i64| {
        let hint = "rows are as long as the segments that become them";
        Err(Error::parameter("row_span", got, "a part of the span, in at most 2**24 rows", hint))
    };
    // A row that saw nothing is as many windows as the others.
    let windows = children.iter().map(|child| child.windows).max().unwrap_or(1);
    let (mut rows, places) = match row_of {
        RowOf::Order if children.is_empty() || children.len() > MAX_ROWS => {
            return Err(Error::parameter("items", children.len(), "between 1 and 2**24", ""));
        }
        RowOf::Order => {
            let empty = children.iter().map(|child| RowRecord::empty(child.begin, child.end));
            (empty.collect::<Vec<_>>(), (0..children.len() as u32).collect::<Vec<_>>())
        }
        RowOf::Time(row) => {
            let whole = end.checked_sub(begin).filter(|span| row > 0 && *span > 0);
            let Some(span) = whole.filter(|span| span % row == 0) else { return too_many(row) };
            if span / row > MAX_ROWS as i64 {
                return too_many(row);
            }
            let empty = (0..span / row).map(|i| begin + i * row);
            let empty = empty.map(|at| RowRecord { windows, ..RowRecord::empty(at, at + row) });
            let places = children.iter().map(|child| ((child.begin - begin) / row) as u32);
            (empty.collect(), places.collect())
        }
    };
    let mut seen = vec![Seen::NOTHING; rows.len()];
    for (child, place) in children.iter().zip(&places) {
        let at = *place as usize;
        if child.end > rows[at].end {
            let got = format!("{} to {}", child.begin, child.end);
            return Err(Error::parameter("items", got, "within one row", "check the level"));
        }
        seen[at] = seen[at].with(child.seen);
        rows[at].windows = rows[at].windows.max(child.windows);
    }
    for (row, seen) in rows.iter_mut().zip(seen).filter(|(_, seen)| seen.events > 0) {
        (row.first, row.last, row.events) = (seen.first, seen.last, seen.events);
    }
    Ok((rows, places))
}

/// All counts by mark and row; those of one pair are added.
fn merge(children: &mut [Items<'_>], places: &[u32]) -> Result<Vec<Item>> {
    // The next pair of each child: by mark, then by row.
    let mut heads = BinaryHeap::with_capacity(children.len());
    for (i, child) in children.iter_mut().enumerate() {
        if let Some((mark, count)) = child.next_pair()? {
            heads.push(Reverse((mark, places[i], i, count)));
        }
    }
    let mut items: Vec<Item> = Vec::new();
    while let Some(mut head) = heads.peek_mut() {
        let Reverse((mark, row, i, count)) = *head;
        match items.last_mut() {
            Some(last) if (last.mark, last.row) == (mark, row) => {
                last.count = last.count.saturating_add(count);
            }
            _ => {
                if items.try_reserve(1).is_err() {
                    let needed = (items.len() * size_of::<Item>()) as u64;
                    return Err(Error::Capacity { needed, limit: isize::MAX as u64 });
                }
                items.push(Item { mark, row, count });
            }
        }
        match children[i].next_pair()? {
            Some((mark, count)) => *head = Reverse((mark, row, i, count)),
            None => drop(PeekMut::pop(head)),
        }
    }
    Ok(items)
}

/// The most frequent of the children's names with their counts, which are exact, and the largest count of
/// all other keys.
fn top(
    children: &[Items<'_>],
    items: &[Item],
    wanted: usize,
    hasher: &Hasher,
) -> Result<(Vec<Named>, u64)> {
    let keys = children.iter().flat_map(|child| child.names.iter());
    let mut keys: Vec<(Mark, Key<'_>)> = keys.map(|key| (key.hash(hasher).mark(), *key)).collect();
    keys.sort_by_key(|(mark, _)| *mark);
    keys.dedup_by_key(|(mark, _)| *mark);
    let mut keys = keys.into_iter().peekable();
    let (mut named, mut unlisted) = (Vec::new(), 0);
    for rows in items.chunk_by(|a, b| a.mark == b.mark) {
        let mark = rows[0].mark;
        let count = rows.iter().fold(0u64, |sum, item| sum.saturating_add(item.count));
        while keys.next_if(|(other, _)| *other < mark).is_some() {}
        match keys.next_if(|(other, _)| *other == mark) {
            Some((mark, key)) => named.push((Reverse(count), mark, key)),
            None => unlisted = unlisted.max(count),
        }
    }
    named.sort_unstable_by_key(|(count, mark, _)| (*count, *mark));
    if let Some((Reverse(count), ..)) = named.get(wanted) {
        unlisted = unlisted.max(*count);
    }
    named.truncate(wanted);
    let owned = |(Reverse(count), _, key)| Ok(Named { key: OwnedKey::of(key)?, count });
    Ok((named.into_iter().map(owned).collect::<Result<_>>()?, unlisted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Buffer, BufferPlan, RowsBy, encode_items};
    use std::collections::BTreeMap;

    const HASHER: Hasher = Hasher::Xxh3 { seed: 9 };

    fn buffer(window: i64, rows: u32, names: usize) -> Buffer {
        let rows_by = RowsBy::Time(window);
        Buffer::new(BufferPlan { rows_by, rows, level: 0, names, hasher: HASHER }).unwrap()
    }

    /// Every sealed segment's items.
    fn seal(buffer: &Buffer) -> Vec<Vec<u8>> {
        let all = buffer.segments().map(|(index, _)| buffer.contents(index).unwrap());
        all.map(|contents| encode_items(&contents, &HASHER).unwrap()).collect()
    }

    fn slices(all: &[Vec<u8>]) -> Vec<&[u8]> {
        all.iter().map(Vec::as_slice).collect()
    }

    #[test]
    fn a_roll_up_is_what_a_coarser_buffer_would_have_counted() {
        let (mut fine, mut late, mut coarse) =
            (buffer(10, 6, 8), buffer(10, 6, 8), buffer(60, 5, 8));
        let mut state = 5u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (key, at) = ((state >> 40) % 300, ((state >> 20) % 240) as i64);
            let key = Key::Unsigned(key * key / 300);
            // Some come after their segment was sealed.
            let target = if state.is_multiple_of(10) { &mut late } else { &mut fine };
            target.add(key, 1 + (state >> 60), at).unwrap();
            coarse.add(key, 1 + (state >> 60), at).unwrap();
        }
        let sealed = [seal(&fine), seal(&late)].concat();
        let made = roll_up(&slices(&sealed), 1, (0, 300), RowOf::Time(60), 8, &HASHER).unwrap();
        let expected = coarse.contents(0).unwrap();
        assert_eq!(made.items, expected.items);
        assert_eq!((made.level, made.begin, made.end), (1, 0, 300));
        for (row, other) in made.rows.iter().zip(&expected.rows) {
            assert_eq!(*row, RowRecord { windows: 6, ..*other });
        }
        assert_eq!(made.rows.len(), 5);
        assert_eq!((&made.names, made.unlisted), (&expected.names, expected.unlisted));
        // And so on: one row of the next level has the totals.
        let again = encode_items(&Contents { level: 1, ..expected }, &HASHER).unwrap();
        let top = roll_up(&[&again], 2, (0, 600), RowOf::Time(300), 8, &HASHER).unwrap();
        let mut totals: BTreeMap<Mark, u64> = BTreeMap::new();
        made.items.iter().for_each(|item| *totals.entry(item.mark).or_default() += item.count);
        let pairs: BTreeMap<Mark, u64> =
            top.items.iter().map(|item| (item.mark, item.count)).collect();
        assert_eq!(pairs, totals);
    }

    #[test]
    fn by_order_every_child_is_a_row() {
        let mut fine = buffer(10, 1, 4);
        for (at, key) in [(3, 1), (4, 2), (15, 1), (39, 1)] {
            fine.add(Key::Unsigned(key), 1, at).unwrap();
        }
        let made = roll_up(&slices(&seal(&fine)), 1, (0, 40), RowOf::Order, 4, &HASHER).unwrap();
        assert_eq!(made.rows.iter().map(|row| row.events).collect::<Vec<_>>(), [2, 1, 1]);
        let mark = HASHER.unsigned(1).mark();
        let rows: Vec<_> =
            made.items.iter().filter(|item| item.mark == mark).map(|i| i.row).collect();
        assert_eq!(rows, [0, 1, 2]);
    }

    #[test]
    fn the_largest_count_without_a_name_is_that_of_all_children_together() {
        // Each key is outside the lists of half of the children.
        let mut fine = buffer(10, 1, 1);
        for child in 0..10 {
            let (often, seldom) = if child % 2 == 0 { (1, 2) } else { (3, 2) };
            fine.add(Key::Unsigned(often), 5, child * 10).unwrap();
            fine.add(Key::Unsigned(seldom), 4, child * 10).unwrap();
        }
        let made =
            roll_up(&slices(&seal(&fine)), 1, (0, 100), RowOf::Time(10), 9, &HASHER).unwrap();
        assert_eq!(made.names.iter().map(|named| named.count).collect::<Vec<_>>(), [25, 25]);
        assert_eq!(made.unlisted, 40);
    }

    #[test]
    fn children_that_do_not_fit_are_refused() {
        let mut fine = buffer(10, 6, 4);
        fine.add(Key::Unsigned(1), 1, 130).unwrap();
        let sealed = seal(&fine);
        for (span, row) in [((0, 120), 60), ((0, 240), 50), ((100, 240), 70), ((0, 240), 0)] {
            let made = roll_up(&slices(&sealed), 1, span, RowOf::Time(row), 4, &HASHER);
            assert!(matches!(made, Err(Error::Parameter { .. })), "{span:?} {row}");
        }
        assert!(roll_up(&[], 1, (0, 10), RowOf::Order, 4, &HASHER).is_err());
    }
}
