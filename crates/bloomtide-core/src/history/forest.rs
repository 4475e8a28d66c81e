//! The forest of sealed segments of a store whose rows end by time, and what to read of it for a range.
//!
//! ```text
//! roots    ├───────────── 32d ─────────────┤├──── 32d ────┤├ 1d ┤├ 1d ┤├ 1h ┤
//! range                ├───────────────────────────────────────┤
//! read     1m rows, 1h rows, then whole days, a whole segment, ... , 1h rows, 1m rows
//! ```
//!
//! A row is *covered* if all its events lie in the range, and *partial* if some do. A partial row is asked
//! through its children if it has any, so only the two edges descend, one step for each level of the ladder.
//! The row's own count bounds what its children say: the smaller one counts.
//!
//! It reads no file: a plan names the segments that must be mapped before it can be finished or asked.
//!
//! # Invariants
//! I1  A segment is a root, or in the family of its parent. Families are in the order of time.
//! I2  The children of a row are all the members of the family that begin within it, and together they are
//!     the row: if one of them cannot be asked, the row is asked itself.

use super::{Mark, RowRecord, Segment};
use crate::error::Error;
use crate::hash::Hasher;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// What a catalogue says of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its number.
    pub id: u64,
    /// The segment that has all its counts in coarser rows.
    pub parent: Option<u64>,
    /// Where its time begins, and where it ends.
    pub span: (i64, i64),
    /// Its earliest event and its latest one.
    pub seen: (i64, i64),
    /// How many rows it has.
    pub rows: usize,
    /// All its events.
    pub events: u64,
}

#[derive(Debug)]
struct Node {
    known: Known,
    segment: Option<Arc<Segment>>,
    damaged: bool,
}

/// All sealed segments of a store.
#[derive(Debug, Default)]
pub struct Forest {
    nodes: HashMap<u64, Node>,
    roots: Vec<u64>,
    /// Where each child begins, and which it is.
    families: HashMap<u64, Vec<(i64, u64)>>,
}

impl Forest {
    /// Adds a segment, or says anew what is known of it.
    pub fn insert(&mut self, known: Known) {
        let old = self.detach(known.id);
        match known.parent {
            None => self.roots.push(known.id),
            Some(parent) => {
                let (family, child) =
                    (self.families.entry(parent).or_default(), (known.span.0, known.id));
                family.insert(family.partition_point(|other| *other < child), child);
            }
        }
        let (segment, damaged) = old.map_or((None, false), |old| (old.segment, old.damaged));
        self.nodes.insert(known.id, Node { known, segment, damaged });
    }

    /// Removes a segment; its children keep their place.
    pub fn remove(&mut self, id: u64) {
        self.detach(id);
    }

    fn detach(&mut self, id: u64) -> Option<Node> {
        let node = self.nodes.remove(&id)?;
        match node.known.parent {
            None => self.roots.retain(|root| *root != id),
            Some(parent) => {
                if let Some(family) = self.families.get_mut(&parent) {
                    family.retain(|(_, child)| *child != id);
                }
            }
        }
        Some(node)
    }

    /// Gives a segment its bytes, or takes them away.
    pub fn set_segment(&mut self, id: u64, segment: Option<Arc<Segment>>) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.segment = segment;
        }
    }

    /// Whether a segment cannot be asked.
    pub fn set_damaged(&mut self, id: u64, damaged: bool) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.damaged = damaged;
        }
    }

    /// What to read for the range `[start, end)`.
    pub fn plan(&self, start: i64, end: i64) -> RangePlan {
        let mut plan = RangePlan::default();
        for node in self.roots.iter().filter_map(|root| self.nodes.get(root)) {
            let Known { span, seen, .. } = node.known;
            if seen.1 < start || seen.0 >= end {
                continue;
            }
            if node.damaged {
                plan.missing.push((span.0.max(start), span.1.min(end)));
            } else {
                self.plan_node(node, start, end, &mut plan);
            }
        }
        plan
    }

    fn plan_node(&self, node: &Node, start: i64, end: i64, plan: &mut RangePlan) {
        let Known { id, seen: (first, last), rows: length, events, .. } = node.known;
        if last < start || first >= end {
            return;
        }
        let segment = node.segment.clone();
        if start <= first && last < end {
            plan.rows += length;
            plan.terms.push(Term { id, segment, rows: 0..length, events, part: Part::Covered });
            return;
        }
        let Some(segment) = segment else {
            plan.unplanned.push(id);
            return;
        };
        let (records, mut run) = (segment.rows(), None::<Range<usize>>);
        for (row, record) in records.iter().enumerate() {
            if record.seen.events == 0 {
                continue; // it says nothing and need not end a run
            }
            if start <= record.seen.first && record.seen.last < end {
                run = Some(run.map_or(row, |run| run.start)..row + 1);
                continue;
            }
            plan.cover(id, &segment, run.take());
            if start <= record.seen.last && record.seen.first < end {
                self.plan_cut(node, &segment, row, start, end, plan);
            }
        }
        plan.cover(id, &segment, run);
    }

    /// A partial row.
    fn plan_cut(
        &self,
        node: &Node,
        segment: &Arc<Segment>,
        row: usize,
        start: i64,
        end: i64,
        plan: &mut RangePlan,
    ) {
        let record = &segment.rows()[row];
        let place = plan.terms.len();
        let part = Part::Partial { share: share(record, start, end) };
        plan.terms.push(Term {
            id: node.known.id,
            segment: Some(segment.clone()),
            rows: row..row + 1,
            events: record.seen.events,
            part,
        });
        let children = self.children(node.known.id, segment.rows(), row);
        let mut nodes = children.iter().map(|(_, child)| self.nodes.get(child));
        if children.is_empty() || !nodes.all(|child| child.is_some_and(|child| !child.damaged)) {
            plan.rows += 1;
            plan.partial += 1;
            return;
        }
        for child in children.iter().filter_map(|(_, child)| self.nodes.get(child)) {
            self.plan_node(child, start, end, plan);
        }
        plan.terms[place].part = Part::Finer { terms: plan.terms.len() - place - 1 };
    }

    /// Those of the family that begin within the row.
    fn children(&self, parent: u64, rows: &[RowRecord], row: usize) -> &[(i64, u64)] {
        let Some(family) = self.families.get(&parent) else { return &[] };
        let begin = |row: usize| match rows.get(row) {
            Some(row) => family.partition_point(|(begin, _)| *begin < row.begin),
            None => family.len(),
        };
        family.get(begin(row)..begin(row + 1)).unwrap_or_default()
    }
}

