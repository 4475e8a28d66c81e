//! NumPy arrays and whatever else offers items through the buffer protocol.

use super::{Answers, Needs, Options, Verb, sequence};
use crate::buffer::View;
use crate::errors;
use crate::python::*;
use bloomtide_core::{Key, KeySource};

/// Runs the batch over a view of integers or fixed-width bytes; other items go one by one.
pub(super) fn run<T: Copy + Default + Send>(
    verb: &Verb<'_, T>,
    keys: &Object<'_>,
    view: View,
    options: Options,
) -> PyResult<Answers<T>> {
    let py = keys.py();
    if view.dimensions() != 1 {
        let got = format!("{} dimensions", view.dimensions());
        return Err(errors::parameter(py, "keys", got, "one-dimensional", "use keys.ravel()"));
    }
    // NumPy hands dates out as plain bytes.
    if is_date(keys) {
        return Err(unsupported(py, "dates or durations"));
    }
    let (order, code) = split_format(view.format());
    let (rows, stride) = view.line();
    let line = Line { base: view.data(), rows, stride };
    let mut answers = Answers::new(rows, options);
    let width = view.item_bytes();
    if let Some(signed) = integer_code(code) {
        if verb.needs == Needs::Texts {
            return Err(errors::text_column(py, "an array of integers"));
        }
        let swapped = order == Some('>') && width > 1;
        match (signed, width, swapped) {
            (true, 8, false) => answers.extend(py, verb, &Signed(line))?,
            (false, 8, false) => answers.extend(py, verb, &Unsigned(line))?,
            _ => answers.extend(py, verb, &Narrow { line, signed, width, swapped })?,
        }
        return Ok(answers);
    }
    if code == "s" || code.strip_suffix('s').is_some_and(|n| n.parse::<usize>().is_ok()) {
        answers.extend(py, verb, &Padded { line, width })?;
        return Ok(answers);
    }
    if code == "O" || code.ends_with('w') {
        // Python objects and NumPy's UTF-32 text: as Python sees them.
        drop(view);
        let list = keys.call_method0("tolist")?;
        return sequence::run(verb, &list, options);
    }
    Err(unsupported(py, &format!("items of format {:?}", view.format())))
}

fn unsupported(py: Python<'_>, got: &str) -> PyErr {
    let hint = "convert it: keys.astype(\"int64\"), or keys.astype(str).tolist()";
    errors::parameter(py, "keys", got, "integers, fixed-width bytes or objects", hint)
}

/// Whether NumPy calls it a date or a duration.
pub(crate) fn is_date(object: &Object<'_>) -> bool {
    let kind = object.getattr("dtype").and_then(|dtype| dtype.getattr("kind"));
    kind.and_then(|kind| kind.extract::<char>()).is_ok_and(|kind| matches!(kind, 'm' | 'M'))
}

/// Whether it is one of NumPy's masked arrays.
pub(super) fn is_masked(keys: &Object<'_>) -> bool {
    keys.get_type().name().is_ok_and(|name| name == "MaskedArray")
}

fn split_format(format: &str) -> (Option<char>, &str) {
    match format.chars().next() {
        Some(order @ ('<' | '>' | '=' | '@' | '!' | '|')) => {
            (Some(if order == '!' { '>' } else { order }), &format[1..])
        }
        _ => (None, format),
    }
}

/// Whether a format code is a signed integer; None if it is no integer.
fn integer_code(code: &str) -> Option<bool> {
    match code {
        "b" | "h" | "i" | "l" | "q" | "n" => Some(true),
        "B" | "H" | "I" | "L" | "Q" | "N" => Some(false),
        _ => None,
    }
}

/// Items at equal distances in memory that a view keeps in place.
#[derive(Clone, Copy)]
pub(super) struct Line {
    pub(super) base: *const u8,
    pub(super) rows: usize,
    pub(super) stride: isize,
}

// SAFETY: only read, and kept in place by the view or the Arrow array it came from.
unsafe impl Sync for Line {}
// SAFETY: as above.
unsafe impl Send for Line {}

impl Line {
    #[inline(always)]
    fn read<const N: usize>(&self, row: usize) -> [u8; N] {
        debug_assert!(row < self.rows);
        // SAFETY: row is inside; items may be unaligned.
        unsafe { self.base.offset(row as isize * self.stride).cast::<[u8; N]>().read_unaligned() }
    }
}

/// Native 64-bit signed integers.
pub(super) struct Signed(pub(super) Line);
impl KeySource for Signed {
    fn len(&self) -> usize {
        self.0.rows
    }
    #[inline(always)]
    fn key(&self, row: usize) -> Option<Key<'_>> {
        Some(Key::from(i64::from_ne_bytes(self.0.read(row))))
    }
}

/// Native 64-bit unsigned integers.
pub(super) struct Unsigned(pub(super) Line);
impl KeySource for Unsigned {
    fn len(&self) -> usize {
        self.0.rows
    }
    #[inline(always)]
    fn key(&self, row: usize) -> Option<Key<'_>> {
        Some(Key::Unsigned(u64::from_ne_bytes(self.0.read(row))))
    }
}

/// Integers of any width and byte order.
pub(super) struct Narrow {
    pub(super) line: Line,
    pub(super) signed: bool,
    pub(super) width: usize,
    pub(super) swapped: bool,
}

impl Narrow {
    /// The value as Python would see it.
    #[inline(always)]
    pub(super) fn value(&self, row: usize) -> i128 {
        let mut bytes = [0; 8];
        match self.width {
            1 => bytes[..1].copy_from_slice(&self.line.read::<1>(row)),
            2 => bytes[..2].copy_from_slice(&self.line.read::<2>(row)),
            4 => bytes[..4].copy_from_slice(&self.line.read::<4>(row)),
            _ => bytes = self.line.read::<8>(row),
        }
        if self.swapped {
            bytes[..self.width].reverse();
        }
        let unsigned = u64::from_le_bytes(bytes);
        if self.signed {
            let spare = 64 - 8 * self.width as u32;
            i128::from(((unsigned << spare) as i64) >> spare)
        } else {
            i128::from(unsigned)
        }
    }
}

impl KeySource for Narrow {
    fn len(&self) -> usize {
        self.line.rows
    }
    #[inline(always)]
    fn key(&self, row: usize) -> Option<Key<'_>> {
        let value = self.value(row);
        Some(if value < 0 { Key::Negative(value as i64) } else { Key::Unsigned(value as u64) })
    }
}

/// Fixed-width bytes, whose trailing zeros are padding, as in NumPy.
struct Padded {
    line: Line,
    width: usize,
}

impl Padded {
    #[inline(always)]
    fn bytes(&self, row: usize) -> &[u8] {
        // SAFETY: row is inside, and an item has `width` bytes.
        let item = unsafe {
            let start = self.line.base.offset(row as isize * self.line.stride);
            std::slice::from_raw_parts(start, self.width)
        };
        let end = item.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        &item[..end]
    }
}

impl KeySource for Padded {
    fn len(&self) -> usize {
        self.line.rows
    }
    #[inline(always)]
    fn key(&self, row: usize) -> Option<Key<'_>> {
        Some(Key::Bytes(self.bytes(row)))
    }
}
