//! The lines of a block: where each ends, and the digests of their keys.

use super::keys::{Keys, Scratch};
use crate::batch::at_best;
use crate::hash::{Hasher, KeyHash};

/// Lines and their keys.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Where each line ends, its line end included.
    ends: Vec<usize>,
    /// Which lines have no key, in order. Few, as a rule.
    keyless: Vec<usize>,
    digests: Vec<KeyHash>,
    scratch: Scratch,
}

impl Rows {
    /// How many lines.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// How many of them have a key.
    pub(super) fn keyed(&self) -> usize {
        self.ends.len() - self.keyless.len()
    }

    /// How many bytes the lines have.
    pub(super) fn bytes(&self) -> usize {
        self.ends.last().copied().unwrap_or_default()
    }

    /// Of the lines that have a key, in order.
    pub(super) fn digests(&self) -> &[KeyHash] {
        &self.digests
    }

    pub(super) fn clear(&mut self) {
        self.ends.clear();
        self.keyless.clear();
        self.digests.clear();
    }

    /// Finds the lines of the block and hashes their keys.
    pub(super) fn hash(&mut self, block: &[u8], keys: &Keys, hasher: &Hasher) {
        self.clear();
        at_best(|| {
            if keys.are_lines() {
                return self.hash_lines(block, hasher);
            }
            let mut digests = std::mem::take(&mut self.digests);
            self.read(0, block, keys, &mut |key, _| digests.push(hasher.bytes(key)));
            self.digests = digests;
        });
    }

    /// The usual case without anything between the line and its hash.
    #[inline(always)]
    fn hash_lines(&mut self, block: &[u8], hasher: &Hasher) {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', block) {
            self.digests.push(hasher.bytes(without_return(&block[start..end])));
            start = end + 1;
            self.ends.push(start);
        }
    }

    /// Appends the lines of a block that will stand at `offset`; `each` gets every key with its time.
    pub(super) fn read(
        &mut self,
        offset: usize,
        block: &[u8],
        keys: &Keys,
        each: &mut dyn FnMut(&[u8], Option<f64>),
    ) {
        let mut cut = keys.cut();
        let mut start = 0;
        while start < block.len() {
            // At the end of a file a quote may still be open: the rest is one line then.
            let length = cut.end(&block[start..]).unwrap_or(block.len() - start);
            let line = without_return(&block[start..start + length - 1]);
            match keys.read(line, &mut self.scratch) {
                Some((key, time)) => each(key, time),
                None => self.keyless.push(self.ends.len()),
            }
            start += length;
            self.ends.push(offset + start);
        }
    }

    /// Appends the lines that are to be kept to `out`, neighbours in one piece.
    pub(super) fn copy(&self, block: &[u8], new: &[bool], invert: bool, out: &mut Vec<u8>) {
        let mut new = new.iter();
        let (mut from, mut at) = (0, 0);
        for (end, keyless) in self.each() {
            let passes = keyless || new.next().is_some_and(|new| *new);
            if passes == invert {
                out.extend_from_slice(&block[from..at]);
                from = end;
            }
            at = end;
        }
        out.extend_from_slice(&block[from..at]);
    }

    /// The same with the count of its key and a tab before each line. One without a key is alone.
    pub(super) fn copy_counted(
        &self,
        block: &[u8],
        new: &[bool],
        counts: &[u64],
        out: &mut Vec<u8>,
    ) {
        let mut keys = new.iter().zip(counts);
        let mut at = 0;
        for (end, keyless) in self.each() {
            let (new, count) =
                if keyless { (true, 1) } else { keys.next().map_or((false, 0), |(n, c)| (*n, *c)) };
            if new {
                out.extend_from_slice(count.to_string().as_bytes());
                out.push(b'\t');
                out.extend_from_slice(&block[at..end]);
            }
            at = end;
        }
    }

    /// Where each line ends, and whether it has no key.
    #[inline(always)]
    fn each(&self) -> impl Iterator<Item = (usize, bool)> + '_ {
        let mut keyless = self.keyless.iter().peekable();
        let ends = self.ends.iter().enumerate();
        ends.map(move |(row, end)| (*end, keyless.next_if_eq(&&row).is_some()))
    }
}

/// A line without the return of CRLF.
#[inline(always)]
fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
