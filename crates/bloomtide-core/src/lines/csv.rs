//! Comma-separated values as RFC 4180 has them: a field in quotes may hold commas, line ends and,
//! doubled, quotes. A quote elsewhere in a field is a character like any other.

use memchr::{memchr, memchr2};

/// Where records end. It remembers where in a record the bytes so far have ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quotes(State);

#[derive(Clone, Copy, Debug, Default)]
enum State {
    /// A field begins.
    #[default]
    Start,
    /// In a field, or behind its closing quote.
    Plain,
    /// Between quotes.
    Quoted,
    /// Behind a quote between quotes: it closes the field unless another one follows.
    Quote,
}

impl Quotes {
    /// Bytes up to the record's end, its line end included; None if it goes on behind them.
    pub(super) fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            match (self.0, bytes.get(at)?) {
                (State::Quoted, _) => {
                    at += memchr(b'"', &bytes[at..])? + 1;
                    self.0 = State::Quote;
                }
                (State::Start | State::Quote, b'"') => {
                    at += 1;
                    self.0 = State::Quoted;
                }
                _ => {
                    self.0 = State::Plain;
                    at += memchr2(b',', b'\n', &bytes[at..])? + 1;
                    self.0 = State::Start;
                    if bytes[at - 1] == b'\n' {
                        return Some(at);
                    }
                }
            }
        }
    }
}

/// A field of a record as it is written, with its quotes; fields are numbered from 0.
pub(super) fn field(record: &[u8], number: usize) -> Option<&[u8]> {
    fields(record).nth(number)
}

/// All fields as they are written.
pub(super) fn fields(record: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(record);
    std::iter::from_fn(move || {
        let text = rest?;
        let closed = if text.first() == Some(&b'"') { behind_quotes(text) } else { 0 };
        let end = memchr(b',', &text[closed..]).map(|at| closed + at);
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}

/// Where the quoted part ends of a field that begins with a quote.
fn behind_quotes(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(quote) = memchr(b'"', &text[at..]) {
        at += quote + 1;
        if text.get(at) != Some(&b'"') {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// What a field says, without its quotes.
pub(super) fn text<'a>(field: &'a [u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
    if field.first() != Some(&b'"') {
        return field;
    }
    let end = behind_quotes(field);
    let inner = field[1..end].strip_suffix(b"\"").unwrap_or(&field[1..end]);
    if end == field.len() && memchr(b'"', inner).is_none() {
        return inner;
    }
    buffer.clear();
    let mut rest = inner;
    while let Some(quote) = memchr(b'"', rest) {
        buffer.extend_from_slice(&rest[..=quote]);
        rest = &rest[(quote + 2).min(rest.len())..];
    }
    buffer.extend_from_slice(rest);
    buffer.extend_from_slice(&field[end..]);
    buffer
}
