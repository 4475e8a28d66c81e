//! What to read of a store for a range of time, and what that says of keys.
//!
//! ```text
//! roots    ├───────────── 32d ─────────────┤├──── 32d ────┤├ 1d ┤├ 1d ┤├ 1h ┤ open
//! range                ├────────────────────────────────────────────┤
//! read     1m rows, 1h rows, then whole days, a whole segment, ... , 1h rows, 1m rows
//! ```
//!
//! A row is *covered* if all its events lie in the range, and *partial* if some do. A partial row is asked
//! through its children if it has any, so only the two edges descend, one step for each level of the ladder.
//! The row's own count bounds what its children say: the smaller one counts.
//!
//! Sealed segments and open ones are read alike; what is open has no children. A plan knows no key.

use super::forest::{Files, Forest, Known};
use super::{Buffer, Mark, Named, RowRecord, Seen, Segment};
use crate::error::Error;
use std::ops::Range;
use std::sync::Arc;

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
}

/// Rows of one segment that are asked together.
#[derive(Debug)]
struct Term {
    source: Source,
    rows: Range<usize>,
    events: u64,
    part: Part,
    /// Whether these are all rows of the segment, and all of them are covered.
    whole: bool,
}

#[derive(Clone, Debug)]
enum Source {
    /// The number of a sealed segment; it is read when a key is asked for.
    Sealed(u64, Option<Arc<Segment>>),
    /// The number of an open one.
    Open(i64),
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
    /// Chance at most that `upper` is more than the rows that were read have of the key: of those segments whose
    /// gates let it pass, all together.
    pub error: f64,
}

impl RangeCounts {
    pub(super) fn add(&mut self, other: RangeCounts) {
        self.upper = self.upper.saturating_add(other.upper);
        self.inner = self.inner.saturating_add(other.inner);
        self.estimate += other.estimate;
        self.error = (self.error + other.error).min(1.0);
    }

    /// What a covered row says.
    pub(super) fn covered(own: u64, error: f64) -> Self {
        RangeCounts { upper: own, inner: own, estimate: own as f64, error }
    }

    /// What a partial row says of which that share of its time lies in the range.
    pub(super) fn partial(own: u64, share: f64, error: f64) -> Self {
        RangeCounts { upper: own, inner: 0, estimate: own as f64 * share, error }
    }

    /// What cannot be more than a row has in all. It is too high only if both are.
    pub(super) fn at_most(self, own: u64, error: f64) -> Self {
        let (upper, inner) = (self.upper.min(own), self.inner.min(own));
        let estimate = self.estimate.min(own as f64);
        RangeCounts { upper, inner, estimate, error: self.error.min(error) }
    }
}

/// How much of a row's time lies in the range.
pub(super) fn share(seen: &Seen, start: i64, end: i64) -> f64 {
    let (first, last) = (i128::from(seen.first), i128::from(seen.last));
    let inside = (last + 1).min(end.into()) - first.max(start.into());
    inside as f64 / (last + 1 - first) as f64
}

impl Seen {
    pub(super) fn is_in(&self, start: i64, end: i64) -> bool {
        start <= self.first && self.last < end
    }

    pub(super) fn touches(&self, start: i64, end: i64) -> bool {
        self.events > 0 && self.last >= start && self.first < end
    }
}

impl Forest {
    /// What to read of the sealed segments for the range `[start, end)`. Without `rollups` only the finest rows
    /// there are: they add up exactly over ranges that meet at the edge of a row.
    pub fn plan<F: Files>(
        &mut self,
        start: i64,
        end: i64,
        rollups: bool,
        files: &mut F,
    ) -> Result<RangePlan, F::Failed> {
        let (roots, missing) = self.roots_in(start, end);
        let plan = RangePlan { missing, ..RangePlan::default() };
        let mut planner = Planner { plan, rollups, files, forest: self };
        roots.into_iter().try_for_each(|root| planner.node(root, start, end))?;
        Ok(planner.plan)
    }
}

struct Planner<'a, F> {
    forest: &'a mut Forest,
    files: &'a mut F,
    rollups: bool,
    plan: RangePlan,
}

