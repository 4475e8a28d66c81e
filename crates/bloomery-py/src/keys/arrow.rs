//! Arrow columns: text, binary, integers, dictionaries of these; chunk by chunk, read in place.

use super::array::{Line, Narrow, Signed, Unsigned};
use super::arrow_ffi::{Array, ArrowArray, ArrowSchema, export};
use super::{Answers, Batch, Options};
use crate::errors::{self, with_added};
use bloomery_core::{Hasher, KeyHash, KeySource};
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
    unsafe { require_supported(py, column) }?;
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
        let values = &*chunk.array.dictionary;
        let values = Chunk {
            array: values,
            first: values.offset as usize,
            rows: values.length as usize,
            table: None,
        };
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

unsafe fn require_supported(py: Python<'_>, column: &ArrowSchema) -> PyResult<()> {
    // SAFETY: a live schema has a format, and maybe a dictionary.
    unsafe {
        if !column.dictionary.is_null() {
            return require_supported(py, &*column.dictionary);
        }
        let format = format_of(column);
        let known = ["n", "u", "z", "U", "Z", "vu", "vz"].contains(&format);
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
struct Chunk<'a> {
    array: &'a ArrowArray,
    /// First row, counted from the start of the buffers.
    first: usize,
    rows: usize,
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
    unsafe fn buffer(&self, i: usize) -> *const u8 {
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
                "u" | "z" => Ok(then.call(&Offsets::<i32>::new(self))),
                "U" | "Z" => Ok(then.call(&Offsets::<i64>::new(self))),
                "vu" | "vz" => Ok(then.call(&Views::new(self))),
                _ => match format.strip_prefix("w:").and_then(|width| width.parse().ok()) {
                    Some(width) => Ok(then.call(&Fixed::new(self, width))),
                    None => Err(unsupported(py, format)),
                },
            }
        }
    }
}

/// Text or binary with offsets of 32 or 64 bits.
struct Offsets<T> {
    offsets: *const T,
    data: *const u8,
    rows: usize,
}

// SAFETY: only read, while the array keeps its buffers.
unsafe impl<T> Sync for Offsets<T> {}

impl<T: Copy + TryInto<usize>> Offsets<T> {
    unsafe fn new(chunk: &Chunk<'_>) -> Self {
        // SAFETY: validity, offsets, data, by the specification.
        unsafe {
            let offsets = chunk.buffer(1).cast::<T>().add(chunk.first);
            Offsets { offsets, data: chunk.buffer(2), rows: chunk.rows }
        }
    }
}

impl<T: Copy + TryInto<usize>> KeySource for Offsets<T> {
    fn len(&self) -> usize {
        self.rows
    }

    #[inline(always)]
    fn hash(&self, hasher: &Hasher, row: usize) -> KeyHash {
        // SAFETY: there are rows + 1 offsets, which do not fall and lie inside the data.
        unsafe {
            let start = self.offsets.add(row).read_unaligned().try_into().unwrap_or(0);
            let end = self.offsets.add(row + 1).read_unaligned().try_into().unwrap_or(0);
            let bytes = std::slice::from_raw_parts(self.data.add(start), end.saturating_sub(start));
            hasher.bytes(bytes)
        }
    }
}

/// Text or binary views: short values inline, long ones in one of several buffers.
struct Views {
    views: *const u8,
    buffers: *const *const u8,
    rows: usize,
}

// SAFETY: only read, while the array keeps its buffers.
unsafe impl Sync for Views {}

impl Views {
    unsafe fn new(chunk: &Chunk<'_>) -> Self {
        // SAFETY: validity, views, then the data buffers, by the specification.
        unsafe {
            let buffers = chunk.array.buffers.add(2).cast::<*const u8>().cast_const();
            Views { views: chunk.buffer(1).add(chunk.first * 16), buffers, rows: chunk.rows }
        }
    }
}

impl KeySource for Views {
    fn len(&self) -> usize {
        self.rows
    }

    #[inline(always)]
    fn hash(&self, hasher: &Hasher, row: usize) -> KeyHash {
        // SAFETY: a view is length, then 12 bytes, or prefix, buffer and offset.
        unsafe {
            let view = self.views.add(row * 16);
            let field = |i: usize| view.add(4 * i).cast::<u32>().read_unaligned() as usize;
            let len = field(0);
            let data =
                if len <= 12 { view.add(4) } else { (*self.buffers.add(field(2))).add(field(3)) };
            hasher.bytes(std::slice::from_raw_parts(data, len))
        }
    }
}

/// Binary of one width.
struct Fixed {
    data: *const u8,
    width: usize,
    rows: usize,
}

// SAFETY: only read, while the array keeps its buffers.
unsafe impl Sync for Fixed {}

impl Fixed {
    unsafe fn new(chunk: &Chunk<'_>, width: usize) -> Self {
        // SAFETY: validity, then data, by the specification.
        unsafe { Fixed { data: chunk.buffer(1).add(chunk.first * width), width, rows: chunk.rows } }
    }
}

impl KeySource for Fixed {
    fn len(&self) -> usize {
        self.rows
    }

    #[inline(always)]
    fn hash(&self, hasher: &Hasher, row: usize) -> KeyHash {
        // SAFETY: row is inside, and a value has `width` bytes.
        hasher.bytes(unsafe {
            std::slice::from_raw_parts(self.data.add(row * self.width), self.width)
        })
    }
}
