//! The part of a history that still takes events: every open segment, and the journal of what came.
//!
//! An event goes to its row by its time, however late it is; the store above decides when a segment is
//! sealed. Events for a segment that was dropped open it anew, and it is sealed again beside the first. By
//! arrivals, as in the paper, a row ends when it has enough events; one with a count stays whole.
//!
//! A batch is sorted by row piece by piece, so that out-of-order events cost a sort of what fits the cache,
//! and the journal has one record for a row, not one for an event.
//!
//! # What stays true
//! 1. Counts are exact. All that a store holds is fewer than `MAX_EVENTS`, so no sum of them overflows.
//! 2. The records that were taken, and those of `dump`, make the same counts again (`recover.rs`).

use super::journal::Journal;
use super::names::affordable;
use super::open::{OpenRows, Seen};
use super::rollup::top;
use super::walk::OpenCount;
use super::{Contents, Item, MAX_EVENTS, MAX_ROWS, Mark, RowRecord};
use crate::error::{Error, Result};
use crate::event_time::{ClockView, FAR, Oddities, StreamTime};
use crate::hash::Hasher;
use crate::key::{Key, OwnedKey};
use crate::logs::Sink;
use std::collections::BTreeMap;

/// Events whose rows are found at once.
const PIECE: usize = 1 << 12;
/// Events ahead whose places are asked for.
const AHEAD: usize = 12;
/// Times, and spans of segments, are less than this away from 1970: no sum of them overflows.
pub(super) const FARTHEST: i64 = 1 << 60;

/// What ends a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsBy {
    /// Time: windows of so many microseconds, aligned to 1970.
    Time(i64),
    /// So many events, counted as they arrive.
    Arrivals(u64),
}

impl std::fmt::Display for RowsBy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RowsBy::Time(window) => write!(f, "window={window}"),
            RowsBy::Arrivals(events) => write!(f, "arrivals={events}"),
        }
    }
}

/// What a buffer is made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferPlan {
    /// What ends a row.
    pub rows_by: RowsBy,
    /// Rows of a segment.
    pub rows: u32,
    /// Keys of a segment that are listed by name.
    pub names: usize,
    /// What makes marks of keys.
    pub hasher: Hasher,
}

impl BufferPlan {
    /// Microseconds that one event may move the time on: two segments.
    pub(super) fn far(&self) -> f64 {
        match self.rows_by {
            RowsBy::Time(window) => FAR * window as f64 * f64::from(self.rows),
            RowsBy::Arrivals(_) => f64::INFINITY,
        }
    }

    fn checked(self) -> Result<Self> {
        if self.rows == 0 || self.rows as usize > MAX_ROWS {
            let hint = "a segment of 60 rows of a minute is an hour";
            return Err(Error::parameter("rows", self.rows, "between 1 and 2**24", hint));
        }
        match self.rows_by {
            RowsBy::Time(window) if window < 1 || window > FARTHEST / i64::from(self.rows) => {
                let allowed = "above zero, and a segment shorter than 30,000 years";
                Err(Error::parameter("window", window, allowed, "give microseconds"))
            }
            RowsBy::Arrivals(0) => {
                Err(Error::parameter("arrivals", 0, "at least 1", "10_000 is the paper's choice"))
            }
            _ if self.names > 1 << 20 => {
                let hint = "256 names of each segment are plenty for the top hundred";
                Err(Error::parameter("names", self.names, "at most 2**20", hint))
            }
            _ => Ok(self),
        }
    }
}

/// The times of a batch, in microseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub enum Moments<'a> {
    /// One for all.
    All(i64),
    /// One for each row.
    Each(&'a [i64]),
}

/// A row of a batch whose key should be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its place in the batch.
    pub row: usize,
    mark: Mark,
    segment: i64,
}

/// The rows of a batch.
#[derive(Clone, Copy)]
struct Batch<'a> {
    marks: &'a [Mark],
    counts: Option<&'a [u64]>,
    at: Moments<'a>,
}

impl Batch<'_> {
    fn count(&self, row: usize) -> u64 {
        self.counts.map_or(1, |counts| counts[row])
    }

    /// All counts together; None if no number holds them.
    fn events(&self) -> Option<u64> {
        let Some(counts) = self.counts else { return Some(self.marks.len() as u64) };
        counts.iter().try_fold(0u64, |sum, count| sum.checked_add(*count))
    }

    fn times(&self, mut rows: impl Iterator<Item = usize>) -> Seen {
        match self.at {
            Moments::All(at) => Seen { first: at, last: at, events: 0 },
            Moments::Each(times) => rows.by_ref().fold(Seen::NOTHING, |seen, row| Seen {
                first: seen.first.min(times[row]),
                last: seen.last.max(times[row]),
                events: 0,
            }),
        }
    }
}

