//! Lists, tuples and iterables of Python objects.
//!
//! A chunk of keys is hashed while the interpreter is held, because only it keeps the objects alive
//! and in place; then it is let go, and the core applies the digests. Taking a reference to every key
//! instead was slower: it writes to every object's header twice, and fresh strings lie all over memory.
//! For the same reason the headers of the keys ahead are prefetched while one is hashed.
//!
//! Threads. Who holds the interpreter holds it for all: while this thread keeps it, nobody can change the
//! list or its keys, and the crew may read them (`items.rs`). What is not plain memory this thread
//! hashes afterwards, in its place. A key whose hashing may run code of its own ends the sharing: from
//! there on the list is gone through one by one, and by this thread alone.

use super::items::{AHEAD, Items, has_no_code, prefetch};
use super::kept::{Chosen, Copies, Hashed};
use super::{Answers, Needs, Options, Verb, no_keys};
use crate::errors::{null_key, with_added};
use crate::key::{hash_key, plain, with_key, with_text};
use crate::python::*;
use bloomtide_core::{Crew, Hasher, Key, KeyHash, KeySource};
use pyo3::sync::critical_section::with_critical_section;
use std::ops::Range;

/// Keys hashed at once by each thread: their digests stay in the cache, and another Python thread waits
/// for the interpreter no longer than half a millisecond.
const CHUNK: usize = 1 << 15;
/// Keys copied at once for each thread: they stay in a core's second cache until they are used. A batch of URLs that is
/// to be read before it changes anything must fit.
const COPIED: usize = bloomtide_core::filters::READ_FIRST;

/// The keys of a chunk, hashed.
#[derive(Default)]
struct Chunk {
    /// One for each row, whatever it is for rows without a key; none for texts.
    digests: Vec<KeyHash>,
    /// Rows without a key, counted from the chunk's first; empty but for `nulls="skip"`.
    nulls: Vec<usize>,
    /// The keys, row for row, for a batch that keeps them.
    copies: Option<Copies>,
    /// Whether only text and bytes are keys.
    texts: bool,
}

impl Chunk {
    fn new(needs: Needs) -> Self {
        let copies = (needs != Needs::Digests).then(Copies::default);
        Chunk { copies, texts: needs == Needs::Texts, ..Chunk::default() }
    }

    fn rows(&self) -> usize {
        self.copies.as_ref().map_or(self.digests.len(), KeySource::len)
    }

    fn clear(&mut self) {
        self.digests.clear();
        self.nulls.clear();
        self.copies.iter_mut().for_each(Copies::clear);
    }

    /// Hashes one more key; `row` is its place in the batch.
    #[inline(always)]
    fn push(
        &mut self,
        hasher: &Hasher,
        key: &Object<'_>,
        row: usize,
        options: Options,
    ) -> PyResult<()> {
        // Most texts by a way of their own: what follows is too large to be inlined.
        if let (true, Some(copies)) = (self.texts, &mut self.copies)
            && let Some(text @ (Key::Text(_) | Key::Bytes(_))) = plain(key)
        {
            copies.push(text);
            return Ok(());
        }
        if key.is_none() {
            self.null(key.py(), self.rows(), row, options)?;
            // A row for a row: nobody looks at this one.
            self.keep(hasher, Key::Unsigned(0));
            Ok(())
        } else if self.texts {
            with_text(key, Some(row), |key| self.keep(hasher, key))
        } else {
            with_key(key, Some(row), |key| self.keep(hasher, key))
        }
    }

    #[inline(always)]
    fn keep(&mut self, hasher: &Hasher, key: Key<'_>) {
        // Who keeps texts has no use for their digests.
        if !self.texts {
            self.digests.push(key.hash(hasher));
        }
        if let Some(copies) = &mut self.copies {
            copies.push(key);
        }
    }

    /// Notes a row without a key: its place in the chunk and in the batch.
    fn null(&mut self, py: Python<'_>, at: usize, row: usize, options: Options) -> PyResult<()> {
        if !options.skip_nulls {
            return Err(null_key(py, row, false));
        }
        self.nulls.push(at);
        Ok(())
    }

