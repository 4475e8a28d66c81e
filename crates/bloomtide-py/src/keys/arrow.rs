//! Arrow columns: text, binary, integers, dictionaries of these; chunk by chunk, read in place.

use super::array::{Line, Narrow, Signed, Unsigned};
use super::arrow_ffi::{Array, ArrowArray, ArrowSchema, export};
use super::arrow_rows::{Fixed, Offsets, Views};
use super::kept::Chosen;
use super::{Answers, Batch, Options};
use crate::errors::{self, with_added};
use bloomtide_core::{Hasher, KeyHash, KeySource};
use pyo3::prelude::*;
use std::ffi::CStr;

/// Rows whose digests are collected at once where they cannot be hashed in place.
const WINDOW: usize = 1 << 16;

/// Runs the batch if `keys` speaks Arrow.
pub(super) fn run<B: Batch>(
    batch: &B,
    keys: &Bound<'_, PyAny>,
    options: Options,
) -> PyResult<Option<Answers<B>>> {
    let py = keys.py();
    let Some((schema, mut arrays)) = export(keys)? else { return Ok(None) };
    let mut answers = Answers::new(0, options);
    // SAFETY: the schema lives until the end of this function.
    let (column, in_table) = unsafe { one_column(py, &schema.0) }?;
    // SAFETY: as above. A stream without chunks must not hide that its keys are none.
    unsafe { require_supported(py, column, B::TEXTS) }?;
    loop {
        let done = answers.rows();
        match arrays.next().map_err(|error| with_added(py, error, done))? {
            None => return Ok(Some(answers)),
            // SAFETY: producer and schema belong together, and the array lives during the call.
            Some(array) => unsafe {
                let chunk = Chunk::of(&array, in_table);
                run_chunk(py, batch, &chunk, column, &mut answers, options)?;
            },
        }
    }
}

/// The column of a one-column table, or the schema itself; and whether it is a table's.
unsafe fn one_column<'a>(
    py: Python<'_>,
    schema: &'a ArrowSchema,
) -> PyResult<(&'a ArrowSchema, bool)> {
    // SAFETY: a live schema has a format, and n_children children.
    unsafe {
        if format_of(schema) != "+s" {
            return Ok((schema, false));
        }
        if schema.n_children != 1 {
            let got = format!("a table of {} columns", schema.n_children);
            let hint = "choose the column that holds the keys, for example table[\"url\"]";
            return Err(errors::parameter(py, "keys", got, "one column", hint));
        }
        Ok((&**schema.children, true))
    }
}

unsafe fn format_of(schema: &ArrowSchema) -> &str {
    // SAFETY: a live schema's format is a C string.
    unsafe { CStr::from_ptr(schema.format) }.to_str().unwrap_or("?")
}

unsafe fn run_chunk<B: Batch>(
    py: Python<'_>,
    batch: &B,
    chunk: &Chunk<'_>,
    column: &ArrowSchema,
    answers: &mut Answers<B>,
    options: Options,
) -> PyResult<()> {
    // SAFETY: the producer promises that the array has the schema's layout.
    unsafe {
        let format = format_of(column);
        if B::KEEPS && (!column.dictionary.is_null() || format == "n" || chunk.has_nulls()) {
            return run_kept(py, batch, chunk, column, answers, options);
        }
        if !column.dictionary.is_null() {
            return run_dictionary(py, batch, chunk, column, answers, options);
        }
        if format != "n" && !chunk.has_nulls() {
            return chunk.with_keys(py, format, Extend { py, batch, answers })?;
        }
        for window in chunk.windows() {
            let keys = window.digests_or_none(py, format, &batch.hasher())?;
            run_with_nulls(py, batch, &keys, answers, options)?;
        }
        Ok(())
    }
}

/// What to do with a chunk's rows, whatever type they have.
trait WithKeys {
    type Output;
    fn call<S: KeySource>(self, keys: &S) -> Self::Output;
}

