//! JSON text, checked to its end and not built into a tree: only the values that are asked for
//! leave it, as ranges of the text.
//!
//! Stricter than it needs to be about structure, so that a cut line is noticed; more lenient about
//! strings, in which servers log raw bytes that are no UTF-8.

use memchr::{memchr, memchr2};

/// Deeper nesting is refused: no log has it, and it must not exhaust the stack.
const DEEPEST: usize = 64;

/// Names that are looked for at once, at most, and objects within objects that are looked into.
pub const MOST: usize = 24;

/// The members of those names as they are written; None if the line is no JSON object. Dots lead into objects, and
/// also mean themselves in a member's own name. A name that comes twice counts as the last one.
pub fn find<'a>(
    line: &'a [u8],
    names: &[Option<&[u8]>],
    found: &mut [Option<&'a [u8]>],
) -> Option<()> {
    let mut scanner = Scanner::new(line);
    find_within(&mut scanner, names, found, 0)?;
    scanner.ends()
}

fn find_within<'a>(
    scanner: &mut Scanner<'a>,
    names: &[Option<&[u8]>],
    found: &mut [Option<&'a [u8]>],
    depth: usize,
) -> Option<()> {
    let mut unescaped = Vec::new();
    scanner.object(|scanner, member| {
        let member = match member {
            Value::Escaped(inner) => {
                unescaped.clear();
                unescape(inner, &mut unescaped);
                unescaped.as_slice()
            }
            Value::Plain(inner) => inner,
            Value::Number(_) | Value::Other => return None,
        };
        let (mut inner, mut within) = ([None; MOST], false);
        let mut hits = 0_u32;
        for (at, name) in names.iter().enumerate() {
            match name.and_then(|name| name.strip_prefix(member)) {
                Some([]) => hits |= 1 << at,
                Some([b'.', rest @ ..]) => {
                    inner[at] = Some(rest);
                    within = true;
                }
                _ => {}
            }
        }
        scanner.peek()?;
        let start = scanner.at;
        if within && depth < MOST && scanner.at_object() {
            find_within(scanner, &inner[..names.len()], found, depth + 1)?;
        } else {
            scanner.value(depth + 1)?;
        }
        while hits != 0 {
            found[hits.trailing_zeros() as usize] = Some(&scanner.text[start..scanner.at]);
            hits &= hits - 1;
        }
        Some(())
    })
}

/// What a value says: a string without its quotes and escapes, anything else as it is written.
pub fn text<'a>(value: &'a [u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
    let Some(inner) = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")) else {
        return value;
    };
    if memchr(b'\\', inner).is_none() {
        return inner;
    }
    buffer.clear();
    unescape(inner, buffer);
    buffer
}

/// A value, as far as a log needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// What stands between the quotes.
    Plain(&'a [u8]),
    /// The same with backslashes in it; [`unescape`] reads them.
    Escaped(&'a [u8]),
    /// A number as it is written.
    Number(&'a [u8]),
    /// `true`, `false`, `null`, an object, or an array that starts with one of these.
    Other,
}

/// A place in the text.
pub struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    /// At the start of the text.
    pub fn new(text: &'a [u8]) -> Self {
        Scanner { text, at: 0 }
    }

    /// Nothing but blanks is left.
    fn ends(&mut self) -> Option<()> {
        (self.peek().is_none()).then_some(())
    }

    /// Whether an object comes next.
    fn at_object(&mut self) -> bool {
        self.peek() == Some(b'{')
    }

    /// An object: `member` is called after each name and must read its value.
    fn object(&mut self, mut member: impl FnMut(&mut Self, Value<'a>) -> Option<()>) -> Option<()> {
        self.expect(b'{')?;
        if self.accept(b'}') {
            return Some(());
        }
        loop {
            self.expect(b'"')?;
            let name = self.string()?;
            self.expect(b':')?;
            member(self, name)?;
            if !self.accept(b',') {
                return self.expect(b'}');
            }
        }
    }

    /// Any value; an array counts as its first one.
    pub fn value(&mut self, depth: usize) -> Option<Value<'a>> {
        if depth > DEEPEST {
            return None;
        }
        match self.peek()? {
            b'{' => {
                self.object(|scanner, _| scanner.value(depth + 1).map(drop))?;
                Some(Value::Other)
            }
            b'[' => self.array(depth),
            b'"' => {
                self.at += 1;
                self.string()
            }
            b'-' | b'0'..=b'9' => self.number(),
            _ => [&b"true"[..], b"false", b"null"].iter().find_map(|word| {
                self.text[self.at..].starts_with(word).then(|| self.at += word.len())?;
                Some(Value::Other)
            }),
        }
    }

    fn array(&mut self, depth: usize) -> Option<Value<'a>> {
        self.expect(b'[')?;
        if self.accept(b']') {
            return Some(Value::Other);
        }
        let first = self.value(depth + 1)?;
        while self.accept(b',') {
            self.value(depth + 1)?;
        }
        self.expect(b']')?;
        Some(first)
    }

    /// The rest of a string whose opening quote was read.
    fn string(&mut self) -> Option<Value<'a>> {
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at += memchr2(b'"', b'\\', &self.text[self.at..])?;
            if self.text[self.at] == b'"' {
                let inner = &self.text[start..self.at];
                self.at += 1;
                return Some(if escaped { Value::Escaped(inner) } else { Value::Plain(inner) });
            }
            escaped = true;
            let escape = &self.text[self.at + 1..];
            self.at += match escape.first()? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
                b'u' => {
                    hex(escape.get(1..5)?)?;
                    6
                }
                _ => return None,
            };
        }
    }

    fn number(&mut self) -> Option<Value<'a>> {
        let start = self.at;
        self.at += usize::from(self.text[self.at] == b'-');
        let whole = self.digits()?;
        if whole.len() > 1 && whole[0] == b'0' {
            return None;
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.text.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        Some(Value::Number(&self.text[start..self.at]))
    }

    /// At least one digit.
    fn digits(&mut self) -> Option<&'a [u8]> {
        let rest = &self.text[self.at..];
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += length;
        (length > 0).then_some(&rest[..length])
    }

    /// The next byte that is no blank.
    fn peek(&mut self) -> Option<u8> {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.accept(byte).then_some(())
    }
}

/// Appends the string to `out` with its escapes read. Half a surrogate pair becomes U+FFFD.
pub fn unescape(mut inner: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = memchr(b'\\', inner) {
        out.extend_from_slice(&inner[..at]);
        inner = &inner[at + 1..];
        let Some((letter, rest)) = inner.split_first() else { return };
        inner = rest;
        let read = match letter {
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let (read, length) = code_point(inner);
                inner = &inner[length.min(inner.len())..];
                read
            }
            same => *same as char,
        };
        out.extend_from_slice(read.encode_utf8(&mut [0; 4]).as_bytes());
    }
    out.extend_from_slice(inner);
}

/// The character after `\u`, and how many bytes its writing takes: twelve less two for a pair.
fn code_point(text: &[u8]) -> (char, usize) {
    let Some(first) = text.get(..4).and_then(hex) else { return (char::REPLACEMENT_CHARACTER, 4) };
    if (0xd800..0xdc00).contains(&first)
        && let Some(second) = text.get(4..10).and_then(|next| hex(next.strip_prefix(b"\\u")?))
        && (0xdc00..0xe000).contains(&second)
    {
        let joined = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return (char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER), 10);
    }
    (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 4)
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |value, byte| Some(value * 16 + (*byte as char).to_digit(16)?))
}