    /// Hashes the rows from `start` on with all threads, up to the first whose hashing may run code
    /// of its own.
    fn hash_together(
        &mut self,
        py: Python<'_>,
        hasher: &Hasher,
        items: &Items<'_>,
        start: usize,
        options: Options,
        crew: &mut Crew,
    ) -> PyResult<()> {
        self.nulls.clear();
        // The digests of the chunk before are overwritten, not cleared: that would cost as much.
        self.digests.resize(items.len(), KeyHash::default());
        for at in items.hash_plain(hasher, &mut self.digests, crew) {
            let key = items.get(py, at);
            let row = start + at;
            let digest = if !has_no_code(&key) {
                self.digests.truncate(at);
                return Ok(());
            } else if key.is_none() {
                self.null(py, at, row, options).map(|()| KeyHash::default())
            } else {
                hash_key(hasher, &key, Some(row))
            };
            match digest {
                Ok(digest) => self.digests[at] = digest,
                Err(error) => {
                    self.digests.truncate(at);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Applies what was hashed, and tells the error that ended it, if any, how far the batch came.
    fn apply<T: Copy + Default + Send>(
        &self,
        answers: &mut Answers<T>,
        py: Python<'_>,
        verb: &Verb<'_, T>,
        outcome: PyResult<()>,
    ) -> PyResult<()> {
        let digests = self.digests.as_slice();
        let hashed = self.copies.as_ref().map(|copies| Hashed { digests, copies });
        let keys: &dyn KeySource = match &hashed {
            Some(hashed) if self.texts => hashed.copies,
            Some(hashed) => hashed,
            None => &digests,
        };
        if self.nulls.is_empty() {
            answers.extend(py, verb, keys)?;
        } else {
            let present = self.present();
            let chosen = Chosen { source: keys, rows: &present };
            answers.extend_some(py, verb, &chosen, &present, self.rows())?;
        }
        outcome.map_err(|error| with_added(py, error, answers.rows()))
    }

    /// The rows that have a key.
    fn present(&self) -> Vec<usize> {
        let mut nulls = self.nulls.iter().peekable();
        (0..self.rows()).filter(|row| nulls.next_if_eq(&row).is_none()).collect()
    }
}

/// Runs `then` on some items of a list or tuple that should still have `len` of them.
#[inline(always)]
pub(crate) fn each_item<'py>(
    keys: &Bound<'py, PyAny>,
    rows: Range<usize>,
    len: usize,
    mut then: impl FnMut(usize, &Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    let end = rows.end;
    rows.into_iter().try_for_each(|row| {
        if row + AHEAD < end {
            prefetch(Items::item(keys, row + AHEAD, len)?);
        }
        // SAFETY: the list holds a reference to the key; `with_key` takes its own one before it calls
        // anything that could change the list.
        let key = unsafe { Borrowed::from_ptr(keys.py(), Items::item(keys, row, len)?) };
        then(row, &key)
    })
}

/// A list or a tuple.
pub(super) fn run<T: Copy + Default + Send>(
    verb: &Verb<'_, T>,
    keys: &Object<'_>,
    options: Options,
) -> PyResult<Answers<T>> {
    let py = keys.py();
    let hasher = verb.hasher;
    let len = keys.len()?;
    let mut answers = Answers::new(len, options);
    // Keys that are kept are copied one by one, and by one thread.
    let mut together = verb.needs == Needs::Digests;
    let mut threads = if together { Items::readers(answers.crew(), len) } else { 1 };
    let mut chunk = Chunk::new(verb.needs);
    while answers.rows() < len {
        let start = answers.rows();
        // Without a global lock, the list's own keeps other threads from changing it meanwhile.
        let outcome = with_critical_section(keys, || {
            if together {
                let rows = start..len.min(start + CHUNK * threads);
                let items = Items::of(keys, rows, len).inspect_err(|_| chunk.clear())?;
                let crew = answers.crew();
                chunk.hash_together(py, &hasher, &items, start, options, crew)?;
                if chunk.rows() > 0 {
                    return Ok(());
                }
                (together, threads) = (false, 1);
                answers.dismiss_crew();
            }
            chunk.clear();
            let each = if chunk.copies.is_some() { COPIED * options.threads } else { CHUNK };
            let end = len.min(start + each.min(CHUNK));
            each_item(keys, start..end, len, |row, key| chunk.push(&hasher, key, row, options))
        });
        chunk.apply(&mut answers, py, verb, outcome)?;
    }
    Ok(answers)
}

/// Anything that can be iterated over. Its own code runs between two keys, so it has no crew.
pub(super) fn run_iterable<T: Copy + Default + Send>(
    verb: &Verb<'_, T>,
    keys: &Object<'_>,
    options: Options,
) -> PyResult<Answers<T>> {
    let py = keys.py();
    let hasher = verb.hasher;
    let mut iterator = keys.try_iter().map_err(|_| no_keys(keys))?;
    let mut answers = Answers::new(0, Options { threads: 1, ..options });
    let mut chunk = Chunk::new(verb.needs);
    loop {
        chunk.clear();
        let start = answers.rows();
        let outcome = iterator.by_ref().take(CHUNK).try_for_each(|key| {
            let row = start + chunk.rows();
            chunk.push(&hasher, &key?, row, options)
        });
        if chunk.rows() == 0 && outcome.is_ok() {
            return Ok(answers);
        }
        chunk.apply(&mut answers, py, verb, outcome)?;
    }
}
