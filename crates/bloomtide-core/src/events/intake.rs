//! One pass: the events of a block go into all structures, and each key is hashed once.
//!
//! Events are taken in pieces that stay in the nearer caches. A piece is decoded and hashed, and every structure
//! takes it as a batch of its own, which asks for its cache lines ahead. A URL filter needs the URL itself.

use super::Block;
use crate::batch::{GROUP, KeySource};
use crate::crew::Crew;
use crate::error::{Error, Result};
use crate::event_time::{ClockView, StreamTime};
use crate::filters::{Epochs, When};
use crate::hash::{Hasher, KeyHash};
use crate::history::{Buffer, Mark, Moments};
use crate::key::Key;
use crate::{BloomFilter, HotList, TimeDecayingBloomFilter, Times, UrlFilter};

/// Events of a piece.
const PIECE: usize = 1 << 10;

/// Some events of a block, by column.
#[derive(Debug, Default)]
pub struct Piece<'a> {
    keys: Vec<Key<'a>>,
    digests: Vec<KeyHash>,
    counts: Vec<u64>,
    /// Whether a count is not one.
    weighted: bool,
    micros: Vec<i64>,
    seconds: Vec<f64>,
}

impl<'a> Piece<'a> {
    fn clear(&mut self) {
        self.keys.clear();
        self.counts.clear();
        self.micros.clear();
        self.seconds.clear();
        self.weighted = false;
    }

    /// The counts; None if all are one.
    pub fn counts(&self) -> Option<&[u64]> {
        self.weighted.then_some(&self.counts)
    }

    /// When the events happened, in microseconds since 1970.
    pub fn micros(&self) -> &[i64] {
        &self.micros
    }

    fn events(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    fn hash_all(&mut self, hasher: &Hasher) {
        self.digests.resize(self.keys.len(), KeyHash::default());
        for (group, digests) in self.digests.chunks_mut(GROUP).enumerate() {
            self.keys.as_slice().fill(hasher, group * GROUP, digests);
        }
    }
}

impl KeySource for Piece<'_> {
    fn len(&self) -> usize {
        self.keys.len()
    }

    #[inline(always)]
    fn hash(&self, _: &Hasher, row: usize) -> KeyHash {
        self.digests[row]
    }

    fn digests(&self) -> Option<&[KeyHash]> {
        Some(&self.digests)
    }

    fn key(&self, row: usize) -> Option<Key<'_>> {
        Some(self.keys[row])
    }
}

/// A structure that takes events.
pub trait Target {
    /// Takes a piece. Who `tells` says which keys were certainly not there before.
    fn take(&mut self, piece: &Piece<'_>, new: &mut [bool]) -> Result<()>;

    /// Whether it knows which keys are new.
    fn tells(&self) -> bool {
        true
    }

    /// What the clock showed when the piece came, in seconds since 1970.
    fn clock_is_at(&mut self, _seconds: f64) {}
}

impl Target for &BloomFilter {
    fn take(&mut self, piece: &Piece<'_>, new: &mut [bool]) -> Result<()> {
        self.add_many(piece, new, &mut Crew::new(1));
        Ok(())
    }
}

impl Target for UrlFilter {
    fn take(&mut self, piece: &Piece<'_>, new: &mut [bool]) -> Result<()> {
        self.add_many(piece, new, &mut Crew::new(1)).map_err(|(_, error)| error)
    }
}

impl Target for &TimeDecayingBloomFilter {
    fn take(&mut self, piece: &Piece<'_>, new: &mut [bool]) -> Result<()> {
        let epochs: Vec<i64> =
            piece.seconds.iter().map(|at| self.plan().fade.epoch_of(*at)).collect();
        // Within one epoch keys that come again can be added at once.
        let times = match epochs.first() {
            Some(epoch) if epochs.iter().all(|each| each == epoch) => {
                Epochs::One(When { epoch: *epoch, by_clock: false })
            }
            _ => Epochs::Each(&epochs),
        };
        self.add_many(piece, piece.counts(), times, new);
        Ok(())
    }

    fn clock_is_at(&mut self, seconds: f64) {
        TimeDecayingBloomFilter::clock_is_at(self, seconds);
    }
}

impl Target for HotList {
    fn take(&mut self, piece: &Piece<'_>, _: &mut [bool]) -> Result<()> {
        self.add_many(piece, piece.counts(), Times::Each(&piece.seconds))
            .map_err(|(_, error)| error)
    }

    fn tells(&self) -> bool {
        false
    }

    fn clock_is_at(&mut self, seconds: f64) {
        HotList::clock_is_at(self, seconds);
    }
}

impl Target for Buffer {
    fn take(&mut self, piece: &Piece<'_>, _: &mut [bool]) -> Result<()> {
        let marks: Vec<Mark> = piece.digests.iter().map(|digest| digest.mark()).collect();
        let wanted = self.add_marks(&marks, piece.counts(), Moments::Each(&piece.micros))?;
        wanted.iter().try_for_each(|each| self.name(*each, piece.keys[each.row]))?;
        self.forget_unnamed(&wanted);
        Ok(())
    }

    fn tells(&self) -> bool {
        false
    }

    fn clock_is_at(&mut self, seconds: f64) {
        Buffer::clock_is_at(self, seconds);
    }
}

/// What a pass came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// All occurrences.
    pub events: u64,
    /// Events whose key was certainly not there before, by the first structure that tells.
    pub new: u64,
    /// The earliest instant of the block, in microseconds since 1970.
    pub first: Option<i64>,
}

/// Takes the events of a block into all targets. `time` is that of the stream, in microseconds since 1970; the clock
/// was at `arrived` then. A block that is damaged changes nothing; after any other error, which only a lack of memory
/// is, the rest is not taken.
pub fn pass(
    block: &Block<'_>,
    hasher: &Hasher,
    targets: &mut [&mut dyn Target],
    time: &mut StreamTime,
) -> Result<Passed> {
    block.check()?;
    let mut passed = Passed::default();
    let arrived = block.arrived as f64;
    time.clock_is_at(ClockView::at(arrived / 1e6, |seconds| (seconds * 1e6).round()));
    targets.iter_mut().for_each(|target| target.clock_is_at(arrived / 1e6));
    let (mut cursor, mut piece) = (block.cursor(), Piece::default());
    let (mut new, mut scratch) = ([false; PIECE], [false; PIECE]);
    loop {
        piece.clear();
        while piece.len() < PIECE
            && let Some(event) = cursor.next()?
        {
            piece.keys.push(event.key);
            piece.counts.push(event.count);
            piece.weighted |= event.count != 1;
            time.note(event.at as f64);
            piece.micros.push(event.at);
            piece.seconds.push(event.at as f64 / 1e6);
        }
        if piece.is_empty() {
            return Ok(passed);
        }
        piece.hash_all(hasher);
        let rows = piece.len();
        new[..rows].fill(false);
        let mut told = false;
        for target in targets.iter_mut() {
            let answers = if told || !target.tells() { &mut scratch } else { &mut new };
            target.take(&piece, &mut answers[..rows]).map_err(stopped)?;
            told |= target.tells();
        }
        passed.events = passed.events.saturating_add(piece.events());
        passed.new += new[..rows].iter().map(|new| u64::from(*new)).sum::<u64>();
        passed.first = piece.micros.iter().copied().chain(passed.first).min();
    }
}

/// The row of a piece says nothing to who gave a block.
fn stopped(error: Error) -> Error {
    match error {
        Error::Row { error, .. } => *error,
        other => other,
    }
}