/// The open segments of a history.
#[derive(Debug)]
pub struct Buffer {
    pub(super) plan: BufferPlan,
    pub(super) open: BTreeMap<i64, OpenRows>,
    /// None if nobody asks for it.
    pub(super) journal: Option<Journal>,
    /// The time of the stream, in microseconds: of dropped segments too. It decides what is sealed; events whose times
    /// are not believed are in their own rows all the same.
    pub(super) time: StreamTime,
    /// The row of the next arrival; not used by time.
    pub(super) next_row: i64,
    /// Pairs of key and row in all open segments.
    pub(super) entries: usize,
    /// Events in all open segments.
    pub(super) events: u64,
    /// Events that the store holds besides.
    sealed: u64,
}

impl Buffer {
    /// Nothing yet.
    pub fn new(plan: BufferPlan) -> Result<Self> {
        let plan = plan.checked()?;
        let time = StreamTime::new(plan.far());
        let (open, journal) = (BTreeMap::new(), Some(Journal::default()));
        let mut this =
            Buffer { plan, open, journal, time, next_row: 0, entries: 0, events: 0, sealed: 0 };
        let state = this.state();
        this.journal.iter_mut().for_each(|journal| journal.state(&state));
        Ok(this)
    }

    /// Keeps no records: what is added is safe elsewhere.
    pub fn without_journal(self) -> Self {
        Buffer { journal: None, ..self }
    }

    /// What it was made by.
    pub fn plan(&self) -> &BufferPlan {
        &self.plan
    }

    // ---- adding

    /// Adds one key's occurrences.
    pub fn add(&mut self, key: Key<'_>, count: u64, at: i64) -> Result<()> {
        self.require_room("count", Some(count))?;
        let mark = key.hash(&self.plan.hasher).mark();
        let RowsBy::Time(window) = self.plan.rows_by else {
            let wanted = self.add_marks(&[mark], Some(&[count]), Moments::All(at))?;
            return wanted.into_iter().try_for_each(|wanted| self.name(wanted, key));
        };
        check(&Batch { marks: &[mark], counts: Some(&[count]), at: Moments::All(at) })?;
        // As a batch does it, without what a batch needs.
        let noted = self.time.note(at as f64);
        let at = if noted == at as f64 { at } else { noted as i64 };
        let row = at.div_euclid(window);
        let (segment, within) = self.place(row);
        let open = self.open.entry(segment).or_insert_with(|| OpenRows::new(self.plan.names));
        let (before, seen) = (open.entries(), Seen { first: at, last: at, events: count });
        let wanted = open.add(mark, within, count)?;
        self.entries += open.entries() - before;
        self.events += count;
        if let Some(journal) = &mut self.journal {
            journal.events(row, seen, 1);
            journal.push(mark, count);
        }
        open.see(within, seen)?;
        if wanted
            && open.name(mark, key)?
            && let Some(journal) = &mut self.journal
        {
            journal.name(segment, OwnedKey::of(key)?);
        }
        Ok(())
    }

    /// Adds every row, in order: all of them, or none if one is refused. The rows whose keys should be
    /// named: `name` takes them, then `forget_unnamed`.
    pub fn add_marks(
        &mut self,
        marks: &[Mark],
        counts: Option<&[u64]>,
        at: Moments<'_>,
    ) -> Result<Vec<Wanted>> {
        let batch = Batch { marks, counts, at };
        check(&batch)?;
        self.require_room("counts", batch.events())?;
        let believed = self.note_times(at, marks.len());
        let at = match (&believed, at) {
            (None, at) => at,
            (Some(times), Moments::All(_)) => Moments::All(times[0]),
            (Some(times), Moments::Each(_)) => Moments::Each(times),
        };
        let batch = Batch { at, ..batch };
        let mut wanted = Vec::new();
        for start in (0..marks.len()).step_by(PIECE) {
            let rows = start..marks.len().min(start + PIECE);
            match self.plan.rows_by {
                RowsBy::Time(window) => self.add_by_time(window, &batch, rows, &mut wanted)?,
                RowsBy::Arrivals(full) => self.add_arrivals(full, &batch, rows, &mut wanted)?,
            }
        }
        // Most that were wanted at first are too rare by now.
        let listed = |each: &Wanted| self.open[&each.segment].table.is_settled(each.mark);
        wanted.retain(listed);
        Ok(wanted)
    }

