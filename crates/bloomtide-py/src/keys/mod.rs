//! Batches of keys: whatever Python offers becomes rows that the core hashes by itself.
//!
//!   list, tuple                  hashed in chunks while the interpreter is held (`sequence.rs`, `items.rs`)
//!   NumPy and other buffers      read in place (`array.rs`)
//!   Arrow PyCapsule objects      read in place (`arrow.rs`, `arrow_ffi.rs`)
//!   pages of Parquet             read in place (`paged.rs`)
//!   any other iterable           the same, key by key
//!
//! Each form of keys is a `KeySource`. A `Verb` takes any of them; its answers come back as a NumPy array.

mod array;
mod arrow;
mod arrow_ffi;
mod arrow_rows;
mod items;
mod kept;
mod paged;
mod sequence;

pub(crate) use array::is_date;
pub(crate) use sequence::each_item;

use crate::buffer::View;
use crate::errors::{self, with_added};
use crate::pages::ParquetPage;
use crate::params::{self, shown};
use crate::python::*;
use crate::words::unexpected;
use bloomtide_core::{Crew, Error, Hasher, KeySource};
use pyo3::ffi;
use pyo3::types::{
    PyByteArray, PyBytes, PyDict, PyList, PyMapping, PyMemoryView, PyString, PyTuple,
};
use std::borrow::Cow;
use std::sync::atomic::AtomicUsize;

/// An error comes with the number of rows that went well before it.
pub(crate) type Outcome = Result<(), (usize, Error)>;

/// What a verb needs to know of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    Digests,
    /// The keys themselves, beside their digests.
    Keys,
    /// The keys themselves, which must be text or bytes.
    Texts,
}

/// Answers the rows of one part of a batch, in order.
type Run<'a, T> = dyn Fn(Part<'_>, &mut [T], &mut Crew) -> Outcome + Sync + 'a;
type Ready<'a> = dyn Fn(Python<'_>) -> PyResult<()> + Sync + 'a;

/// One verb over many keys, with answers of type T.
pub(crate) struct Verb<'a, T> {
    hasher: Hasher,
    needs: Needs,
    /// Counts calls that write without holding the interpreter; None for questions.
    writers: Option<&'a AtomicUsize>,
    /// Refuses the next part; asked before each of them, with the interpreter held.
    ready: &'a Ready<'a>,
    run: &'a Run<'a, T>,
}

impl<'a, T> Verb<'a, T> {
    /// A question, or an addition that a lock protects.
    pub(crate) fn new(hasher: &Hasher, run: &'a Run<'a, T>) -> Self {
        Verb { hasher: *hasher, needs: Needs::Digests, writers: None, ready: &|_| Ok(()), run }
    }

    pub(crate) fn needs(self, needs: Needs) -> Self {
        Verb { needs, ..self }
    }

    /// Registers while it writes, see `writers.rs`.
    pub(crate) fn writers(self, writers: &'a AtomicUsize) -> Self {
        Verb { writers: Some(writers), ..self }
    }

    pub(crate) fn ready(self, ready: &'a Ready<'a>) -> Self {
        Verb { ready, ..self }
    }
}

/// Some rows of a batch: their keys, and which rows they are.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) keys: &'a dyn KeySource,
    start: usize,
    /// The rows if they do not follow each other from `start` on.
    rows: Option<&'a [usize]>,
}

impl<'a> Part<'a> {
    /// The row of the batch that a key is in.
    pub(crate) fn row(&self, at: usize) -> usize {
        self.rows.map_or(self.start + at, |rows| rows[at])
    }

    /// What belongs to these rows, out of what belongs to all rows.
    pub(crate) fn of<V: Copy>(&self, all: &'a [V]) -> Cow<'a, [V]> {
        match self.rows {
            Some(rows) => rows.iter().map(|row| all[*row]).collect(),
            None => Cow::Borrowed(&all[self.start..self.start + self.keys.len()]),
        }
    }
}

/// A type of answers that NumPy has.
pub(crate) trait Item: Copy {
    const DTYPE: &'static str;
}

macro_rules! items {
    ($($type:ty: $name:literal),*) => {
        $(impl Item for $type {
            const DTYPE: &'static str = $name;
        })*
    };
}
items!(bool: "bool", u32: "uint32", u64: "uint64", i64: "int64", f64: "float64");

/// How a batch is to be run.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    pub(crate) skip_nulls: bool,
    pub(crate) threads: usize,
}

