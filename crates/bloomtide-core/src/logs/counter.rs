//! A log counted by one of its fields: every line goes into the structures that keep what is hot.
//!
//! Time is the log's own. A line without a time counts as of the latest time before it, and where a
//! log has no times at all, as of the moment the caller says it is.

use super::{Field, Format, LogReader, Record};
use crate::filters::When;
use crate::{HotList, Key, Result, TimeDecayingBloomFilter};
use memchr::memchr;

/// What counts keys at their times.
pub trait Sink {
    /// One occurrence of the key.
    fn add(&mut self, key: &[u8], at: f64) -> Result<()>;
}

impl Sink for HotList {
    #[inline]
    fn add(&mut self, key: &[u8], at: f64) -> Result<()> {
        HotList::add(self, Key::Bytes(key), 1, at)
    }
}

impl Sink for &TimeDecayingBloomFilter {
    #[inline]
    fn add(&mut self, key: &[u8], at: f64) -> Result<()> {
        let when = When { epoch: self.plan().fade.epoch_of(at), by_clock: false };
        TimeDecayingBloomFilter::add(self, self.hasher().bytes(key), 1, when);
        Ok(())
    }
}

/// What is counted, and of which lines.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The field that is the key.
    pub by: Field,
    /// Whether what follows the `?` is part of a path.
    pub query: bool,
    /// Lines after this instant are left out.
    pub until: Option<f64>,
}

/// What became of the records.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Those that were counted.
    pub counted: u64,
    /// Those that lack the field.
    pub without: u64,
    /// Those after the end.
    pub later: u64,
    /// The earliest time that was counted.
    pub first: Option<f64>,
}

/// Reads one log and counts it.
#[derive(Debug)]
pub struct LogCounter {
    reader: LogReader,
    choice: Choice,
    tally: Tally,
    /// The time of a line that has none.
    time: Option<f64>,
}

impl LogCounter {
    /// Of the format given, or of the one that the first lines have.
    pub fn new(format: Option<Format>, choice: Choice) -> Self {
        let reader = LogReader::new(format);
        LogCounter { reader, choice, tally: Tally::default(), time: None }
    }

    /// Counts the lines that end in the chunk. `now` is the time of lines in logs without times. After
    /// an error the rest of the chunk is read and not counted.
    pub fn feed(&mut self, chunk: &[u8], now: f64, sinks: &mut [&mut dyn Sink]) -> Result<()> {
        self.count(now, sinks, |reader, each| reader.feed(chunk, each))
    }

    /// Finds the format by the lines held back so far.
    pub fn settle(&mut self, now: f64, sinks: &mut [&mut dyn Sink]) -> Result<()> {
        self.count(now, sinks, |reader, each| reader.settle(each))
    }

    /// The bytes have ended; another log of the same format may follow.
    pub fn finish(&mut self, now: f64, sinks: &mut [&mut dyn Sink]) -> Result<()> {
        self.count(now, sinks, |reader, each| reader.finish(each))
    }

    /// What was read.
    pub fn reader(&self) -> &LogReader {
        &self.reader
    }

    /// What was counted.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    fn count(
        &mut self,
        now: f64,
        sinks: &mut [&mut dyn Sink],
        read: impl FnOnce(&mut LogReader, &mut dyn FnMut(&Record<'_>)),
    ) -> Result<()> {
        let Choice { by, query, until } = self.choice;
        let (tally, latest) = (&mut self.tally, &mut self.time);
        let mut outcome = Ok(());
        read(&mut self.reader, &mut |record| {
            if outcome.is_err() {
                return;
            }
            let time = record.time.or(*latest).unwrap_or(now);
            if until.is_some_and(|until| time > until) {
                tally.later += 1;
                return;
            }
            if record.time.is_some() && latest.is_none_or(|latest| time > latest) {
                *latest = record.time;
            }
            let Some(mut key) = record.get(by) else {
                tally.without += 1;
                return;
            };
            if !query && let Some(end) = memchr(b'?', key) {
                key = &key[..end];
            }
            tally.counted += 1;
            if tally.first.is_none_or(|first| time < first) {
                tally.first = Some(time);
            }
            outcome = sinks.iter_mut().try_for_each(|sink| sink.add(key, time));
        });
        outcome
    }
}
