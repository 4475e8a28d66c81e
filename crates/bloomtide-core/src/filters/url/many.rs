//! Batches of a URL filter: the same answers as one by one, with the waiting taken out.
//!
//! Some rows become a piece: their digests, sorted by layer. Each layer then takes its own as the batch of
//! a Bloom filter (`batch.rs` says how that prefetches), and a row is new if any layer or X says so.
//!
//! Threads. All of them cut and hash pieces; then each takes layers, one after the other. Every layer sees its
//! digests in order, so the answers are the same with any number of threads.

use super::address::{Trail, text, whole};
use super::{Bind, UrlFilter};
use crate::batch::{self, KeySource};
use crate::crew::Crew;
use crate::error::{Error, Result};
use crate::filters::BloomFilter;
use crate::hash::KeyHash;
use crate::url::check;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

/// Rows of a piece: what there is of them at once stays in the nearer caches.
const PIECE: usize = 1 << 9;
/// Pieces that a thread of several cuts before layers are shared out.
const PIECES: usize = 16;
/// A batch of at most so many rows is read before anything is added, so a row that is no URL changes nothing.
pub const READ_FIRST: usize = PIECES * PIECE;

/// An error comes with the row that it is of, or the number of rows before it.
type Outcome = std::result::Result<(), (usize, Error)>;

/// How many of a layer's latest digests a piece looks among for one that it has already.
const RECENT: usize = 256;

/// The digests of one layer. Most rows share the prefixes near the root with a row before them, so each digest is
/// kept once, as far as that shows at a glance.
struct Level {
    digests: [KeyHash; PIECE],
    /// How many of them there are.
    count: usize,
    /// For additions: the row that brought each digest.
    rows: [u16; PIECE],
    /// For questions: each row that has this layer, with the place of its digest, and how many there are.
    places: [(u16, u16); PIECE],
    asked: usize,
    /// By some bits of a digest, where it may be.
    recent: [u16; RECENT],
}

impl Level {
    fn new() -> Self {
        Level {
            digests: [KeyHash::default(); PIECE],
            count: 0,
            rows: [0; PIECE],
            places: [(0, 0); PIECE],
            asked: 0,
            recent: [0; RECENT],
        }
    }

    fn clear(&mut self) {
        (self.count, self.asked) = (0, 0);
    }

    fn digests(&self) -> &[KeyHash] {
        &self.digests[..self.count]
    }

    fn places(&self) -> &[(u16, u16)] {
        &self.places[..self.asked]
    }

    /// Takes a row's digest. No level has more than the piece has rows, so the remainders only tell the compiler.
    /// Whether the digest is here already cannot be foreseen, so there is no branch: it is written behind the others
    /// in any case, and counted only if it is new.
    #[inline(always)]
    fn push<const ASKED: bool>(&mut self, row: u16, digest: KeyHash) {
        let recent = &mut self.recent[digest.h1 as usize % RECENT];
        let place = *recent as usize;
        let known = self.digests[place % PIECE];
        let differs = (known.h1 ^ digest.h1) | (known.h2 ^ digest.h2);
        let new = (place >= self.count) | (differs != 0);
        let next = self.count % PIECE;
        let place = next ^ ((next ^ place) & usize::from(!new).wrapping_neg());
        *recent = place as u16;
        self.digests[next] = digest;
        self.rows[next] = row;
        self.count += usize::from(new);
        if ASKED {
            self.places[self.asked % PIECE] = (row, place as u16);
            self.asked += 1;
        }
    }

    /// Takes a row that has the digest of the row before it.
    #[inline(always)]
    fn repeat<const ASKED: bool>(&mut self, row: u16) {
        if ASKED && let Some((_, place)) = self.places().last() {
            self.places[self.asked % PIECE] = (row, *place);
            self.asked += 1;
        }
    }
}

/// Some rows of a batch.
struct Piece<'k> {
    /// From the root on.
    levels: Vec<Level>,
    /// How many of the levels are in use.
    depth: usize,
    /// X's digest of each row, or with `Bind::Xor` its cells of each row, one row after the other.
    whole: Vec<KeyHash>,
    cells: Vec<u64>,
    trail: Trail<'k>,
    /// The first row that is no URL, counted from the batch's first.
    refused: Option<(usize, Error)>,
}

impl<'k> Piece<'k> {
    fn new() -> Self {
        Piece {
            levels: vec![],
            depth: 0,
            whole: vec![],
            cells: vec![],
            trail: Trail::new(),
            refused: None,
        }
    }

