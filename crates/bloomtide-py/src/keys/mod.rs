//! Batches of keys: whatever Python offers becomes rows that the core hashes by itself.
//!
//!   list, tuple                  hashed in chunks while the interpreter is held (`sequence.rs`, `items.rs`)
//!   NumPy and other buffers      read in place (`array.rs`)
//!   Arrow PyCapsule objects      read in place (`arrow.rs`, `arrow_ffi.rs`)
//!   pages of Parquet             read in place (`paged.rs`)
//!   any other iterable           the same, key by key
//!
//! A `Batch` is one verb over rows. Its answers come back as a NumPy array.

mod array;
mod arrow;
mod arrow_ffi;
mod arrow_rows;
mod items;
mod kept;
mod paged;
mod sequence;

pub(crate) use array::is_date;

use crate::buffer::View;
use crate::errors::{self, with_added};
use crate::pages::ParquetPage;
use bloomtide_core::{Crew, Error, Hasher, KeyHash, KeySource};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyMemoryView, PyString, PyTuple};
use std::sync::atomic::AtomicUsize;

/// One verb over many keys.
pub(crate) trait Batch: Sync {
    /// An answer, with NumPy's name of its type.
    type Answer: Copy + Default + Send + 'static;
    const DTYPE: &'static str;
    /// Whether the keys themselves are needed, not only their digests.
    const KEEPS: bool = false;
    /// Whether only text and bytes are keys.
    const TEXTS: bool = false;

    fn hasher(&self) -> Hasher;

    /// Counts calls that write without holding the interpreter; None for questions.
    fn writers(&self) -> Option<&AtomicUsize> {
        None
    }

    /// Refuses the next rows; asked before each part of a batch, with the interpreter held.
    fn ready(&self, _: Python<'_>) -> PyResult<()> {
        Ok(())
    }

    /// Told before each part of a batch which of its rows come next.
    fn choose(&self, _rows: &mut dyn Iterator<Item = usize>) {}

    /// Answers every row in order, or says how many rows went well before the error.
    fn run<S: KeySource + ?Sized>(
        &self,
        keys: &S,
        out: &mut [Self::Answer],
        crew: &mut Crew,
    ) -> Result<(), (usize, Error)>;
}

/// How a batch is to be run.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    pub(crate) skip_nulls: bool,
    pub(crate) threads: usize,
}

impl Options {
    pub(crate) fn parse(py: Python<'_>, nulls: &str, threads: i64) -> PyResult<Self> {
        let skip_nulls = match nulls {
            "refuse" => false,
            "skip" => true,
            _ => {
                let hint = "\"skip\" answers False (or 0) for rows without a key";
                return Err(errors::parameter(py, "nulls", nulls, "\"refuse\" or \"skip\"", hint));
            }
        };
        match usize::try_from(threads) {
            Ok(threads @ 1..=1024) => Ok(Options { skip_nulls, threads }),
            _ => {
                let hint = "one per processor core is the most that helps";
                Err(errors::parameter(py, "threads", threads, "between 1 and 1024", hint))
            }
        }
    }
}

/// Runs the batch over `keys`, of whatever kind they are.
pub(crate) fn run<'py, B: Batch>(
    batch: &B,
    keys: &Bound<'py, PyAny>,
    options: Options,
) -> PyResult<Bound<'py, PyAny>> {
    answers(batch, keys, options)?.into_numpy(keys.py())
}

/// The same, with the answers still to be taken.
pub(crate) fn answers<B: Batch>(
    batch: &B,
    keys: &Bound<'_, PyAny>,
    options: Options,
) -> PyResult<Answers<B>> {
    let py = keys.py();
    if let Ok(page) = keys.cast::<ParquetPage>() {
        return paged::run(py, batch, &page.get().0, options);
    }
    if let Some(answers) = arrow::run(batch, keys, options)? {
        return Ok(answers);
    }
    let sequence = keys.is_exact_instance_of::<PyList>() || keys.is_exact_instance_of::<PyTuple>();
    if sequence {
        sequence::run(batch, keys, options)
    } else if keys.is_instance_of::<PyString>()
        || keys.is_instance_of::<PyBytes>()
        || keys.is_instance_of::<PyByteArray>()
        || keys.is_instance_of::<PyMemoryView>()
    {
        let kind = keys.get_type().qualname()?;
        let hint = "for one key use add(key), `key in filter` or count(key)";
        Err(errors::parameter(py, "keys", kind, "many keys, not one", hint))
    } else if array::is_masked(keys) {
        // A masked value becomes None, which is a null.
        sequence::run(batch, &keys.call_method0("tolist")?, options)
    } else if let Some(view) = View::of(keys, ffi::PyBUF_FORMAT | ffi::PyBUF_STRIDES) {
        array::run(batch, keys, view, options)
    } else {
        sequence::run_iterable(batch, keys, options)
    }
}

/// The answers of a batch, where the next row goes, and the threads that work on it.
pub(crate) struct Answers<B: Batch> {
    values: Vec<B::Answer>,
    rows: usize,
    crew: Crew,
}