    /// Refuses more events than a store may hold: a sum that stopped at its largest number would be too low.
    pub(super) fn require_room(&self, name: &'static str, events: Option<u64>) -> Result<()> {
        let all = events.and_then(|more| more.checked_add(self.events + self.sealed));
        if all.is_some_and(|all| all < MAX_EVENTS) {
            return Ok(());
        }
        let hint = "a count is of events, not of bytes or of nanoseconds";
        let got = events.map_or("more than 2**64".to_owned(), |more| more.to_string());
        Err(Error::parameter(name, got, "fewer than 2**62 together with all before", hint))
    }

    /// How many events the store has sealed: with those here they are fewer than `MAX_EVENTS`.
    pub fn set_sealed(&mut self, events: u64) {
        self.sealed = events.min(MAX_EVENTS);
    }

    /// Lets the stream's time follow a batch; the times of its rows if some are not what they say.
    fn note_times(&mut self, at: Moments<'_>, rows: usize) -> Option<Vec<i64>> {
        let times = match &at {
            Moments::All(at) => std::slice::from_ref(at),
            Moments::Each(times) => times,
        };
        let mut believed = Vec::new();
        for (row, at) in times.iter().enumerate() {
            let noted = self.time.note(*at as f64);
            if noted != *at as f64 {
                believed = if believed.is_empty() { times.to_vec() } else { believed };
                believed[row] = noted as i64;
            }
        }
        if let Moments::All(at) = at {
            for _ in 1..rows {
                self.time.note(at as f64);
            }
        }
        (!believed.is_empty()).then_some(believed)
    }

    /// What the clock shows, in seconds since 1970. Until then every time is possible.
    pub fn clock_is_at(&mut self, seconds: f64) {
        self.time.clock_is_at(ClockView::at(seconds, |seconds| (seconds * 1e6).round()));
    }

    /// How often times were not taken as they were.
    pub fn oddities(&self) -> Oddities {
        self.time.odd()
    }

    /// How many events wait until their times are believed; they are in their rows all the same.
    pub fn aside(&self) -> usize {
        self.time.aside()
    }

    fn add_by_time(
        &mut self,
        window: i64,
        batch: &Batch<'_>,
        rows: std::ops::Range<usize>,
        wanted: &mut Vec<Wanted>,
    ) -> Result<()> {
        let times = match batch.at {
            Moments::All(at) => return self.add_rows(at.div_euclid(window), batch, rows, wanted),
            Moments::Each(times) => times,
        };
        let seen = batch.times(rows.clone());
        let first = seen.first.div_euclid(window);
        if first == seen.last.div_euclid(window) {
            return self.add_rows(first, batch, rows, wanted);
        }
        // By row, and in their order within each. The stable sort finds the runs of a stream that is only a
        // little out of order.
        let mut order: Vec<(i64, usize)> =
            rows.map(|row| (times[row].div_euclid(window), row)).collect();
        order.sort_by_key(|each| each.0);
        order.chunk_by(|a, b| a.0 == b.0).try_for_each(|same| {
            self.add_rows(same[0].0, batch, same.iter().map(|each| each.1), wanted)
        })
    }

    fn add_arrivals(
        &mut self,
        full: u64,
        batch: &Batch<'_>,
        rows: std::ops::Range<usize>,
        wanted: &mut Vec<Wanted>,
    ) -> Result<()> {
        let mut rest = rows;
        while !rest.is_empty() {
            let mut room = full.saturating_sub(self.arrived(self.next_row));
            if room == 0 {
                self.next_row += 1;
                continue;
            }
            let mut end = rest.start;
            while end < rest.end && room > 0 {
                room = room.saturating_sub(batch.count(end));
                end += 1;
            }
            self.add_rows(self.next_row, batch, rest.start..end, wanted)?;
            rest.start = end;
        }
        Ok(())
    }

    /// Events that a row has.
    fn arrived(&self, row: i64) -> u64 {
        let (segment, within) = self.place(row);
        let rows = self.open.get(&segment).map_or(&[][..], OpenRows::rows);
        rows.get(within as usize).map_or(0, |seen| seen.events)
    }