    /// Reads these rows, up to the first that is no URL.
    fn fill<const ASKED: bool>(
        &mut self,
        filter: &UrlFilter,
        keys: &'k dyn KeySource,
        rows: Range<usize>,
    ) {
        self.levels[..self.depth].iter_mut().for_each(Level::clear);
        self.depth = 0;
        self.trail.forget();
        self.whole.clear();
        self.cells.clear();
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn newer<'k, const ASKED: bool>(
                piece: &mut Piece<'k>,
                filter: &UrlFilter,
                keys: &'k dyn KeySource,
                rows: Range<usize>,
            ) {
                piece.read_rows::<ASKED>(filter, keys, rows);
            }
            if is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("lzcnt")
            {
                // SAFETY: the processor has the instructions.
                return unsafe { newer::<ASKED>(self, filter, keys, rows) };
            }
        }
        self.read_rows::<ASKED>(filter, keys, rows);
    }

    #[inline(always)]
    fn read_rows<const ASKED: bool>(
        &mut self,
        filter: &UrlFilter,
        keys: &'k dyn KeySource,
        rows: Range<usize>,
    ) {
        let Piece { levels, depth, whole: wholes, cells, trail, .. } = self;
        let first = rows.start;
        for row in rows {
            let shared = match trail.follow(&filter.plan, &filter.hasher, keys.key(row)) {
                Ok(shared) => shared,
                Err(error) => {
                    self.refused = Some((row, error));
                    return;
                }
            };
            let at = (row - first) as u16;
            let digests = trail.digests();
            while levels.len() < digests.len() {
                levels.push(Level::new());
            }
            *depth = digests.len().max(*depth);
            let (same, others) = levels[..digests.len()].split_at_mut(shared);
            same.iter_mut().for_each(|level| level.repeat::<ASKED>(at));
            for (level, digest) in others.iter_mut().zip(&digests[shared..]) {
                level.push::<ASKED>(at, *digest);
            }
            if filter.plan.bind == Bind::Xor {
                cells.extend(filter.crossed(digests));
            } else {
                wholes.push(whole(digests[digests.len() - 1]));
            }
        }
    }

    /// Adds all digests of one part, X or a layer from 1 on, and notes the rows that were new to it.
    fn add(&self, filter: &UrlFilter, part: usize, new: &[AtomicBool], crew: &mut Crew) {
        let mut add = |filter: &BloomFilter, digests: &[KeyHash], then: &dyn Fn(usize)| {
            let mut answers = [false; PIECE];
            let answers = &mut answers[..digests.len()];
            filter.add_many(&digests, answers, crew);
            (0..answers.len()).filter(|at| answers[*at]).for_each(then);
        };
        let note = |row: usize| new[row].store(true, Ordering::Relaxed);
        match part.checked_sub(1) {
            Some(layer) if layer < self.depth => {
                let level = &self.levels[layer];
                add(&filter.layers[layer], level.digests(), &|at| note(level.rows[at] as usize));
            }
            Some(_) => {}
            None if filter.plan.bind == Bind::Xor => {
                let hashes = filter.whole.plan().hashes as usize;
                for (row, cells) in self.cells.chunks_exact(hashes).enumerate() {
                    if filter.whole.add_cells(cells.iter().copied()) {
                        note(row);
                    }
                }
            }
            None => add(&filter.whole, &self.whole, &note),
        }
    }

    /// `contains` for every row.
    fn ask(&self, filter: &UrlFilter, out: &mut [bool], crew: &mut Crew) {
        if filter.plan.bind == Bind::Xor {
            let hashes = filter.whole.plan().hashes as usize;
            for (cells, answer) in self.cells.chunks_exact(hashes).zip(&mut *out) {
                *answer = filter.whole.has_cells(cells.iter().copied());
            }
        } else {
            filter.whole.contains_many(&self.whole.as_slice(), out, crew);
        }
        // X ends most absent URLs, so the layers are asked only for what is left.
        let (mut places, mut digests) = ([0; PIECE], [KeyHash::default(); PIECE]);
        let (mut found, mut known) = ([false; PIECE], [false; PIECE]);
        for (layer, level) in self.levels[..self.depth].iter().enumerate().rev() {
            let Some(layer) = filter.layers.get(layer) else {
                level.places().iter().for_each(|(row, _)| out[*row as usize] = false);
                continue;
            };
            let mut count = 0;
            known[..level.count].fill(false);
            for (row, place) in level.places() {
                let place = *place as usize % PIECE;
                // Without a branch, which could not be foreseen: the next one is written over it.
                (places[count % PIECE], digests[count % PIECE]) = (place, level.digests[place]);
                count += usize::from(out[*row as usize] & !known[place]);
                known[place] |= out[*row as usize];
            }
            let answers = &mut found[..count];
            layer.contains_many(&&digests[..count], answers, crew);
            places.iter().zip(answers).for_each(|(place, found)| known[*place] = *found);
            for (row, place) in level.places() {
                out[*row as usize] &= known[*place as usize % PIECE];
            }
        }
    }
}