struct Extend<'a, 'py, B: Batch> {
    py: Python<'py>,
    batch: &'a B,
    answers: &'a mut Answers<B>,
}

impl<B: Batch> WithKeys for Extend<'_, '_, B> {
    type Output = PyResult<()>;
    fn call<S: KeySource>(self, keys: &S) -> PyResult<()> {
        self.answers.extend(self.py, self.batch, keys)
    }
}

/// The digests of a chunk, None for its nulls, whose bytes may be anything.
struct Digests<'a> {
    hasher: &'a Hasher,
    chunk: &'a Chunk<'a>,
}

impl WithKeys for Digests<'_> {
    type Output = Vec<Option<KeyHash>>;
    fn call<S: KeySource>(self, keys: &S) -> Self::Output {
        // SAFETY: the chunk has these rows.
        let valid = |row| unsafe { self.chunk.valid(row) };
        (0..keys.len()).map(|row| valid(row).then(|| keys.hash(self.hasher, row))).collect()
    }
}

/// The chosen rows of a chunk, for a batch that keeps keys; `rows` of `total` have one.
struct ExtendKept<'a, 'py, B: Batch> {
    extend: Extend<'a, 'py, B>,
    chosen: &'a [usize],
    rows: &'a [usize],
    total: usize,
}

impl<B: Batch> WithKeys for ExtendKept<'_, '_, B> {
    type Output = PyResult<()>;
    fn call<S: KeySource>(self, keys: &S) -> PyResult<()> {
        let Extend { py, batch, answers, .. } = self.extend;
        let keys = Chosen { source: keys, rows: self.chosen };
        answers.extend_kept(py, batch, &keys, self.rows, self.total)
    }
}

/// Rows that are null or point into a dictionary, for a batch that keeps keys: each is one of others.
unsafe fn run_kept<B: Batch>(
    py: Python<'_>,
    batch: &B,
    chunk: &Chunk<'_>,
    column: &ArrowSchema,
    answers: &mut Answers<B>,
    options: Options,
) -> PyResult<()> {
    // SAFETY: the producer promises that the array has the schema's layout.
    unsafe {
        let dictionary = (!column.dictionary.is_null())
            .then(|| (Chunk::dictionary(chunk.array), format_of(&*column.dictionary)));
        for window in chunk.windows() {
            let indices = window.integers(format_of(column)).filter(|_| dictionary.is_some());
            let (mut chosen, mut rows, mut total) = (Vec::new(), Vec::new(), window.rows);
            for row in 0..window.rows {
                let index = indices.as_ref().map_or(Some(row), |indices| {
                    window.valid(row).then(|| usize::try_from(indices.value(row)).ok())?
                });
                let valid = |index: &usize| match &dictionary {
                    Some((values, format)) => {
                        *format != "n" && *index < values.rows && values.valid(*index)
                    }
                    None => format_of(column) != "n" && window.valid(row),
                };
                match index.filter(valid) {
                    Some(index) => {
                        chosen.push(index);
                        rows.push(row);
                    }
                    None if options.skip_nulls => (),
                    None => {
                        total = row;
                        break;
                    }
                }
            }
            let (source, format) = match &dictionary {
                Some((values, format)) => (values, *format),
                None => (&window, format_of(column)),
            };
            if chosen.is_empty() {
                // A column of nothing but nulls has no keys of any type.
                answers.extend_kept(py, batch, &[] as &[KeyHash], &[], total)?;
            } else {
                let extend = Extend { py, batch, answers: &mut *answers };
                let kept = ExtendKept { extend, chosen: &chosen, rows: &rows, total };
                source.with_keys(py, format, kept)??;
            }
            if total < window.rows {
                return Err(errors::null_key(py, answers.rows()));
            }
        }
        Ok(())
    }
}