    /// Adds some rows of a batch to one row.
    fn add_rows(
        &mut self,
        row: i64,
        batch: &Batch<'_>,
        rows: impl Iterator<Item = usize> + Clone,
        wanted: &mut Vec<Wanted>,
    ) -> Result<()> {
        let (segment, within) = self.place(row);
        let open = self.open.entry(segment).or_insert_with(|| OpenRows::new(self.plan.names));
        let before = open.entries();
        let mut seen = batch.times(rows.clone());
        if let Some(journal) = &mut self.journal {
            journal.events(row, seen, rows.size_hint().0);
        }
        let mut ahead = rows.clone();
        ahead.by_ref().take(AHEAD).for_each(|row| open.table.prefetch(batch.marks[row]));
        let outcome = rows.into_iter().try_for_each(|row| {
            if let Some(ahead) = ahead.next() {
                open.table.prefetch(batch.marks[ahead]);
            }
            let (mark, count) = (batch.marks[row], batch.count(row));
            if open.add(mark, within, count)? {
                wanted.push(Wanted { row, mark, segment });
            }
            if let Some(journal) = &mut self.journal {
                journal.push(mark, count);
            }
            seen.events += count;
            Ok(())
        });
        self.entries += open.entries() - before;
        self.events += seen.events;
        // What went in before an error is seen, too.
        open.see(within, seen).and(outcome)
    }

    /// The key of a row that was wanted.
    pub fn name(&mut self, wanted: Wanted, key: Key<'_>) -> Result<()> {
        // An array may have changed since it was hashed.
        if key.hash(&self.plan.hasher).mark() != wanted.mark {
            return Ok(());
        }
        let Some(open) = self.open.get_mut(&wanted.segment) else { return Ok(()) };
        if open.name(wanted.mark, key)?
            && let Some(journal) = &mut self.journal
        {
            journal.name(wanted.segment, OwnedKey::of(key)?);
        }
        Ok(())
    }

    /// The keys of a batch have come, as far as they will. What has none is asked for again.
    pub fn forget_unnamed(&mut self, wanted: &[Wanted]) {
        let mut segments: Vec<i64> = wanted.iter().map(|each| each.segment).collect();
        segments.sort_unstable();
        segments.dedup();
        for segment in segments {
            self.open.get_mut(&segment).into_iter().for_each(OpenRows::drop_nameless);
        }
    }

    // ---- asking

    /// The segment of a row, and the row's place in it.
    pub(super) fn place(&self, row: i64) -> (i64, u32) {
        let rows = i64::from(self.plan.rows);
        (row.div_euclid(rows), row.rem_euclid(rows) as u32)
    }

    /// The time of the stream: its latest event, but for those whose times are not believed.
    pub fn newest(&self) -> Option<i64> {
        self.time.now().map(|now| now as i64)
    }

    /// Pairs of key and row that are held.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Bytes on the heap, about.
    pub fn bytes(&self) -> u64 {
        self.open.values().map(OpenRows::bytes).sum()
    }

    /// The open segments by number, in order.
    pub fn segments(&self) -> impl Iterator<Item = (i64, &OpenRows)> {
        self.open.iter().map(|(index, open)| (*index, open))
    }

    /// One of them.
    pub fn segment(&self, index: i64) -> Result<&OpenRows> {
        self.open.get(&index).ok_or_else(|| {
            let hint = "segments() lists those that are open";
            Error::parameter("index", index, "an open segment's number", hint)
        })
    }

    /// Where a segment's time begins and ends. By arrivals that is what its events say.
    pub fn span(&self, index: i64) -> Result<(i64, i64)> {
        let seen = self.segment(index)?.seen();
        Ok(match self.plan.rows_by {
            RowsBy::Time(window) => {
                let span = window * i64::from(self.plan.rows);
                (index * span, (index + 1) * span)
            }
            RowsBy::Arrivals(_) => (seen.first, seen.last + 1),
        })
    }

    /// Whether events in their order can no longer reach the segment.
    pub fn is_complete(&self, index: i64) -> Result<bool> {
        Ok(match self.plan.rows_by {
            RowsBy::Time(_) => self.newest() >= Some(self.span(index)?.1),
            RowsBy::Arrivals(full) => {
                let last = (index + 1) * i64::from(self.plan.rows) - 1;
                last < self.next_row || last == self.next_row && self.arrived(last) >= full
            }
        })
    }

    /// How many rows a segment has. By time every row is there, whether it saw something or not.
    pub fn row_count(&self, open: &OpenRows) -> usize {
        match self.plan.rows_by {
            RowsBy::Time(_) => self.plan.rows as usize,
            RowsBy::Arrivals(_) => open.rows().len(),
        }
    }

    /// How often a key came in each row of the open segments, with what the row has seen.
    pub fn counts_of(&self, mark: Mark) -> Vec<OpenCount> {
        let each = |open: &OpenRows| {
            let of = |(row, count): (u32, u64)| Some((*open.rows().get(row as usize)?, count));
            open.rows_of(mark).filter_map(of).collect::<Vec<_>>()
        };
        self.open.values().flat_map(each).collect()
    }

