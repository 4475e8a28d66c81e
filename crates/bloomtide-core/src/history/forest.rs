//! The forest of sealed segments of a store: which there are, and which of them stand for a row of another.
//!
//! It opens no file itself: `Files` does, when a question needs one. Files stay mapped while there is room; what
//! is known of a segment's rows stays for good.
//!
//! # Invariants
//! I1  A segment is a root, or in the family of its parent. Families are in the order of time, or of arrivals.
//! I2  The members of a family that lie in a row are together that row: if one of them cannot be asked, the row is
//!     asked itself.

use super::{RowRecord, Segment};
use crate::error::Error;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// What a catalogue says of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its number.
    pub id: u64,
    /// The segment that has all its counts in coarser rows.
    pub parent: Option<u64>,
    /// Its place in the order of arrivals; not used by time.
    pub place: i64,
    /// Where its time begins, and where it ends.
    pub span: (i64, i64),
    /// Its earliest event and its latest one.
    pub seen: (i64, i64),
    /// How many rows it has.
    pub rows: usize,
    /// All its events.
    pub events: u64,
}

/// Who opens the files of segments, and hears of those that turn out to be damaged.
pub trait Files {
    /// Why a question was not answered. The segment is known to be damaged by then: it may be asked again.
    type Failed;
    /// The segment of that number.
    fn open(&mut self, id: u64) -> Result<Arc<Segment>, Self::Failed>;
    /// What was wrong with a segment that was open.
    fn damaged(&mut self, id: u64, error: Error) -> Self::Failed;
}

#[derive(Debug)]
struct Node {
    known: Known,
    segment: Option<Arc<Segment>>,
    rows: Option<Arc<[RowRecord]>>,
    damaged: bool,
}

/// A member of a family: its time or its place, from and to, and its number.
type Member = (i64, i64, u64);

/// All sealed segments of a store.
#[derive(Debug)]
pub struct Forest {
    nodes: HashMap<u64, Node>,
    roots: Vec<u64>,
    families: HashMap<u64, Vec<Member>>,
    by_order: bool,
    /// Those with a file that is mapped, the first one first.
    mapped: VecDeque<u64>,
    /// So many of them at most.
    pub(super) room: usize,
}

impl Forest {
    /// Nothing yet. `by_order`: rows end by arrivals, not by time. `room` files are mapped at the same time.
    pub fn new(by_order: bool, room: usize) -> Self {
        let (nodes, families) = (HashMap::new(), HashMap::new());
        Forest { nodes, roots: Vec::new(), families, by_order, mapped: VecDeque::new(), room }
    }

    /// Adds a segment, or says anew what is known of it.
    pub fn insert(&mut self, known: Known) {
        let old = self.detach(known.id);
        match known.parent {
            None => self.roots.push(known.id),
            Some(parent) => {
                let (begin, end) = match self.by_order {
                    true => (known.place, known.place + 1),
                    false => known.span,
                };
                let (family, member) =
                    (self.families.entry(parent).or_default(), (begin, end, known.id));
                family.insert(family.partition_point(|other| *other < member), member);
            }
        }
        let (segment, rows, damaged) =
            old.map_or((None, None, false), |old| (old.segment, old.rows, old.damaged));
        self.nodes.insert(known.id, Node { known, segment, rows, damaged });
    }

    /// Removes a segment; its children keep their place.
    pub fn remove(&mut self, id: u64) {
        self.detach(id);
        self.mapped.retain(|mapped| *mapped != id);
    }

    fn detach(&mut self, id: u64) -> Option<Node> {
        let node = self.nodes.remove(&id)?;
        match node.known.parent {
            None => self.roots.retain(|root| *root != id),
            Some(parent) => {
                if let Some(family) = self.families.get_mut(&parent) {
                    family.retain(|(.., child)| *child != id);
                }
            }
        }
        Some(node)
    }