impl UrlFilter {
    /// Refuses the first row that is no URL.
    pub fn check_many(keys: &dyn KeySource, crew: &mut Crew) -> Result<()> {
        let refused = Refused::default();
        let mut nothing = vec![(); keys.len()];
        batch::split(&mut nothing, crew, |rows, _| {
            let mut buffer = Vec::new();
            let refuse = |row: usize| {
                let outcome = text(keys.key(row)).and_then(|url| check(url, &mut buffer));
                outcome.err().map(|error| (row, error))
            };
            refused.note(rows.into_iter().find_map(refuse));
        });
        refused.into_result()
    }

    /// Adds every URL in order; `out[i]` as `add` would have answered, whatever the crew is. On an error, the
    /// number of rows that went in comes with it; after `check_many`, which a batch of more than `READ_FIRST` rows
    /// needs to be all or nothing, only a lack of memory is one.
    pub fn add_many(&mut self, keys: &dyn KeySource, out: &mut [bool], crew: &mut Crew) -> Outcome {
        let threads = crew.muster(keys.len()).count();
        let count = if threads == 1 && keys.len() > READ_FIRST { 1 } else { PIECES * threads };
        let count = count.min(keys.len().div_ceil(PIECE)).max(1);
        let pieces: Vec<_> = (0..count).map(|_| RwLock::new(Piece::new())).collect();
        out.fill(false);
        for start in (0..keys.len()).step_by(count * PIECE) {
            let end = keys.len().min(start + count * PIECE);
            let pieces = &pieces[..(end - start).div_ceil(PIECE)];
            let next = AtomicUsize::new(0);
            let this = &*self;
            crew.muster(keys.len()).run(|_| {
                while let Some(at) = one_more(&next, pieces.len()) {
                    let first = start + PIECE * at;
                    batch::write(&pieces[at]).fill::<false>(
                        this,
                        keys,
                        first..end.min(first + PIECE),
                    );
                }
            });
            let mut depth = 0;
            for piece in pieces {
                let mut piece = batch::write(piece);
                depth = depth.max(piece.depth);
                if let Some((row, error)) = piece.refused.take() {
                    return Err((start, Error::Row { row, error: Box::new(error) }));
                }
            }
            self.reach(depth).map_err(|error| (start, error))?;
            let new = batch::atomic_bools(&mut out[start..end]);
            let next = AtomicUsize::new(0);
            let this = &*self;
            crew.muster(keys.len()).run(|_| {
                let mut alone = Crew::of(1);
                while let Some(part) = one_more(&next, depth + 1) {
                    for (piece, new) in pieces.iter().zip(new.chunks(PIECE)) {
                        batch::read(piece).add(this, part, new, &mut alone);
                    }
                }
            });
        }
        Ok(())
    }

    /// `contains` for every URL; refuses the first row that is none.
    pub fn contains_many(
        &self,
        keys: &dyn KeySource,
        out: &mut [bool],
        crew: &mut Crew,
    ) -> Result<()> {
        let refused = Refused::default();
        batch::split(out, crew, |rows, out| {
            let (mut piece, mut alone) = (Piece::new(), Crew::of(1));
            for (first, out) in rows.step_by(PIECE).zip(out.chunks_mut(PIECE)) {
                piece.fill::<true>(self, keys, first..first + out.len());
                if piece.refused.is_some() {
                    return refused.note(piece.refused.take());
                }
                piece.ask(self, out, &mut alone);
            }
        });
        refused.into_result()
    }
}

/// The first row of a batch that is no URL, whichever thread found it.
#[derive(Default)]
struct Refused(Mutex<Option<(usize, Error)>>);

impl Refused {
    fn note(&self, found: Option<(usize, Error)>) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = |(row, _): &(usize, Error)| first.as_ref().is_none_or(|(old, _)| row < old);
        if let Some(found) = found.filter(earlier) {
            *first = Some(found);
        }
    }

    fn into_result(self) -> Result<()> {
        match self.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some((row, error)) => Err(Error::Row { row, error: Box::new(error) }),
            None => Ok(()),
        }
    }
}

/// The next of so many things that threads take one by one.
fn one_more(next: &AtomicUsize, all: usize) -> Option<usize> {
    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < all)
}
