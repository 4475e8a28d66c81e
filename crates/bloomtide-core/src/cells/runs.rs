//! Counters of any size as words: runs of 128, each as wide as its largest counter.
//!
//! ```text
//! directory   one byte a run: the width of its fields, 0 when the whole run is zero
//! fields      the runs one after the other, each its counters in that many bits
//! ```
//!
//! It is about as small as the filter in memory, whatever the partitions are, and says nothing about them.
//! There is one encoding of given counters: a width that is larger than needed is damage.

use super::{CellValues, Words, packed};
use crate::batch::on_the_best_processor;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters in one run.
const RUN: usize = 128;

/// (directory, fields) of `len` counters. Each is asked for once, in order.
pub(crate) fn encode(len: u64, values: &dyn CellValues) -> Result<(Words, Words)> {
    encode_runs(Runs(len), values)
}

/// The runs of so many counters.
struct Runs(u64);

on_the_best_processor!(encode_runs(Runs, source: &dyn CellValues) -> Result<(Words, Words)>);

impl Runs {
    #[inline(always)]
    fn encode_runs(self, source: &dyn CellValues) -> Result<(Words, Words)> {
        let Runs(len) = self;
        let runs = len.div_ceil(RUN as u64);
        let directory = Words::zeroed(runs * 8)?;
        let (mut packer, mut full) = (packed::Packer::default(), Vec::new());
        let mut values = [0; RUN];
        for run in 0..runs {
            let cells = cells(run, len);
            let values = &mut values[..(cells.end - cells.start) as usize];
            source.fill(cells.start, values);
            let any = values.iter().fold(0, |any, value| any | value);
            let width = u64::BITS - any.leading_zeros();
            set_width(&directory, run, width);
            let needed = (full.len() + RUN) as u64 * 8;
            let refused = |_| Error::Capacity { needed, limit: isize::MAX as u64 };
            full.try_reserve(RUN + 1).map_err(refused)?;
            if width > 0 {
                packer.push_all(values, width, |word| full.push(word));
            }
        }
        let (last, used) = packer.rest();
        let fields = Words::zeroed(full.len() as u64 * 64 + u64::from(used))?;
        full.push(last);
        for (to, from) in fields.atomics().iter().zip(full) {
            to.store(from, Ordering::Relaxed);
        }
        Ok((directory, fields))
    }
}

fn cells(run: u64, len: u64) -> std::ops::Range<u64> {
    run * RUN as u64..len.min((run + 1) * RUN as u64)
}

fn width_of(directory: &Words, run: u64) -> u32 {
    packed::read(directory.atomics(), run * 8, 8) as u32
}

fn set_width(directory: &Words, run: u64, width: u32) {
    packed::write(directory.atomics(), run * 8, 8, u64::from(width));
}

/// Counters that were read.
#[derive(Debug)]
pub(crate) struct Values {
    len: u64,
    directory: Words,
    fields: Words,
    /// Where each run begins, and the last one ends.
    starts: Vec<u64>,
}

impl Values {
    /// Bytes that the directory of `len` counters must have.
    pub(crate) fn directory_bytes(len: u64) -> u64 {
        crate::cells::bytes_for(len.div_ceil(RUN as u64).saturating_mul(8))
    }

    /// What `encode` made.
    pub(crate) fn encoded(len: u64, (directory, fields): (Words, Words)) -> Self {
        let (mut bit, mut starts) = (0, vec![0]);
        for run in 0..len.div_ceil(RUN as u64) {
            let cells = cells(run, len);
            bit += (cells.end - cells.start) * u64::from(width_of(&directory, run));
            starts.push(bit);
        }
        Values { len, directory, fields, starts }
    }

    /// The counters, if this is how `encode` would have written them.
    pub(crate) fn new(len: u64, directory: Words, fields: Words) -> Result<Self> {
        let wrong = |what: &str| Err(Error::Field { name: "cells", got: what.to_owned() });
        let runs = len.div_ceil(RUN as u64);
        if directory.bytes() != Self::directory_bytes(len) {
            return wrong("a directory of another length");
        }
        if (0..runs).any(|run| width_of(&directory, run) > 64) {
            return wrong("a counter of more than 64 bits");
        }
        // The directory was read, so its length is real and the starts are no more than that.
        let this = Self::encoded(len, (directory, fields));
        let end = this.starts[runs as usize];
        if this.fields.bytes() != crate::cells::bytes_for(end) {
            return wrong("fields of another length than the directory says");
        }
        if !this.directory.is_zero_from(runs * 8) || !this.fields.is_zero_from(end) {
            return wrong("bits beyond the last counter");
        }
        let mut tops = Tops::new();
        if !(0..runs).all(|run| this.is_as_wide_as_said(run, &mut tops)) {
            return wrong("a run that is wider than its counters");
        }
        Ok(this)
    }

    /// The words of a run that is whole: it begins and ends with a word, as those before it do.
    #[inline(always)]
    fn words_of(&self, run: u64, width: u32) -> Option<&[AtomicU64]> {
        let first = (self.starts[run as usize] / 64) as usize;
        let whole = (run + 1) * RUN as u64 <= self.len;
        whole.then(|| &self.fields.atomics()[first..first + width as usize * RUN / 64])
    }

