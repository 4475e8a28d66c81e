//! Batches of a URL filter: the same answers as one by one, with the waiting taken out.
//!
//! Some rows become a piece: their digests, sorted by layer. Each layer then takes its own as the batch of
//! a Bloom filter (`batch.rs` says how that prefetches), and a row is new if any layer or X says so.
//!
//! Threads. All of them cut and hash pieces; then each takes layers, one after the other. Every layer sees its
//! digests in order, so the answers are the same with any number of threads.

use super::address::{read, text, whole};
use super::{Bind, UrlFilter};
use crate::batch::{self, KeySource};
use crate::crew::Crew;
use crate::error::{Error, Result};
use crate::filters::BloomFilter;
use crate::hash::KeyHash;
use crate::url::{Canon, canonical};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

/// Rows of a piece: what there is of them at once stays in the nearer caches.
const PIECE: usize = 1 << 10;
/// Pieces that a thread of several cuts before layers are shared out.
const PIECES: usize = 16;

/// An error comes with the row that it is of, or the number of rows before it.
type Outcome = std::result::Result<(), (usize, Error)>;

/// The digests of one layer, and the rows of the piece that they are of.
#[derive(Default)]
struct Level {
    rows: Vec<u32>,
    digests: Vec<KeyHash>,
}

/// Some rows of a batch.
#[derive(Default)]
struct Piece {
    /// From the root on.
    levels: Vec<Level>,
    /// How many of the levels are in use.
    depth: usize,
    /// X's digest of each row, or with `Bind::Xor` its cells of each row, one row after the other.
    whole: Vec<KeyHash>,
    cells: Vec<u64>,
    /// With `Bind::Xor` the digests of one row.
    path: Vec<KeyHash>,
    buffer: Vec<u8>,
    /// The first row that is no URL, counted from the batch's first.
    refused: Option<(usize, Error)>,
}

impl Piece {
    /// Reads these rows, up to the first that is no URL.
    fn fill(&mut self, filter: &UrlFilter, keys: &dyn KeySource, rows: Range<usize>) {
        self.levels[..self.depth].iter_mut().for_each(|level| {
            level.rows.clear();
            level.digests.clear();
        });
        self.depth = 0;
        self.whole.clear();
        self.cells.clear();
        let first = rows.start;
        let read = || rows.clone().try_for_each(|row| self.push(filter, keys, first, row));
        self.refused = batch::at_best(read).err();
    }

    #[inline(always)]
    fn push(
        &mut self,
        filter: &UrlFilter,
        keys: &dyn KeySource,
        first: usize,
        row: usize,
    ) -> Outcome {
        let Piece { levels, depth, whole: wholes, cells, path, buffer, .. } = self;
        let mut deepest = KeyHash::default();
        let xor = filter.plan.bind == Bind::Xor;
        path.clear();
        read(&filter.plan, &filter.hasher, keys.key(row), buffer, |layer, digest| {
            if layer == levels.len() {
                levels.push(Level::default());
            }
            levels[layer].rows.push((row - first) as u32);
            levels[layer].digests.push(digest);
            *depth = (*depth).max(layer + 1);
            deepest = digest;
            if xor {
                path.push(digest);
            }
        })
        .map_err(|error| (row, error))?;
        if xor {
            cells.extend(filter.crossed(path));
        } else {
            wholes.push(whole(deepest));
        }
        Ok(())
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
                add(&filter.layers[layer], &level.digests, &|at| note(level.rows[at] as usize));
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
        let (mut rows, mut digests, mut found) = (Vec::new(), Vec::new(), [false; PIECE]);
        for (layer, level) in self.levels[..self.depth].iter().enumerate().rev() {
            rows.clear();
            digests.clear();
            let both = level.rows.iter().zip(&level.digests);
            for (row, digest) in both.filter(|(row, _)| out[**row as usize]) {
                rows.push(*row as usize);
                digests.push(*digest);
            }
            let found = &mut found[..rows.len()];
            match filter.layers.get(layer) {
                Some(layer) => layer.contains_many(&digests.as_slice(), found, crew),
                None => found.fill(false),
            }
            rows.iter().zip(found).for_each(|(row, found)| out[*row] = *found);
        }
    }
}

impl UrlFilter {
    /// Refuses the first row that is no URL.
    pub fn check_many(keys: &dyn KeySource, crew: &mut Crew) -> Result<()> {
        let refused = Refused::default();
        let mut nothing = vec![(); keys.len()];
        batch::split(&mut nothing, crew, |rows, _| {
            let (mut buffer, options) = (Vec::new(), Canon::default());
            let refuse = |row: usize| {
                let url = text(keys.key(row));
                let outcome = url.and_then(|url| canonical(url, &options, &mut buffer).map(|_| ()));
                outcome.err().map(|error| (row, error))
            };
            refused.note(rows.into_iter().find_map(refuse));
        });
        refused.into_result()
    }

    /// Adds every URL in order; `out[i]` as `add` would have answered, whatever the crew is. On an error, the
    /// number of rows that went in comes with it; after `check_many` only a lack of memory is one.
    pub fn add_many(&mut self, keys: &dyn KeySource, out: &mut [bool], crew: &mut Crew) -> Outcome {
        let threads = crew.muster(keys.len()).count();
        let count = if threads == 1 { 1 } else { PIECES * threads };
        let pieces: Vec<RwLock<Piece>> = (0..count).map(|_| RwLock::default()).collect();
        out.fill(false);
        for start in (0..keys.len()).step_by(count * PIECE) {
            let end = keys.len().min(start + count * PIECE);
            let pieces = &pieces[..(end - start).div_ceil(PIECE)];
            let next = AtomicUsize::new(0);
            let this = &*self;
            crew.muster(keys.len()).run(|_| {
                while let Some(at) = one_more(&next, pieces.len()) {
                    let first = start + PIECE * at;
                    batch::write(&pieces[at]).fill(this, keys, first..end.min(first + PIECE));
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
            let (mut piece, mut alone) = (Piece::default(), Crew::of(1));
            for (first, out) in rows.step_by(PIECE).zip(out.chunks_mut(PIECE)) {
                piece.fill(self, keys, first..first + out.len());
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