impl<F: Files> Planner<'_, F> {
    fn node(&mut self, id: u64, start: i64, end: i64) -> Result<(), F::Failed> {
        let Some(known) = self.forest.known(id) else { return Ok(()) };
        let Known { seen: (first, last), rows, events, .. } = *known;
        let flat = !self.rollups && self.forest.has_children(id);
        if !flat && start <= first && last < end {
            let source = Source::Sealed(id, self.forest.segment_if_mapped(id));
            self.plan.push(source, 0..rows, events, Part::Covered, true);
            return Ok(());
        }
        if last < start || first >= end {
            return Ok(());
        }
        let records = self.forest.rows(id, self.files)?;
        let source = Source::Sealed(id, self.forest.segment_if_mapped(id));
        for row in self.forest.near(&records, start, end) {
            let record = &records[row];
            let touched = record.seen.touches(start, end);
            let children = match touched && (flat || !record.seen.is_in(start, end)) {
                true => self.forest.children(id, row, record),
                false => Vec::new(),
            };
            if flat && !children.is_empty() {
                self.finer(&children, record, start, end)?;
            } else if touched && !children.is_empty() {
                let place = self.plan.terms.len();
                self.plan.row(&source, row, &record.seen, start, end);
                self.finer(&children, record, start, end)?;
                self.plan.finer(place);
            } else if touched {
                self.plan.row(&source, row, &record.seen, start, end);
            }
        }
        Ok(())
    }

    /// The children of a row, as far as they lie in it.
    fn finer(
        &mut self,
        children: &[u64],
        record: &RowRecord,
        start: i64,
        end: i64,
    ) -> Result<(), F::Failed> {
        let (start, end) = (start.max(record.begin), end.min(record.end));
        children.iter().try_for_each(|child| self.node(*child, start, end))
    }
}

impl RangePlan {
    fn push(&mut self, source: Source, rows: Range<usize>, events: u64, part: Part, whole: bool) {
        self.rows += rows.len();
        self.terms.push(Term { source, rows, events, part, whole });
    }

    /// A row that the range touches. Covered ones that follow each other are asked together, with those between
    /// that saw nothing.
    fn row(&mut self, source: &Source, row: usize, seen: &Seen, start: i64, end: i64) {
        if !seen.is_in(start, end) {
            let part = Part::Partial { share: share(seen, start, end) };
            self.push(source.clone(), row..row + 1, seen.events, part, false);
            self.partial += 1;
        } else if let Some(last) = self.terms.last_mut().filter(|last| last.goes_on(source)) {
            self.rows += row + 1 - last.rows.end;
            (last.rows.end, last.events) = (row + 1, last.events + seen.events);
        } else {
            self.push(source.clone(), row..row + 1, seen.events, Part::Covered, false);
        }
    }

    /// The terms behind that place are the children of the partial row there.
    fn finer(&mut self, place: usize) {
        self.terms[place].part = Part::Finer { terms: self.terms.len() - place - 1 };
        (self.rows, self.partial) = (self.rows - 1, self.partial - 1);
    }

    /// Adds what to read of the open segments.
    pub fn add_open(&mut self, buffer: &Buffer, start: i64, end: i64) {
        for (index, open) in buffer.segments() {
            let all = open.seen();
            if all.events > 0 && all.is_in(start, end) {
                let rows = buffer.row_count(open);
                self.push(Source::Open(index), 0..rows, all.events, Part::Covered, true);
                continue;
            }
            let touched = |(_, seen): &(usize, &Seen)| seen.touches(start, end);
            for (row, seen) in open.rows().iter().enumerate().filter(touched) {
                self.row(&Source::Open(index), row, seen, start, end);
            }
        }
    }

    /// How many events there are of all keys. Exact but for partial rows.
    pub fn events(&self) -> RangeCounts {
        let mut sum = [RangeCounts::default()];
        let mut ask = |term: &Term, own: &mut [Own]| {
            own[0] = (term.events, 0.0);
            Ok::<(), std::convert::Infallible>(())
        };
        let Ok(()) = fold(&self.terms, &mut ask, &mut sum);
        sum[0]
    }

    /// The terms in pieces that need no more files than may be mapped. No term's children are in another piece.
    pub fn pieces(&self, forest: &Forest) -> Vec<Range<usize>> {
        let (mut pieces, mut start, mut at) = (Vec::new(), 0, 0);
        while at < self.terms.len() {
            let next = at + 1 + self.terms[at].part.below();
            if next - start > forest.room && at > start {
                pieces.push(start..at);
                start = at;
            }
            at = next;
        }
        pieces.push(start..at);
        pieces
    }

    /// Opens the files that a piece needs.
    pub fn open<F: Files>(
        &mut self,
        piece: &Range<usize>,
        forest: &mut Forest,
        files: &mut F,
    ) -> Result<(), F::Failed> {
        for term in &mut self.terms[piece.clone()] {
            if let Source::Sealed(id, segment @ None) = &mut term.source {
                *segment = Some(forest.segment(*id, files)?);
            }
        }
        Ok(())
    }

