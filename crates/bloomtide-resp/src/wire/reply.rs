//! Replies, in the session's protocol: each type is written as RESP3 has it, or as RESP2 replaces it.

use super::number;

/// Where replies are written.
#[derive(Debug)]
pub struct Reply {
    out: Vec<u8>,
    /// 2 or 3.
    protocol: u8,
}

impl Default for Reply {
    fn default() -> Self {
        Reply { out: Vec::new(), protocol: 2 }
    }
}

/// Memory that is kept for the next replies; more is given back.
const KEPT: usize = 256 << 10;

impl Reply {
    /// What was written.
    pub fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// Forgets what was written.
    pub fn clear(&mut self) {
        self.out.clear();
        self.out.shrink_to(KEPT);
    }

    /// Forgets what was written after `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.out.truncate(len);
    }

    /// 2 or 3.
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// From here on replies are of this protocol, 2 or 3.
    pub fn set_protocol(&mut self, protocol: u8) {
        self.protocol = protocol;
    }

    #[inline]
    fn is3(&self) -> bool {
        self.protocol == 3
    }

    #[inline]
    fn prefixed(&mut self, mark: u8, value: i64) {
        self.out.push(mark);
        number::write(&mut self.out, value);
        self.out.extend_from_slice(b"\r\n");
    }

    /// `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// A text without line breaks; those that are in it become blanks.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text);
    }

    /// An error: a code in capitals, then the text.
    #[cold]
    pub fn error(&mut self, text: &str) {
        self.line(b'-', text);
    }

    fn line(&mut self, mark: u8, text: &str) {
        self.out.push(mark);
        if text.bytes().all(|byte| byte >= b' ') {
            self.out.extend_from_slice(text.as_bytes());
        } else {
            self.out.extend(text.bytes().map(|byte| byte.max(b' ')));
        }
        self.out.extend_from_slice(b"\r\n");
    }

    /// An integer.
    #[inline]
    pub fn int(&mut self, value: i64) {
        self.prefixed(b':', value);
    }

    /// A count; beyond 2^63 it is the largest integer there is.
    #[inline]
    pub fn count(&mut self, value: u64) {
        self.int(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// True or false; 1 or 0 in RESP2.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        let text: &[u8; 4] = match (self.is3(), value) {
            (true, true) => b"#t\r\n",
            (true, false) => b"#f\r\n",
            (false, true) => b":1\r\n",
            (false, false) => b":0\r\n",
        };
        self.out.extend_from_slice(text);
    }

    /// A byte string.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.prefixed(b'$', bytes.len() as i64);
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Nothing.
    pub fn null(&mut self) {
        self.out.extend_from_slice(if self.is3() { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// Nothing in the place of an array.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(if self.is3() { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// A number with a fraction; a byte string in RESP2.
    pub fn double(&mut self, value: f64) {
        let text = if value.is_nan() { "nan".to_owned() } else { value.to_string() };
        if self.is3() {
            self.line(b',', &text);
        } else {
            self.bulk(text.as_bytes());
        }
    }

    /// The head of an array, whose elements come next.
    #[inline]
    pub fn array(&mut self, len: usize) {
        self.prefixed(b'*', len as i64);
    }

    /// The head of a set; an array in RESP2.
    pub fn set(&mut self, len: usize) {
        self.prefixed(if self.is3() { b'~' } else { b'*' }, len as i64);
    }

    /// The head of a map of `len` pairs; a flat array in RESP2.
    pub fn map(&mut self, len: usize) {
        if self.is3() {
            self.prefixed(b'%', len as i64);
        } else {
            self.array(len * 2);
        }
    }

    /// Text for people; a byte string in RESP2.
    pub fn text(&mut self, text: &[u8]) {
        if !self.is3() {
            return self.bulk(text);
        }
        self.prefixed(b'=', text.len() as i64 + 4);
        self.out.extend_from_slice(b"txt:");
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Says that the array whose head is at `start`, and whose elements begin at `body`, is shorter.
    #[cold]
    pub fn shorten(&mut self, start: usize, body: usize, len: usize) {
        let elements = self.out.split_off(body);
        self.out.truncate(start);
        self.array(len);
        self.out.extend_from_slice(&elements);
    }

    /// What another reply of the same protocol wrote.
    pub fn append(&mut self, other: &Reply) {
        self.out.extend_from_slice(&other.out);
    }

    /// Bytes written so far.
    #[inline]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }
}