    /// Whether a segment cannot be asked. Its file is opened anew when it can be again.
    pub fn set_damaged(&mut self, id: u64, damaged: bool) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.damaged = damaged;
            (node.segment, node.rows) = (None, None);
            self.mapped.retain(|mapped| *mapped != id);
        }
    }

    /// How many files are mapped.
    pub fn mapped(&self) -> usize {
        self.mapped.len()
    }

    pub(super) fn known(&self, id: u64) -> Option<&Known> {
        self.nodes.get(&id).map(|node| &node.known)
    }

    pub(super) fn is_damaged(&self, id: u64) -> bool {
        self.nodes.get(&id).is_none_or(|node| node.damaged)
    }

    /// The roots with events in a time, and the times of those that cannot be asked.
    pub(super) fn roots_in(&self, start: i64, end: i64) -> (Vec<u64>, Vec<(i64, i64)>) {
        let known = self.roots.iter().filter_map(|root| self.known(*root));
        let touched = known.filter(|known| known.seen.1 >= start && known.seen.0 < end);
        let (lost, sound): (Vec<&Known>, Vec<&Known>) =
            touched.partition(|known| self.is_damaged(known.id));
        let missing = lost.iter().map(|known| (known.span.0.max(start), known.span.1.min(end)));
        (sound.iter().map(|known| known.id).collect(), missing.collect())
    }

    pub(super) fn has_children(&self, id: u64) -> bool {
        self.families.get(&id).is_some_and(|family| !family.is_empty())
    }

    /// A segment whose file is mapped already.
    pub(super) fn segment_if_mapped(&self, id: u64) -> Option<Arc<Segment>> {
        self.nodes.get(&id)?.segment.clone()
    }

    /// The segment of that number.
    pub(super) fn segment<F: Files>(
        &mut self,
        id: u64,
        files: &mut F,
    ) -> Result<Arc<Segment>, F::Failed> {
        if let Some(segment) = self.segment_if_mapped(id) {
            return Ok(segment);
        }
        let opened = files.open(id);
        let Some(node) = self.nodes.get_mut(&id) else { return opened };
        let Ok(segment) = &opened else {
            node.damaged = true;
            return opened;
        };
        node.segment = Some(segment.clone());
        node.rows = Some(segment.about().rows.clone());
        self.mapped.push_back(id);
        if self.mapped.len() > self.room {
            let oldest = self.mapped.pop_front().and_then(|oldest| self.nodes.get_mut(&oldest));
            oldest.into_iter().for_each(|node| node.segment = None);
        }
        opened
    }

    /// The rows of a segment.
    pub(super) fn rows<F: Files>(
        &mut self,
        id: u64,
        files: &mut F,
    ) -> Result<Arc<[RowRecord]>, F::Failed> {
        match self.nodes.get(&id).and_then(|node| node.rows.clone()) {
            Some(rows) => Ok(rows),
            None => Ok(self.segment(id, files)?.about().rows.clone()),
        }
    }

    /// Those of its rows that lie in a range of time or touch it, and others where they are in no order.
    pub(super) fn near(&self, rows: &[RowRecord], start: i64, end: i64) -> Range<usize> {
        match self.by_order {
            true => 0..rows.len(),
            false => {
                rows.partition_point(|row| row.end <= start)
                    ..rows.partition_point(|row| row.begin < end)
            }
        }
    }

    /// The segments that a row was made of, if all of them can be asked. They may have other rows, too.
    pub(super) fn children(&self, parent: u64, row: usize, record: &RowRecord) -> Vec<u64> {
        let Some(family) = self.families.get(&parent) else { return Vec::new() };
        let chosen: Vec<u64> = match self.by_order {
            true => family.get(row).iter().map(|(.., id)| *id).collect(),
            false => {
                let before = family.partition_point(|(begin, ..)| *begin < record.end);
                let inside = family[..before].iter().filter(|(_, end, _)| *end > record.begin);
                inside.map(|(.., id)| *id).collect()
            }
        };
        match chosen.iter().any(|id| self.is_damaged(*id)) {
            true => Vec::new(),
            false => chosen,
        }
    }
}