/// How much of a row's time lies in the range.
fn share(row: &RowRecord, start: i64, end: i64) -> f64 {
    let (first, last) = (i128::from(row.seen.first), i128::from(row.seen.last));
    let inside = (last + 1).min(end.into()) - first.max(start.into());
    inside as f64 / (last + 1 - first) as f64
}

/// What to read for a range.
#[derive(Debug, Default)]
pub struct RangePlan {
    terms: Vec<Term>,
    /// How many rows are read.
    pub rows: usize,
    /// How many of them are partial and have no children.
    pub partial: usize,
    /// Times of roots that cannot be asked.
    pub missing: Vec<(i64, i64)>,
    /// Segments that must be mapped before this plan can be finished.
    pub unplanned: Vec<u64>,
}

/// Rows of one segment that are asked together.
#[derive(Debug)]
struct Term {
    id: u64,
    segment: Option<Arc<Segment>>,
    rows: Range<usize>,
    events: u64,
    part: Part,
}

#[derive(Debug)]
enum Part {
    Covered,
    /// A partial row, and the share of its time that lies in the range.
    Partial {
        share: f64,
    },
    /// A partial row that is asked through its children: so many terms behind this one.
    Finer {
        terms: usize,
    },
}

/// What a range says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RangeCounts {
    /// Of all rows with an event that may lie in the range: never less than the truth.
    pub upper: u64,
    /// Of the covered rows: nothing outside of the range.
    pub inner: u64,
    /// `inner`, and of a partial row the share of its time.
    pub estimate: f64,
}

impl RangePlan {
    /// A run of covered rows.
    fn cover(&mut self, id: u64, segment: &Arc<Segment>, run: Option<Range<usize>>) {
        let Some(rows) = run else { return };
        self.rows += rows.len();
        let events = segment.rows()[rows.clone()].iter().map(|row| row.seen.events).sum();
        let segment = Some(segment.clone());
        self.terms.push(Term { id, segment, rows, events, part: Part::Covered });
    }

    /// How many times a segment is asked.
    pub fn terms(&self) -> usize {
        self.terms.len()
    }

    /// Segments that must be mapped before a key can be asked for.
    pub fn unread(&self) -> impl Iterator<Item = u64> {
        self.terms.iter().filter(|term| term.segment.is_none()).map(|term| term.id)
    }

    /// The finest segments that are read, each with whether all of it is covered.
    pub fn finest(&self) -> impl Iterator<Item = (u64, bool)> {
        let finest = self.terms.iter().filter(|term| !matches!(term.part, Part::Finer { .. }));
        finest.map(|term| {
            let all = term.segment.as_ref().is_none_or(|it| term.rows == (0..it.rows().len()));
            (term.id, all && matches!(term.part, Part::Covered))
        })
    }

    /// What made the marks of each segment.
    pub fn hashers(&self) -> impl Iterator<Item = &Hasher> {
        self.terms
            .iter()
            .filter_map(|term| term.segment.as_ref())
            .map(|segment| &segment.about().hasher)
    }

    /// How often a key came; `mark` is what a hasher makes of it. An error comes with its segment.
    pub fn count(&self, mark: impl Fn(&Hasher) -> Mark) -> Result<RangeCounts, (u64, Error)> {
        fold(&self.terms, &|term: &Term| match &term.segment {
            Some(segment) => segment
                .count(mark(&segment.about().hasher), term.rows.clone())
                .map_err(|error| (term.id, error)),
            None => Err((term.id, Error::Invariant { invariant: "unread segments".to_owned() })),
        })
    }

    /// How many events there are of all keys. Exact but for partial rows.
    pub fn events(&self) -> RangeCounts {
        let Ok(counts) =
            fold(&self.terms, &|term: &Term| Ok::<_, std::convert::Infallible>(term.events));
        counts
    }
}

/// What these terms say together.
fn fold<E>(terms: &[Term], ask: &impl Fn(&Term) -> Result<u64, E>) -> Result<RangeCounts, E> {
    let mut sum = RangeCounts::default();
    let mut rest = terms;
    while let Some((term, behind)) = rest.split_first() {
        rest = behind;
        let own = ask(term)?;
        let (inner, upper, estimate) = match term.part {
            Part::Covered => (own, own, own as f64),
            Part::Partial { share } => (0, own, own as f64 * share),
            Part::Finer { terms } => {
                let (inside, others) = behind.split_at(terms);
                rest = others;
                // All of it speaks of events within this row, so nothing can be more than the row.
                let deep = if own == 0 { RangeCounts::default() } else { fold(inside, ask)? };
                (deep.inner.min(own), deep.upper.min(own), deep.estimate.min(own as f64))
            }
        };
        sum.upper = sum.upper.saturating_add(upper);
        sum.inner = sum.inner.saturating_add(inner);
        sum.estimate += estimate;
    }
    Ok(sum)
}
