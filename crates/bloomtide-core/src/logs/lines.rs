//! Lines out of chunks: a line that crosses a border is put together, one without end is cut.

use memchr::{memchr, memchr_iter};

/// The longest line that is read. Servers cut requests far below; what is longer is no log line, and
/// holding it would let a broken file fill the memory.
pub const MAX_LINE: usize = 1 << 16;

/// How many lines end in these bytes.
pub fn count_lines(bytes: &[u8]) -> usize {
    memchr_iter(b'\n', bytes).count()
}

/// The begun line at the end of the bytes so far.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    /// Calls `each` with every line that ends in the chunk, without its line end (LF or CRLF). A
    /// line that is too long comes with more than [`MAX_LINE`] bytes, perhaps not all of them.
    pub fn feed(&mut self, mut chunk: &[u8], mut each: impl FnMut(&[u8])) {
        if !self.begun.is_empty() {
            let Some(end) = memchr(b'\n', chunk) else { return self.extend(chunk) };
            self.extend(&chunk[..end]);
            each(without_return(&self.begun));
            self.begun.clear();
            chunk = &chunk[end + 1..];
        }
        while let Some(end) = memchr(b'\n', chunk) {
            each(without_return(&chunk[..end]));
            chunk = &chunk[end + 1..];
        }
        self.extend(chunk);
    }

    /// The last line, if the bytes did not end with a line end; nothing is begun afterwards.
    pub fn finish(&mut self, mut each: impl FnMut(&[u8])) {
        if !self.begun.is_empty() {
            each(without_return(&self.begun));
        }
        self.begun.clear();
    }

    fn extend(&mut self, part: &[u8]) {
        // Two bytes more than allowed, so that a return at the cut cannot make it fit.
        let room = (MAX_LINE + 2).saturating_sub(self.begun.len());
        self.begun.extend_from_slice(&part[..part.len().min(room)]);
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_end_takes_bounded_memory() {
        let mut lines = Lines::default();
        for _ in 0..100 {
            lines.feed(&[b'x'; 10_000], |_| panic!("no line has ended"));
        }
        assert!(lines.begun.len() <= MAX_LINE + 2);
        let mut found = Vec::new();
        lines.feed(b"x\nnext\n", |line| found.push(line.len()));
        assert!(found[0] > MAX_LINE && found[1] == 4, "{found:?}");
    }
}