    /// Lets go of the files of a piece, if it is not all of the plan.
    pub fn close(&mut self, piece: &Range<usize>) {
        if piece.len() < self.terms.len() {
            for term in &mut self.terms[piece.clone()] {
                if let Source::Sealed(_, segment) = &mut term.source {
                    *segment = None;
                }
            }
        }
    }

    /// Adds how often each key came in the rows of a piece that is open. An error comes with its segment.
    pub fn count(
        &self,
        piece: &Range<usize>,
        buffer: &Buffer,
        marks: &[Option<Mark>],
        sums: &mut [RangeCounts],
    ) -> Result<(), (u64, Error)> {
        let mut ask = |term: &Term, out: &mut [Own]| {
            let mut each = out.iter_mut().zip(marks);
            each.try_for_each(|(own, mark)| {
                *own = mark.map_or(Ok((0, 0.0)), |mark| term.count(buffer, mark))?;
                Ok(())
            })
        };
        fold(&self.terms[piece.clone()], &mut ask, sums)
    }

    /// The most frequent keys of each of the finest segments in a piece that is open, the most that any other key
    /// of it has, and whether all of it is covered.
    #[expect(clippy::type_complexity, reason = "one place takes it apart")]
    pub fn names(
        &self,
        piece: &Range<usize>,
        buffer: &Buffer,
    ) -> Result<Vec<(Vec<Named>, u64, bool)>, (u64, Error)> {
        let terms = &self.terms[piece.clone()];
        let finest = terms.iter().filter(|term| !matches!(term.part, Part::Finer { .. }));
        finest
            .map(|term| {
                let (names, unlisted) = match &term.source {
                    Source::Open(index) => {
                        buffer.segment(*index).map_err(|error| (0, error))?.top()
                    }
                    Source::Sealed(id, segment) => {
                        opened(*id, segment)?.names().map_err(|error| (*id, error))?
                    }
                };
                Ok((names, unlisted, term.whole))
            })
            .collect()
    }
}

impl Part {
    fn below(&self) -> usize {
        if let Part::Finer { terms } = self { *terms } else { 0 }
    }
}

impl Term {
    /// Whether a covered row behind it, of that segment, is asked together with it.
    fn goes_on(&self, source: &Source) -> bool {
        let same = match (&self.source, source) {
            (Source::Sealed(own, _), Source::Sealed(id, _)) => own == id,
            (Source::Open(own), Source::Open(index)) => own == index,
            _ => false,
        };
        same && matches!(self.part, Part::Covered)
    }

    fn count(&self, buffer: &Buffer, mark: Mark) -> Result<Own, (u64, Error)> {
        match &self.source {
            Source::Open(index) => {
                let open = buffer.segment(*index).map_err(|error| (0, error))?;
                Ok((open.count(mark, self.rows.start as u32, self.rows.end as u32), 0.0))
            }
            Source::Sealed(id, segment) => {
                opened(*id, segment)?.ask(mark, self.rows.clone()).map_err(|error| (*id, error))
            }
        }
    }
}

fn opened(id: u64, segment: &Option<Arc<Segment>>) -> Result<&Segment, (u64, Error)> {
    let unread = || (id, Error::Invariant { invariant: "a piece is open when it is asked".into() });
    segment.as_deref().ok_or_else(unread)
}

/// How often a key came in the rows of a term, and the chance that it is less.
type Own = (u64, f64);

/// Adds what these terms say together, of each key.
fn fold<E>(
    terms: &[Term],
    ask: &mut impl FnMut(&Term, &mut [Own]) -> Result<(), E>,
    sums: &mut [RangeCounts],
) -> Result<(), E> {
    let mut own = vec![(0, 0.0); sums.len()];
    let mut rest = terms;
    while let Some((term, behind)) = rest.split_first() {
        let (inside, others) = behind.split_at(term.part.below());
        rest = others;
        ask(term, &mut own)?;
        let mut deep = Vec::new();
        if matches!(term.part, Part::Finer { .. }) && own.iter().any(|(own, _)| *own > 0) {
            deep = vec![RangeCounts::default(); sums.len()];
            fold(inside, ask, &mut deep)?;
        }
        for (key, (sum, (own, error))) in sums.iter_mut().zip(&own).enumerate() {
            sum.add(match term.part {
                Part::Covered => RangeCounts::covered(*own, *error),
                Part::Partial { share } => RangeCounts::partial(*own, share, *error),
                // All of it speaks of events within this row, so nothing can be more than the row.
                Part::Finer { .. } if *own > 0 => deep[key].at_most(*own, *error),
                Part::Finer { .. } => RangeCounts { error: *error, ..RangeCounts::default() },
            });
        }
    }
    Ok(())
}