fn run_with_nulls<B: Batch>(
    py: Python<'_>,
    batch: &B,
    keys: &[Option<KeyHash>],
    answers: &mut Answers<B>,
    options: Options,
) -> PyResult<()> {
    let null = keys.iter().position(Option::is_none);
    if let (Some(null), false) = (null, options.skip_nulls) {
        // As one by one: the keys before it go in.
        answers.extend_some(py, batch, &keys[..null])?;
        return Err(errors::null_key(py, answers.rows()));
    }
    answers.extend_some(py, batch, keys)
}

/// Hashes each entry of the dictionary once, then looks digests up by index.
unsafe fn run_dictionary<B: Batch>(
    py: Python<'_>,
    batch: &B,
    chunk: &Chunk<'_>,
    column: &ArrowSchema,
    answers: &mut Answers<B>,
    options: Options,
) -> PyResult<()> {
    // SAFETY: an array of a dictionary type has a dictionary of the schema's type.
    unsafe {
        let values = Chunk::dictionary(chunk.array);
        let entries =
            values.digests_or_none(py, format_of(&*column.dictionary), &batch.hasher())?;
        for window in chunk.windows() {
            let indices = window
                .integers(format_of(column))
                .ok_or_else(|| unsupported(py, "a dictionary without indices"))?;
            let keys: Vec<Option<KeyHash>> = (0..window.rows)
                .map(|row| {
                    let entry = window.valid(row).then(|| indices.value(row))?;
                    entries.get(usize::try_from(entry).ok()?).copied().flatten()
                })
                .collect();
            run_with_nulls(py, batch, &keys, answers, options)?;
        }
        Ok(())
    }
}

fn unsupported(py: Python<'_>, format: &str) -> PyErr {
    let got = format!("an Arrow column of format {format:?}");
    let hint = "cast it to string, binary or an integer type";
    errors::parameter(py, "keys", got, "text, binary, integers or a dictionary of these", hint)
}

unsafe fn require_supported(
    py: Python<'_>,
    column: &ArrowSchema,
    only_texts: bool,
) -> PyResult<()> {
    // SAFETY: a live schema has a format, and maybe a dictionary.
    unsafe {
        if !column.dictionary.is_null() {
            return require_supported(py, &*column.dictionary, only_texts);
        }
        let format = format_of(column);
        let known = ["n", "u", "z", "U", "Z", "vu", "vz"].contains(&format);
        if integer_format(format).is_some() && only_texts {
            return Err(errors::text_column(py, "an Arrow column of integers"));
        }
        if known || format.starts_with("w:") || integer_format(format).is_some() {
            return Ok(());
        }
        Err(unsupported(py, format))
    }
}

/// Signedness and width of an integer type.
fn integer_format(format: &str) -> Option<(bool, usize)> {
    let width = match format.to_ascii_lowercase().as_str() {
        "c" => 1,
        "s" => 2,
        "i" => 4,
        "l" => 8,
        _ => return None,
    };
    Some((format.bytes().all(|letter| letter.is_ascii_lowercase()), width))
}

/// Rows of one array.
pub(super) struct Chunk<'a> {
    pub(super) array: &'a ArrowArray,
    /// First row, counted from the start of the buffers.
    pub(super) first: usize,
    pub(super) rows: usize,
    /// The table around a column, with its own first row: a row that is null there is null.
    table: Option<(&'a ArrowArray, usize)>,
}

/// Whether a row has a value, by the array's validity bitmap.
unsafe fn valid_in(array: &ArrowArray, row: usize) -> bool {
    if array.null_count == 0 || array.n_buffers == 0 {
        return true;
    }
    // SAFETY: every type but `null` has its validity bitmap first, with a bit for every row.
    unsafe {
        let bitmap: *const u8 = (*array.buffers).cast();
        bitmap.is_null() || *bitmap.add(row / 8) >> (row % 8) & 1 == 1
    }
}