    /// Whether a counter of the run has the highest bit that its width allows.
    #[inline(always)]
    fn is_as_wide_as_said(&self, run: u64, tops: &mut Tops) -> bool {
        let width = width_of(&self.directory, run);
        match self.words_of(run, width) {
            _ if width == 0 => true,
            Some(words) => {
                let mut pairs = words.iter().zip(tops.of(width));
                pairs.any(|(word, top)| word.load(Ordering::Relaxed) & top != 0)
            }
            None => {
                let mut held = [0; RUN];
                self.unpack(run, &mut held);
                held.iter().fold(0, |any, value| any | value) >> (width - 1) != 0
            }
        }
    }

    /// The counters of a run; zeroes behind the last one.
    #[inline(always)]
    fn unpack(&self, run: u64, held: &mut [u64; RUN]) {
        let cells = cells(run, self.len);
        let (inside, beyond) = held.split_at_mut((cells.end - cells.start) as usize);
        let (bit, width) = (self.starts[run as usize], width_of(&self.directory, run));
        packed::unpack(self.fields.atomics(), bit, width, inside);
        beyond.fill(0);
    }

    /// The counters of a run, each of which fits 32 bits; zeroes behind the last one.
    #[inline(always)]
    pub(crate) fn narrow_run(&self, run: u64) -> [u32; RUN] {
        let mut held = [0; RUN];
        self.unpack(run, &mut held);
        held.map(|value| value as u32)
    }

    /// Bits of the largest counter.
    pub(crate) fn widest(&self) -> u32 {
        let runs = self.len.div_ceil(RUN as u64);
        (0..runs).map(|run| width_of(&self.directory, run)).max().unwrap_or(0)
    }
}

impl CellValues for Values {
    fn fill(&self, first: u64, values: &mut [u64]) {
        read_some(self, first, values);
    }
}

on_the_best_processor!(read_some(&Values, first: u64, values: &mut [u64]));

impl Values {
    #[inline(always)]
    fn read_some(&self, first: u64, values: &mut [u64]) {
        let (mut cell, mut left) = (first, values);
        while !left.is_empty() {
            let (run, skip) = (cell / RUN as u64, (cell % RUN as u64) as usize);
            let count = left.len().min(RUN - skip);
            let (now, later) = left.split_at_mut(count);
            if let Ok(whole) = now.try_into() {
                self.unpack(run, whole);
            } else {
                let mut held = [0; RUN];
                self.unpack(run, &mut held);
                now.copy_from_slice(&held[skip..skip + count]);
            }
            (cell, left) = (cell + count as u64, later);
        }
    }
}

/// For each width the words of a run in which every counter has its highest bit, and no other.
struct Tops([Vec<u64>; 65]);

impl Tops {
    fn new() -> Self {
        Tops([const { Vec::new() }; 65])
    }

    #[inline(always)]
    fn of(&mut self, width: u32) -> &[u64] {
        let tops = &mut self.0[width as usize];
        if tops.is_empty() {
            tops.resize(width as usize * RUN / 64, 0);
            for bit in (1..=RUN).map(|cell| cell * width as usize - 1) {
                tops[bit / 64] |= 1 << (bit % 64);
            }
        }
        tops
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_come_back_as_they_were() {
        for len in [1u64, 127, 128, 129, 1000] {
            let value = |cell: u64| match cell % 300 {
                0..130 => 0,
                130 => u64::MAX,
                rest => rest * rest,
            };
            let (directory, fields) = encode(len, &value).unwrap();
            let values = Values::new(len, directory, fields).unwrap();
            let expected: Vec<u64> = (0..len).map(value).collect();
            for first in [0, 1, 127, 128, 500].into_iter().filter(|first| *first < len) {
                let mut found = vec![7; (len - first) as usize];
                values.fill(first, &mut found);
                assert_eq!(found, expected[first as usize..]);
            }
        }
    }

    #[test]
    fn numbers_of_every_width_come_back_as_they_were() {
        for width in 1..=64 {
            let value = |cell: u64| {
                cell.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - width) | 1 << (width - 1)
            };
            let (directory, fields) = encode(300, &value).unwrap();
            let values = Values::new(300, directory, fields).unwrap();
            let mut found = [0; 300];
            values.fill(0, &mut found);
            assert!((0..300).all(|cell| found[cell as usize] == value(cell)), "{width}");
            let narrow = values.narrow_run(1);
            assert!((0..128).all(|i| narrow[i] == value(128 + i as u64) as u32), "{width}");
        }
    }

    #[test]
    fn an_encoding_that_is_not_ours_is_refused() {
        let value = |cell: u64| cell % 7;
        let broken = |mend: &dyn Fn(&Words, &Words)| {
            let (directory, fields) = encode(200, &value).unwrap();
            mend(&directory, &fields);
            Values::new(200, directory, fields).is_err()
        };
        assert!(!broken(&|_, _| ()));
        assert!(broken(&|directory, _| set_width(directory, 0, 65)));
        assert!(broken(&|directory, _| set_width(directory, 0, 40)));
        assert!(broken(&|directory, _| set_width(directory, 2, 1)));
        assert!(broken(&|_, fields| packed::write(fields.atomics(), 600, 1, 1)));
        assert!(broken(&|_, fields| packed::write(fields.atomics(), fields.bytes() * 8 - 1, 1, 1)));
        assert!(broken(&|_, fields| (0..200).for_each(|cell| packed::write(
            fields.atomics(),
            cell * 3,
            3,
            1
        ))));
    }
}
