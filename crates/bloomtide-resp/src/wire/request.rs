//! Requests: arrays of byte strings, or a line of words. Found in the buffer where they lie, never copied.
//!
//! # Invariants
//! I1  What is answered to some bytes does not depend on how they were cut: each refusal is decided by the
//!     first byte that shows it, and by nothing that comes later.
//! I2  A length that is only claimed allocates nothing. Work on a request is done once, however many pieces
//!     it comes in.

use super::number;
use crate::failure::Failure;

/// Longest line of words.
const INLINE: usize = 64 << 10;
/// Spans that are kept for the next request; more are given back.
const KEPT: usize = 4096;

/// What a client may send.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Byte strings in one request.
    pub elements: i64,
    /// Bytes of one byte string.
    pub bulk: i64,
    /// Bytes of one request.
    pub total: usize,
    /// Whether the client has shown who it is: the refusals have other words before.
    pub known: bool,
}

// Why a client is sent away.
const ELEMENTS: Failure = Failure::new("ERR Protocol error: invalid multibulk length");
const UNKNOWN_ELEMENTS: Failure =
    Failure::new("ERR Protocol error: unauthenticated multibulk length");
const BULK: Failure = Failure::new("ERR Protocol error: invalid bulk length");
const UNKNOWN_BULK: Failure = Failure::new("ERR Protocol error: unauthenticated bulk length");
const END: Failure = Failure::new("ERR Protocol error: a bulk string must end with a line break");
const LINE: Failure = Failure::new("ERR Protocol error: too big inline request");
const QUOTES: Failure = Failure::new("ERR Protocol error: unbalanced quotes in request");
const TOTAL: Failure = Failure::new("ERR Protocol error: too big request");

/// Where an element starts and ends.
pub type Span = (usize, usize);

/// The elements of a request, where they lie.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Args<'a> {
    /// The elements that `spans` (start and end) cut from `bytes`.
    pub fn new(bytes: &'a [u8], spans: &'a [Span]) -> Self {
        Args { bytes, spans }
    }

    /// Number of elements.
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "a request has a name at least")]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// The element at that place, if there is one.
    #[inline]
    pub fn get(&self, place: usize) -> Option<&'a [u8]> {
        let (start, end) = *self.spans.get(place)?;
        self.bytes.get(start..end)
    }

    /// The element at a place that the command's arity promises.
    #[inline]
    pub fn at(&self, place: usize) -> &'a [u8] {
        self.get(place).unwrap_or_default()
    }

    /// The elements from that place on.
    #[inline]
    pub fn from(&self, place: usize) -> Args<'a> {
        Args { bytes: self.bytes, spans: self.spans.get(place..).unwrap_or_default() }
    }

    /// All elements in order.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let bytes = self.bytes;
        self.spans.iter().map(move |(start, end)| bytes.get(*start..*end).unwrap_or_default())
    }

    /// A copy: the bytes of all elements, and where each of them is.
    pub fn copied(&self) -> (Vec<u8>, Vec<Span>) {
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        for arg in self.iter() {
            spans.push((bytes.len(), bytes.len() + arg.len()));
            bytes.extend_from_slice(arg);
        }
        (bytes, spans)
    }

    /// Whether the element is that word, in whatever case.
    pub fn is(&self, place: usize, word: &str) -> bool {
        self.get(place).is_some_and(|got| got.eq_ignore_ascii_case(word.as_bytes()))
    }
}

/// Finds requests, one after the other.
#[derive(Debug, Default)]
pub struct Parser {
    spans: Vec<Span>,
    /// Where to go on.
    at: usize,
    /// Elements of the array that are still to come; None before its head was read.
    left: Option<usize>,
    /// The words of a line, without their quotes; the spans are of this if it is not None.
    words: Option<Vec<u8>>,
}