impl<'a> Chunk<'a> {
    /// All rows of an array. A table's column is its child, and the table's own offset and length
    /// count for it.
    unsafe fn of(array: &'a Array, in_table: bool) -> Self {
        let array = &*array.0;
        let (first, rows) = (array.offset as usize, array.length as usize);
        if !in_table {
            return Chunk { array, first, rows, table: None };
        }
        // SAFETY: a table of one column has one child.
        let child = unsafe { &**array.children };
        let table = Some((array, first));
        Chunk { array: child, first: first + child.offset as usize, rows, table }
    }

    /// The entries of an array's dictionary.
    unsafe fn dictionary(array: &'a ArrowArray) -> Self {
        // SAFETY: the caller has an array of a dictionary type.
        let array = unsafe { &*array.dictionary };
        let (first, rows) = (array.offset as usize, array.length as usize);
        Chunk { array, first, rows, table: None }
    }

    /// The rows in parts of at most `WINDOW`.
    fn windows(&self) -> impl Iterator<Item = Chunk<'a>> + use<'a> {
        let Chunk { array, first, rows, table } = *self;
        (0..rows).step_by(WINDOW).map(move |start| Chunk {
            array,
            first: first + start,
            rows: WINDOW.min(rows - start),
            table: table.map(|(table, first)| (table, first + start)),
        })
    }

    /// The start of buffer `i`; a dangling pointer for an absent one, which has no rows to read.
    pub(super) unsafe fn buffer(&self, i: usize) -> *const u8 {
        // SAFETY: the layout of the type says that buffer i exists.
        let buffer: *const u8 = unsafe { *self.array.buffers.add(i) }.cast();
        if buffer.is_null() { std::ptr::NonNull::dangling().as_ptr() } else { buffer }
    }

    unsafe fn valid(&self, row: usize) -> bool {
        // SAFETY: the arrays have these rows.
        unsafe {
            valid_in(self.array, self.first + row)
                && self.table.is_none_or(|(table, first)| valid_in(table, first + row))
        }
    }

    unsafe fn has_nulls(&self) -> bool {
        // SAFETY: see `valid`.
        unsafe { !(0..self.rows).all(|row| self.valid(row)) }
    }

    /// Each row's digest, None for nulls.
    unsafe fn digests_or_none(
        &self,
        py: Python<'_>,
        format: &str,
        hasher: &Hasher,
    ) -> PyResult<Vec<Option<KeyHash>>> {
        if format == "n" {
            return Ok(vec![None; self.rows]);
        }
        // SAFETY: the producer promises the layout of the format.
        unsafe { self.with_keys(py, format, Digests { hasher, chunk: self }) }
    }

    unsafe fn integers(&self, format: &str) -> Option<Narrow> {
        let (signed, width) = integer_format(format)?;
        // SAFETY: an integer array's second buffer holds its values.
        let base = unsafe { self.buffer(1).add(self.first * width) };
        let line = Line { base, rows: self.rows, stride: width as isize };
        Some(Narrow { line, signed, width, swapped: false })
    }

    /// Calls `then` with the rows as keys of their type. Only valid rows may be hashed.
    unsafe fn with_keys<W: WithKeys>(
        &self,
        py: Python<'_>,
        format: &str,
        then: W,
    ) -> PyResult<W::Output> {
        // SAFETY: the producer promises the layout of the format.
        unsafe {
            if let Some(integers) = self.integers(format) {
                return Ok(match (integers.signed, integers.width) {
                    (true, 8) => then.call(&Signed(integers.line)),
                    (false, 8) => then.call(&Unsigned(integers.line)),
                    _ => then.call(&integers),
                });
            }
            match format {
                "u" | "z" => Ok(then.call(&Offsets::<i32>::new(self, format == "u"))),
                "U" | "Z" => Ok(then.call(&Offsets::<i64>::new(self, format == "U"))),
                "vu" | "vz" => Ok(then.call(&Views::new(self, format == "vu"))),
                _ => match format.strip_prefix("w:").and_then(|width| width.parse().ok()) {
                    Some(width) => Ok(then.call(&Fixed::new(self, width))),
                    None => Err(unsupported(py, format)),
                },
            }
        }
    }
}
