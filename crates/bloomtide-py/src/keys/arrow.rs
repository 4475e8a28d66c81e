//! Arrow columns: text, binary, integers, dictionaries of these; chunk by chunk, read in place.

use super::array::{Line, Narrow, Signed, Unsigned};
use super::arrow_ffi::{Array, ArrowArray, ArrowSchema, export};
use super::arrow_rows::{Fixed, Offsets, Views};
use super::kept::Chosen;
use super::{Answers, Needs, Options, Verb};
use crate::errors::{self, with_added};
use crate::python::*;
use bloomtide_core::{Hasher, KeyHash, KeySource};
use std::ffi::CStr;

/// Rows whose digests are collected at once where they cannot be hashed in place.
const WINDOW: usize = 1 << 16;

/// Runs the batch if `keys` speaks Arrow.
pub(super) fn run<T: Copy + Default + Send>(
    verb: &Verb<'_, T>,
    keys: &Object<'_>,
    options: Options,
) -> PyResult<Option<Answers<T>>> {
    let py = keys.py();
    let Some((schema, mut arrays)) = export(keys)? else { return Ok(None) };
    let mut answers = Answers::new(0, options);
    // SAFETY: the schema lives until the end of this function.
    let (column, in_table) = unsafe { one_column(py, &schema.0) }?;
    // SAFETY: as above. A stream without chunks must not hide that its keys are none.
    unsafe { require_supported(py, column, verb.needs == Needs::Texts) }?;
    loop {
        let done = answers.rows();
        match arrays.next().map_err(|error| with_added(py, error, done))? {
            None => return Ok(Some(answers)),
            // SAFETY: producer and schema belong together, and the array lives during the call.
            Some(array) => unsafe {
                let chunk = Chunk::of(&array, in_table);
                run_chunk(py, verb, &chunk, column, &mut answers, options)?;
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

unsafe fn run_chunk<T: Copy + Default + Send>(
    py: Python<'_>,
    verb: &Verb<'_, T>,
    chunk: &Chunk<'_>,
    column: &ArrowSchema,
    answers: &mut Answers<T>,
    options: Options,
) -> PyResult<()> {
    // SAFETY: the producer promises that the array has the schema's layout.
    unsafe {
        let format = format_of(column);
        if column.dictionary.is_null() && format != "n" && !chunk.has_nulls() {
            return answers.extend(py, verb, &*chunk.keys(py, format)?);
        }
        let dictionary = (!column.dictionary.is_null())
            .then(|| (Chunk::dictionary(chunk.array), format_of(&*column.dictionary)));
        // Each entry of a dictionary is hashed once, unless the keys themselves are needed.
        let hashed = match &dictionary {
            Some((values, format)) if verb.needs == Needs::Digests => {
                Some(values.digests(py, format, &verb.hasher)?)
            }
            _ => None,
        };
        for window in chunk.windows() {
            let indices = match &dictionary {
                Some(_) => Some(
                    window
                        .integers(format)
                        .ok_or_else(|| unsupported(py, "a dictionary without indices"))?,
                ),
                None => None,
            };
            let (mut chosen, mut rows, mut total) = (Vec::new(), Vec::new(), window.rows);
            for row in 0..window.rows {
                let index = match (&indices, &dictionary) {
                    (Some(indices), Some((values, format))) => window
                        .valid(row)
                        .then(|| usize::try_from(indices.value(row)).ok())
                        .flatten()
                        .filter(|at| *at < values.rows && *format != "n" && values.valid(*at)),
                    _ => (format != "n" && window.valid(row)).then_some(row),
                };
                match index {
                    Some(index) => {
                        chosen.push(index);
                        rows.push(row);
                    }
                    None if options.skip_nulls => (),
                    // As one by one: the keys before it go in.
                    None => {
                        total = row;
                        break;
                    }
                }
            }
            let keys: Box<dyn KeySource> = match (&hashed, &dictionary) {
                // A column of nothing but nulls has no keys of any type.
                _ if chosen.is_empty() => Box::new(&[] as &[KeyHash]),
                (Some(hashed), _) => Box::new(hashed.as_slice()),
                (None, Some((values, format))) => values.keys(py, format)?,
                (None, None) => window.keys(py, format)?,
            };
            let keys = Chosen { source: &*keys, rows: &chosen };
            answers.extend_some(py, verb, &keys, &rows, total)?;
            if total < window.rows {
                return Err(errors::null_key(py, answers.rows(), false));
            }
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

    /// The digest of each row; that of a null, whose bytes may be anything, is never looked at.
    unsafe fn digests(
        &self,
        py: Python<'_>,
        format: &str,
        hasher: &Hasher,
    ) -> PyResult<Vec<KeyHash>> {
        if format == "n" {
            return Ok(Vec::new());
        }
        // SAFETY: the producer promises the layout of the format.
        unsafe {
            let keys = self.keys(py, format)?;
            let digest = |row| match self.valid(row) {
                true => keys.hash(hasher, row),
                false => KeyHash::default(),
            };
            Ok((0..self.rows).map(digest).collect())
        }
    }

    unsafe fn integers(&self, format: &str) -> Option<Narrow> {
        let (signed, width) = integer_format(format)?;
        // SAFETY: an integer array's second buffer holds its values.
        let base = unsafe { self.buffer(1).add(self.first * width) };
        let line = Line { base, rows: self.rows, stride: width as isize };
        Some(Narrow { line, signed, width, swapped: false })
    }

    /// The rows as keys of their type. Only valid rows may be hashed.
    unsafe fn keys<'k>(&self, py: Python<'_>, format: &str) -> PyResult<Box<dyn KeySource + 'k>>
    where
        'a: 'k,
    {
        // SAFETY: the producer promises the layout of the format.
        unsafe {
            if let Some(integers) = self.integers(format) {
                return Ok(match (integers.signed, integers.width) {
                    (true, 8) => Box::new(Signed(integers.line)),
                    (false, 8) => Box::new(Unsigned(integers.line)),
                    _ => Box::new(integers),
                });
            }
            match format {
                "u" | "z" => Ok(Box::new(Offsets::<i32>::new(self, format == "u"))),
                "U" | "Z" => Ok(Box::new(Offsets::<i64>::new(self, format == "U"))),
                "vu" | "vz" => Ok(Box::new(Views::new(self, format == "vu"))),
                _ => match format.strip_prefix("w:").and_then(|width| width.parse().ok()) {
                    Some(width) => Ok(Box::new(Fixed::new(self, width))),
                    None => Err(unsupported(py, format)),
                },
            }
        }
    }
}
