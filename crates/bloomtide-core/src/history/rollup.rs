//! Sealed segments become rows of the segment above them: built from their items, so it is sized for its own
//! load, and its errors are its own and not theirs added up.

use super::items::Items;
use super::names::affordable;
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
    let keys = children.iter().flat_map(|child| child.names.iter().copied());
    let (names, unlisted) = top(keys, &items, names, hasher)?;
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
    for (child, place) in children.iter().zip(&places) {
        // A child that begins at the very end is in none.
        let Some(row) = rows.get_mut(*place as usize).filter(|row| child.end <= row.end) else {
            let got = format!("{} to {}", child.begin, child.end);
            return Err(Error::parameter("items", got, "within one row", "check the level"));
        };
        row.seen = row.seen.with(child.seen);
        row.windows = row.windows.max(child.windows);
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

/// The most frequent of the segments' names with their counts, which are exact, and the largest count of
/// all other keys.
pub(super) fn top<'a>(
    keys: impl Iterator<Item = Key<'a>>,
    items: &[Item],
    wanted: usize,
    hasher: &Hasher,
) -> Result<(Vec<Named>, u64)> {
    let mut keys: Vec<(Mark, Key<'_>)> = keys.map(|key| (key.hash(hasher).mark(), key)).collect();
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