impl Options {
    /// The keywords `nulls` and `threads`.
    pub(crate) fn of(py: Python<'_>, given: Option<&Dict<'_>>) -> PyResult<Self> {
        let mut options = Options { skip_nulls: false, threads: 1 };
        for (name, value) in given.iter().flat_map(|given| given.iter()) {
            match name.cast::<PyString>()?.to_str()? {
                "nulls" => {
                    let nulls = value.extract::<String>().unwrap_or_else(|_| shown(&value));
                    options.skip_nulls = Self::parse(py, &nulls)?.skip_nulls;
                }
                "threads" => options.threads = Self::threads(&value)?,
                name @ ("count" | "counts" | "at") => {
                    return Err(params::no_counts(py, name, &shown(&value)));
                }
                other => return Err(unexpected(other)),
            }
        }
        Ok(options)
    }

    /// How many threads, from 1 to 1024.
    pub(crate) fn threads(value: &Object<'_>) -> PyResult<usize> {
        let threads = params::small("threads", value).ok().filter(|threads| *threads <= 1024);
        threads.map(|threads| threads as usize).ok_or_else(|| {
            let (got, allowed) = (shown(value), "a whole number from 1 to 1024");
            let hint = "one per processor core is the most that helps";
            errors::parameter(value.py(), "threads", got, allowed, hint)
        })
    }

    /// `nulls` alone, for a verb that one thread does.
    pub(crate) fn parse(py: Python<'_>, nulls: &str) -> PyResult<Self> {
        let skip_nulls = nulls == "skip";
        if skip_nulls || nulls == "refuse" {
            return Ok(Options { skip_nulls, threads: 1 });
        }
        let hint = "\"skip\" answers False (or 0) for rows without a key";
        Err(errors::parameter(py, "nulls", nulls, "\"refuse\" or \"skip\"", hint))
    }
}

/// What is no batch of keys, because nothing can go through it.
pub(crate) fn no_keys(keys: &Object<'_>) -> PyErr {
    let kind = class_name(&keys.get_type());
    let hint = "give a list, an iterator, a NumPy array or an Arrow array of keys";
    errors::parameter(keys.py(), "keys", kind, "an iterable of keys", hint)
}

/// Runs the batch over `keys`, of whatever kind they are.
pub(crate) fn run<'py, T: Item + Default + Send>(
    verb: &Verb<'_, T>,
    keys: &Object<'py>,
    options: Options,
) -> Answer<'py> {
    let answers = answers(verb, keys, options)?;
    to_numpy(keys.py(), &answers.values[..answers.rows])
}

/// Asks one question about every key.
pub(crate) fn ask<'py, T: Item + Default + Send>(
    hasher: &Hasher,
    keys: &Object<'py>,
    options: Option<&Dict<'py>>,
    ask: impl Fn(&dyn KeySource, &mut [T], &mut Crew) + Sync,
) -> Answer<'py> {
    let options = Options::of(keys.py(), options)?;
    let ask = |part: Part<'_>, out: &mut [T], crew: &mut Crew| {
        ask(part.keys, out, crew);
        Ok(())
    };
    run(&Verb::new(hasher, &ask), keys, options)
}

