//! Questions that go through the forest row by row: a key's counts step by step, and sums that fade.
//!
//! Both take a row as it is where it will do, and go on to its children where it will not; what is true of a
//! range is true of each step.

use super::forest::{Files, Forest};
use super::range::{RangeCounts, share};
use super::{Mark, Seen};
use crate::error::Error;
use std::ops::Range;

/// A row of an open segment and a key's count in it.
pub type OpenCount = (Seen, u64);

/// Times that cannot be read.
type Missing = Vec<(i64, i64)>;

/// What is summed up between edges that rise.
struct Steps<'a> {
    edges: &'a [i64],
    sums: Vec<RangeCounts>,
}

impl<'a> Steps<'a> {
    fn new(edges: &'a [i64]) -> Self {
        Steps { edges, sums: vec![RangeCounts::default(); edges.len().saturating_sub(1)] }
    }

    /// Adds a row that lies in one step; else the steps that it touches.
    fn add(&mut self, seen: &Seen, own: u64) -> Option<Range<usize>> {
        let (Some(start), Some(end)) = (self.edges.first(), self.edges.last()) else { return None };
        if !seen.touches(*start, *end) {
            return None;
        }
        let step = |at: i64| self.edges.partition_point(|edge| *edge <= at);
        let (first, last) = (step(seen.first), step(seen.last));
        if first == last && first > 0 && last < self.edges.len() {
            self.sums[first - 1].add(RangeCounts::covered(own, 0.0));
            return None;
        }
        Some(first.max(1) - 1..last.min(self.sums.len()))
    }

    /// Adds a row that lies in several steps, and nothing more is known of it.
    fn spread(&mut self, seen: &Seen, own: u64, steps: Range<usize>) {
        for step in steps {
            let share = share(seen, self.edges[step], self.edges[step + 1]);
            self.sums[step].add(RangeCounts::partial(own, share, 0.0));
        }
    }
}

impl Forest {
    /// How often a key came between each edge and the next, and the times that cannot be read.
    pub fn series<F: Files>(
        &mut self,
        mark: Mark,
        edges: &[i64],
        open: &[OpenCount],
        files: &mut F,
    ) -> Result<(Vec<RangeCounts>, Missing), F::Failed> {
        let mut steps = Steps::new(edges);
        for (seen, own) in open {
            if let Some(cut) = steps.add(seen, *own) {
                steps.spread(seen, *own, cut);
            }
        }
        let [start, .., end] = *edges else { return Ok((steps.sums, Vec::new())) };
        let (roots, missing) = self.roots_in(start, end);
        for root in roots {
            self.add_steps(root, mark, (start, end), &mut steps, files)?;
        }
        Ok((steps.sums, missing))
    }

    fn failed<F: Files>(&mut self, id: u64, error: Error, files: &mut F) -> F::Failed {
        self.set_damaged(id, true);
        files.damaged(id, error)
    }

    /// Adds the rows of one segment that begin within a time.
    fn add_steps<F: Files>(
        &mut self,
        id: u64,
        mark: Mark,
        within: (i64, i64),
        steps: &mut Steps<'_>,
        files: &mut F,
    ) -> Result<(), F::Failed> {
        let segment = self.segment(id, files)?;
        let near = self.near(segment.rows(), within.0, within.1);
        let counts = segment.counts(mark, near);
        for (row, own) in counts.map_err(|error| self.failed(id, error, files))? {
            let record = &segment.rows()[row];
            let Some(cut) = steps.add(&record.seen, own) else { continue };
            let children = self.children(id, row, record);
            if children.is_empty() {
                steps.spread(&record.seen, own, cut);
                continue;
            }
            let mut deep = Steps::new(&steps.edges[cut.start..=cut.end]);
            for child in children {
                self.add_steps(child, mark, (record.begin, record.end), &mut deep, files)?;
            }
            for (step, found) in cut.zip(deep.sums) {
                steps.sums[step].add(found.at_most(own, 0.0));
            }
        }
        Ok(())
    }

    /// A key's events, each weighed by its age, and the times that cannot be read. `weigh` says the weights of the
    /// youngest and of the oldest event between two times; where they differ by less than `tolerance`, rows are
    /// taken as they are.
    pub fn decayed<F: Files>(
        &mut self,
        mark: Mark,
        open: &[OpenCount],
        tolerance: f64,
        weigh: &mut impl FnMut(i64, i64) -> Result<(f64, f64), F::Failed>,
        files: &mut F,
    ) -> Result<(DecayedSum, Missing), F::Failed> {
        let mut sum = DecayedSum { tolerance, ..DecayedSum::default() };
        for (seen, own) in open {
            sum.take(*own, weigh(seen.first, seen.last)?);
        }
        let (roots, missing) = self.roots_in(i64::MIN, i64::MAX);
        for root in roots {
            self.add_decayed(root, mark, (i64::MIN, i64::MAX), &mut sum, weigh, files)?;
        }
        Ok((sum, missing))
    }

    fn add_decayed<F: Files>(
        &mut self,
        id: u64,
        mark: Mark,
        (begin, end): (i64, i64),
        sum: &mut DecayedSum,
        weigh: &mut impl FnMut(i64, i64) -> Result<(f64, f64), F::Failed>,
        files: &mut F,
    ) -> Result<(), F::Failed> {
        let Some(known) = self.known(id).copied() else { return Ok(()) };
        let all = begin <= known.seen.0 && known.seen.1 < end;
        let weights = weigh(known.seen.0.max(begin), known.seen.1.min(end - 1))?;
        if weights.0 == 0.0 {
            return Ok(()); // so is every older event
        }
        let segment = self.segment(id, files)?;
        if all && sum.is_near(weights) {
            let own = segment.ask(mark, 0..segment.rows().len());
            sum.take(own.map_err(|error| self.failed(id, error, files))?.0, weights);
            return Ok(());
        }
        let counts = segment.counts(mark, self.near(segment.rows(), begin, end));
        for (row, own) in counts.map_err(|error| self.failed(id, error, files))? {
            let record = &segment.rows()[row];
            let weights = weigh(record.seen.first, record.seen.last)?;
            if weights.0 == 0.0 {
                continue;
            }
            let children = match sum.is_near(weights) {
                true => Vec::new(),
                false => self.children(id, row, record),
            };
            if children.is_empty() {
                sum.take(own, weights);
                continue;
            }
            let before = sum.upper;
            for child in children {
                self.add_decayed(child, mark, (record.begin, record.end), sum, weigh, files)?;
            }
            // The row's own count at its youngest is a bound as well.
            sum.upper = sum.upper.min(before + own as f64 * weights.0);
            sum.estimate = sum.estimate.min(sum.upper);
            sum.inner = sum.inner.min(sum.upper);
        }
        Ok(())
    }
}

/// A key's events, each weighed by its age.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DecayedSum {
    tolerance: f64,
    /// As if every event were as old as the youngest of its row.
    pub upper: f64,
    /// As if every event were as old as the oldest of its row.
    pub inner: f64,
    /// In the middle of both.
    pub estimate: f64,
    /// How often rows of a segment were weighed.
    pub rows: usize,
}

impl DecayedSum {
    fn is_near(&self, (young, old): (f64, f64)) -> bool {
        young - old <= self.tolerance * young
    }

    fn take(&mut self, own: u64, (young, old): (f64, f64)) {
        self.upper += own as f64 * young;
        self.inner += own as f64 * old;
        self.estimate += own as f64 * (young + old) / 2.0;
        self.rows += 1;
    }
}