impl Parser {
    /// Goes on with a request that begins at the first of `bytes`; they are those of the last call, and more. The
    /// bytes it takes, if it is whole; it may be empty. An error if it is none.
    #[inline]
    pub fn step(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, Failure> {
        match bytes.first() {
            None => Ok(None),
            Some(b'*') => self.array(bytes, limits),
            Some(_) => self.line(bytes),
        }
    }

    #[inline]
    fn array(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, Failure> {
        let mut left = match self.left {
            Some(left) => left,
            None => {
                let Some((count, end)) = length(bytes, 1).ok_or(ELEMENTS)? else {
                    return Ok(None);
                };
                if count > limits.elements {
                    return Err(if limits.known { ELEMENTS } else { UNKNOWN_ELEMENTS });
                }
                self.at = end;
                count.max(0) as usize
            }
        };
        while left > 0 {
            let Some(mark) = bytes.get(self.at) else { break };
            if *mark != b'$' {
                return Err(no_bulk(*mark));
            }
            let Some((len, start)) = length(bytes, self.at + 1).ok_or(BULK)? else { break };
            if len < 0 {
                return Err(BULK);
            }
            if len > limits.bulk {
                return Err(if limits.known { BULK } else { UNKNOWN_BULK });
            }
            let end = start + len as usize;
            if end > limits.total {
                return Err(TOTAL);
            }
            match bytes.get(end..end + 2) {
                Some(b"\r\n") => {}
                Some(_) => return Err(END),
                // The first of the two may already be wrong.
                None if bytes.get(end).is_some_and(|byte| *byte != b'\r') => return Err(END),
                None => break,
            }
            self.spans.push((start, end));
            self.at = end + 2;
            left -= 1;
        }
        self.left = Some(left);
        Ok((left == 0).then_some(self.at))
    }

    /// A line of words, for people at a terminal.
    #[cold]
    fn line(&mut self, bytes: &[u8]) -> Result<Option<usize>, Failure> {
        let window = &bytes[..bytes.len().min(INLINE)];
        let Some(end) = memchr::memchr(b'\n', window) else {
            return if bytes.len() >= INLINE { Err(LINE) } else { Ok(None) };
        };
        let line = &window[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut words = self.words.take().unwrap_or_default();
        words.clear();
        split(line, &mut words, &mut self.spans).ok_or(QUOTES)?;
        self.words = Some(words);
        Ok(Some(end + 1))
    }

    /// The elements of a whole request, which begins at the first of `bytes`.
    #[inline]
    pub fn args<'a>(&'a self, bytes: &'a [u8]) -> Args<'a> {
        let bytes = self.words.as_deref().unwrap_or(bytes);
        Args { bytes, spans: &self.spans }
    }

    /// Makes ready for the next request.
    #[inline]
    pub fn reset(&mut self) {
        self.spans.clear();
        if self.spans.capacity() > KEPT {
            self.spans.shrink_to(KEPT);
        }
        (self.at, self.left, self.words) = (0, None, None);
    }
}

/// Something else stands where an element must begin.
#[cold]
fn no_bulk(got: u8) -> Failure {
    Failure::said(format!("ERR Protocol error: expected '$', got '{}'", got.escape_ascii()))
}

/// The number from `start` to the end of its line, and where the next line begins; None if it cannot be a number,
/// Some(None) if more bytes must tell.
#[inline(always)]
fn length(bytes: &[u8], start: usize) -> Option<Option<(i64, usize)>> {
    match bytes.get(start..).unwrap_or_default() {
        // Most lengths have one digit or two.
        [a @ b'0'..=b'9', b'\r', b'\n', ..] => Some(Some((i64::from(a - b'0'), start + 3))),
        [a @ b'1'..=b'9', b @ b'0'..=b'9', b'\r', b'\n', ..] => {
            Some(Some((i64::from(a - b'0') * 10 + i64::from(b - b'0'), start + 4)))
        }
        rest => long_length(rest, start),
    }
}

fn long_length(rest: &[u8], start: usize) -> Option<Option<(i64, usize)>> {
    let end = memchr::memchr(b'\r', rest);
    let text = &rest[..end.unwrap_or(rest.len())];
    let unfinished = end.is_none() && (text.is_empty() || text == b"-");
    if unfinished {
        return Some(None);
    }
    let value = number::integer(text)?;
    match end.map(|end| (end, rest.get(end + 1))) {
        Some((end, Some(b'\n'))) => Some(Some((value, start + end + 2))),
        Some((_, Some(_))) => None,
        _ => Some(None),
    }
}

/// Cuts a line at blanks. In double quotes \n \r \t \b \a \xHH and \\ are as in C, in single quotes only \'.
/// None for a quotation that does not end, or goes on without a blank.
fn split(line: &[u8], words: &mut Vec<u8>, spans: &mut Vec<Span>) -> Option<()> {
    let mut at = 0;
    loop {
        while line.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        if at >= line.len() {
            return Some(());
        }
        let start = words.len();
        at = match line[at] {
            quote @ (b'"' | b'\'') => quoted(line, at + 1, quote, words)?,
            _ => {
                let end = line[at..]
                    .iter()
                    .position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\''))
                    .map_or(line.len(), |len| at + len);
                words.extend_from_slice(&line[at..end]);
                match line.get(end) {
                    Some(quote @ (b'"' | b'\'')) => quoted(line, end + 1, *quote, words)?,
                    _ => end,
                }
            }
        };
        spans.push((start, words.len()));
    }
}

/// Copies what is between quotes, from `at` on; the place behind them.
fn quoted(line: &[u8], mut at: usize, quote: u8, words: &mut Vec<u8>) -> Option<usize> {
    loop {
        let byte = *line.get(at)?;
        at += 1;
        match byte {
            b'\\' if quote == b'"' => {
                let next = *line.get(at)?;
                at += 1;
                words.push(match next {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    b'x' => match line.get(at..at + 2).and_then(number::hex) {
                        Some(byte) => {
                            at += 2;
                            byte
                        }
                        None => b'x',
                    },
                    other => other,
                });
            }
            b'\\' if line.get(at) == Some(&b'\'') => {
                at += 1;
                words.push(b'\'');
            }
            _ if byte == quote => {
                let blank = line.get(at).is_none_or(u8::is_ascii_whitespace);
                return blank.then_some(at);
            }
            _ => words.push(byte),
        }
    }
}