impl<B: Batch> Answers<B> {
    /// None yet; there will be `expected` of them, or more.
    pub(crate) fn new(expected: usize, options: Options) -> Self {
        // Zeroed memory of the system is touched by the thread that answers, not by this one.
        let values = vec![B::Answer::default(); expected];
        Answers { values, rows: 0, crew: Crew::new(options.threads) }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The threads, for work on the keys themselves.
    pub(crate) fn crew(&mut self) -> &mut Crew {
        &mut self.crew
    }

    /// Goes on with one thread.
    pub(crate) fn dismiss_crew(&mut self) {
        self.crew = Crew::new(1);
    }

    /// Runs the batch over the next rows without the interpreter.
    pub(crate) fn extend<S: KeySource + ?Sized>(
        &mut self,
        py: Python<'_>,
        batch: &B,
        keys: &S,
    ) -> PyResult<()> {
        self.extend_rows(py, batch, keys, None)
    }

    /// The same when the keys are those of some rows only.
    fn extend_rows<S: KeySource + ?Sized>(
        &mut self,
        py: Python<'_>,
        batch: &B,
        keys: &S,
        rows: Option<&[usize]>,
    ) -> PyResult<()> {
        let (start, end) = (self.rows, self.rows + keys.len());
        let guard = batch.writers().map(crate::writers::Registered::new);
        batch.ready(py).map_err(|error| with_added(py, error, start))?;
        if self.values.len() < end {
            self.values.resize(end, B::Answer::default());
        }
        match rows {
            Some(rows) => batch.choose(&mut rows.iter().copied()),
            None => batch.choose(&mut (start..end)),
        }
        let (out, crew) = (&mut self.values[start..end], &mut self.crew);
        let result = py.detach(|| batch.run(keys, out, crew));
        drop(guard);
        self.rows = end;
        result.map_err(|(done, error)| {
            let error = match error {
                Error::Row { row, error } => {
                    let row = rows.map_or(start + row, |rows| rows[row]);
                    errors::in_row(py, errors::to_python(py, *error), row)
                }
                error => errors::to_python(py, error),
            };
            with_added(py, error, start + done)
        })
    }

    /// As `extend`, for rows of which only some have a key: the others are answered by the default.
    pub(crate) fn extend_some(
        &mut self,
        py: Python<'_>,
        batch: &B,
        keys: &[Option<KeyHash>],
    ) -> PyResult<()> {
        let start = self.rows;
        let present: Vec<KeyHash> = keys.iter().filter_map(|key| *key).collect();
        let rows: Vec<usize> =
            (start..).zip(keys).filter_map(|(row, key)| key.map(|_| row)).collect();
        self.extend_rows(py, batch, present.as_slice(), Some(&rows))?;
        self.scatter(start, &rows, keys.len());
        Ok(())
    }

    /// Moves the answers from `start` on to their rows, of `total`; the rows between get the default.
    fn scatter(&mut self, start: usize, rows: &[usize], total: usize) {
        self.rows = start + total;
        self.values.resize(self.values.len().max(self.rows), B::Answer::default());
        if rows.len() == total {
            return;
        }
        let answers = self.values[start..start + rows.len()].to_vec();
        self.values[start..start + total].fill(B::Answer::default());
        rows.iter().zip(answers).for_each(|(row, answer)| self.values[*row] = answer);
    }

    /// As `extend_some` for a batch that keeps keys: those of `rows`, counted from the next row, out of
    /// `total` rows. The others have no key.
    fn extend_kept<S: KeySource + ?Sized>(
        &mut self,
        py: Python<'_>,
        batch: &B,
        keys: &S,
        rows: &[usize],
        total: usize,
    ) -> PyResult<()> {
        let start = self.rows;
        let rows: Vec<usize> = rows.iter().map(|row| start + row).collect();
        self.extend_rows(py, batch, keys, Some(&rows))?;
        self.scatter(start, &rows, total);
        Ok(())
    }

    /// The answers themselves.
    pub(crate) fn into_values(mut self) -> Vec<B::Answer> {
        self.values.truncate(self.rows);
        self.values
    }

    /// The answers as a NumPy array that owns a copy of them.
    pub(crate) fn into_numpy(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        to_numpy(py, &self.values[..self.rows], B::DTYPE)
    }
}

/// A NumPy array of that type with these values.
pub(crate) fn to_numpy<'py, T: Copy>(
    py: Python<'py>,
    values: &[T],
    dtype: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let kwargs = PyDict::new(py);
    kwargs.set_item("dtype", dtype)?;
    let array = py.import("numpy")?.call_method("empty", (values.len(),), Some(&kwargs))?;
    let Some(view) = View::of(&array, ffi::PyBUF_WRITABLE) else {
        return Err(PyErr::fetch(py));
    };
    debug_assert_eq!(view.bytes(), size_of_val(values));
    // SAFETY: a fresh, contiguous array of values.len() items of T's size that nobody else knows.
    unsafe { view.data().cast::<T>().copy_from_nonoverlapping(values.as_ptr(), values.len()) };
    drop(view);
    Ok(array)
}