/// The same, with the answers still to be taken.
pub(crate) fn answers<T: Copy + Default + Send>(
    verb: &Verb<'_, T>,
    keys: &Object<'_>,
    options: Options,
) -> PyResult<Answers<T>> {
    let py = keys.py();
    if let Ok(page) = keys.cast::<ParquetPage>() {
        return paged::run(py, verb, &page.get().0, options);
    }
    if let Some(answers) = arrow::run(verb, keys, options)? {
        return Ok(answers);
    }
    let sequence = keys.is_exact_instance_of::<PyList>() || keys.is_exact_instance_of::<PyTuple>();
    if sequence {
        sequence::run(verb, keys, options)
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
        sequence::run(verb, &keys.call_method0("tolist")?, options)
    } else if let Some(view) = View::of(keys, ffi::PyBUF_FORMAT | ffi::PyBUF_STRIDES) {
        array::run(verb, keys, view, options)
    } else if keys.cast::<PyMapping>().is_ok() {
        let hint = "give list(mapping) to take each key once; filters that count take it whole";
        Err(errors::parameter(py, "keys", "a mapping", "keys alone, without values", hint))
    } else {
        sequence::run_iterable(verb, keys, options)
    }
}

/// The answers of a batch, where the next row goes, and the threads that work on it.
pub(crate) struct Answers<T> {
    values: Vec<T>,
    rows: usize,
    crew: Crew,
}

impl<T: Copy + Default + Send> Answers<T> {
    /// None yet; there will be `expected` of them, or more.
    pub(crate) fn new(expected: usize, options: Options) -> Self {
        // Zeroed memory of the system is touched by the thread that answers, not by this one.
        let values = vec![T::default(); expected];
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

    /// Runs the verb over the next rows without the interpreter.
    pub(crate) fn extend(
        &mut self,
        py: Python<'_>,
        verb: &Verb<'_, T>,
        keys: &dyn KeySource,
    ) -> PyResult<()> {
        self.extend_rows(py, verb, keys, None)
    }

    /// The same when the keys are those of some rows only.
    fn extend_rows(
        &mut self,
        py: Python<'_>,
        verb: &Verb<'_, T>,
        keys: &dyn KeySource,
        rows: Option<&[usize]>,
    ) -> PyResult<()> {
        let (start, end) = (self.rows, self.rows + keys.len());
        let guard = verb.writers.map(crate::writers::Registered::new);
        (verb.ready)(py).map_err(|error| with_added(py, error, start))?;
        if self.values.len() < end {
            self.values.resize(end, T::default());
        }
        let part = Part { keys, start, rows };
        let (out, crew) = (&mut self.values[start..end], &mut self.crew);
        let result = py.detach(|| (verb.run)(part, out, crew));
        drop(guard);
        self.rows = end;
        result.map_err(|(done, error)| {
            let (error, done) = match error {
                Error::Row { row, error } => {
                    let error = errors::to_python(py, *error);
                    (errors::in_row(py, error, part.row(row)), start + done)
                }
                // Rows without a key count as done, as where a key of a wrong type ends a batch.
                error if done < keys.len() => (errors::to_python(py, error), part.row(done)),
                error => (errors::to_python(py, error), start + done),
            };
            with_added(py, error, done)
        })
    }

    /// As `extend`, for `total` rows of which only some have a key: those of `rows`, counted from the
    /// next row. The others are answered by the default.
    fn extend_some(
        &mut self,
        py: Python<'_>,
        verb: &Verb<'_, T>,
        keys: &dyn KeySource,
        rows: &[usize],
        total: usize,
    ) -> PyResult<()> {
        let start = self.rows;
        let rows: Vec<usize> = rows.iter().map(|row| start + row).collect();
        self.extend_rows(py, verb, keys, Some(&rows))?;
        self.rows = start + total;
        self.values.resize(self.values.len().max(self.rows), T::default());
        if rows.len() < total {
            let answers = self.values[start..start + rows.len()].to_vec();
            self.values[start..start + total].fill(T::default());
            rows.iter().zip(answers).for_each(|(row, answer)| self.values[*row] = answer);
        }
        Ok(())
    }

    /// The answers themselves.
    pub(crate) fn into_values(mut self) -> Vec<T> {
        self.values.truncate(self.rows);
        self.values
    }
}

/// A NumPy array of these values.
pub(crate) fn to_numpy<'py, T: Item>(py: Python<'py>, values: &[T]) -> Answer<'py> {
    let kwargs = PyDict::new(py);
    kwargs.set_item("dtype", T::DTYPE)?;
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