    /// The rows of a segment as they are recorded.
    pub fn row_records(&self, index: i64) -> Result<Vec<RowRecord>> {
        let (seen, (begin, _)) = (self.segment(index)?.rows(), self.span(index)?);
        let record = |(row, seen): (usize, Seen)| {
            let (begin, end) = match self.plan.rows_by {
                RowsBy::Time(window) => {
                    let begin = begin + row as i64 * window;
                    (begin, begin + window)
                }
                RowsBy::Arrivals(_) if seen.events > 0 => (seen.first, seen.last + 1),
                RowsBy::Arrivals(_) => (begin, begin),
            };
            RowRecord { begin, end, seen, windows: 1 }
        };
        let rows = self.row_count(self.segment(index)?);
        let seen = seen.iter().copied().chain(std::iter::repeat(Seen::NOTHING)).take(rows);
        Ok(seen.enumerate().map(record).collect())
    }

    /// Everything of a segment, or of several as one, to be sealed as one of that level. Of several it has no
    /// rows that saw nothing.
    pub fn contents(&self, indexes: &[i64], level: u8) -> Result<Contents> {
        let mut all = Contents { level, begin: i64::MAX, end: i64::MIN, ..Contents::default() };
        let mut keys: Vec<Key<'_>> = Vec::new();
        let mut sorted = indexes.to_vec();
        sorted.sort_unstable();
        for index in sorted {
            let (open, (begin, end)) = (self.segment(index)?, self.span(index)?);
            (all.begin, all.end) = (all.begin.min(begin), all.end.max(end));
            let mut places = Vec::new();
            for record in self.row_records(index)? {
                places.push(all.rows.len() as u32);
                if record.seen.events > 0 || indexes.len() == 1 {
                    all.rows.push(record);
                }
            }
            let placed = |item: Item| Item { row: places[item.row as usize], ..item };
            all.items.extend(open.items()?.into_iter().map(placed));
            keys.extend(open.names.keys().map(OwnedKey::view));
        }
        all.items.sort_unstable_by_key(|item| (item.mark, item.row));
        let (names, unlisted) = match indexes {
            [index] => self.segment(*index)?.top(), // knows them without a hash
            _ => top(keys.into_iter(), &all.items, self.plan.names, &self.plan.hasher)?,
        };
        (all.names, all.unlisted) = affordable(names, unlisted, all.items.len());
        Ok(all)
    }

    /// Forgets a segment: it was sealed.
    pub fn drop_segment(&mut self, index: i64) -> Result<()> {
        self.segment(index)?;
        if let Some(dropped) = self.open.remove(&index) {
            self.entries -= dropped.entries();
            self.events -= dropped.seen().events;
        }
        // By arrivals a segment that was sealed before it was full is not taken up again.
        if self.place(self.next_row).0 == index {
            self.next_row = (index + 1) * i64::from(self.plan.rows);
        }
        Ok(())
    }
}

/// Refuses a batch with a row that cannot be counted.
fn check(batch: &Batch<'_>) -> Result<()> {
    let rows = batch.marks.len();
    let refuse = |row, error| Err(Error::Row { row, error: Box::new(error) });
    if let Some(counts) = batch.counts {
        if counts.len() != rows {
            let hint = "give one for each key";
            return Err(Error::parameter("counts", counts.len(), "as many as keys", hint));
        }
        if let Some(row) = counts.iter().position(|count| *count == 0) {
            let hint = "leave rows of zero out";
            return refuse(row, Error::parameter("counts", 0, "at least 1", hint));
        }
    }
    let times = match &batch.at {
        Moments::All(at) => std::slice::from_ref(at),
        Moments::Each(times) if times.len() != rows => {
            let hint = "give one instant for each key";
            return Err(Error::parameter("at", times.len(), "as many as keys, or one", hint));
        }
        Moments::Each(times) => times,
    };
    let far = |at: &i64| !(-FARTHEST..FARTHEST).contains(at);
    match times.iter().position(far) {
        Some(row) => {
            let allowed = "within 30,000 years of 1970";
            refuse(row, Error::parameter("at", times[row], allowed, "give microseconds"))
        }
        None => Ok(()),
    }
}

/// Seconds since 1970 as microseconds.
pub fn microseconds(seconds: f64) -> i64 {
    (seconds * 1e6).round() as i64
}

impl Sink for Buffer {
    #[inline]
    fn add(&mut self, key: &[u8], at: f64) -> Result<()> {
        Buffer::add(self, Key::Bytes(key), 1, microseconds(at))
    }
}

#[cfg(test)]
#[path = "buffer_tests.rs"]
mod tests;
