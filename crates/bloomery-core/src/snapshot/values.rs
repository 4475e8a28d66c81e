//! Counters of any size as words: runs of 128, each as wide as its largest counter.
//!
//! ```text
//! directory   one byte a run: the width of its fields, 0 when the whole run is zero
//! fields      the runs one after the other, each its counters in that many bits
//! ```
//!
//! It is about as small as the filter in memory, whatever the partitions are, and says nothing about them.
//! There is one encoding of given counters: a width that is larger than needed is damage.

use crate::cells::{Words, packed};
use crate::error::{Error, Result};
use std::cell::RefCell;
use std::sync::atomic::Ordering;

/// Counters in one run.
const RUN: u64 = 128;

/// (directory, fields) of `len` counters. Each is asked for once, in order.
pub(crate) fn encode(len: u64, value: impl Fn(u64) -> u64) -> Result<(Words, Words)> {
    let runs = len.div_ceil(RUN);
    let directory = Words::zeroed(runs * 8)?;
    let (mut packer, mut full) = (packed::Packer::default(), Vec::new());
    let mut values = [0; RUN as usize];
    for run in 0..runs {
        let cells = cells(run, len);
        let values = &mut values[..(cells.end - cells.start) as usize];
        let mut any = 0;
        for (held, cell) in values.iter_mut().zip(cells) {
            *held = value(cell);
            any |= *held;
        }
        let width = u64::BITS - any.leading_zeros();
        set_width(&directory, run, width);
        let needed = (full.len() as u64 + RUN) * 8;
        let refused = |_| Error::Capacity { needed, limit: isize::MAX as u64 };
        full.try_reserve(RUN as usize).map_err(refused)?;
        if width > 0 {
            values.iter().for_each(|value| full.extend(packer.push(*value, width)));
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

fn cells(run: u64, len: u64) -> std::ops::Range<u64> {
    run * RUN..len.min((run + 1) * RUN)
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
    /// Where each run begins.
    starts: Vec<u64>,
}

impl Values {
    /// Bytes that the directory of `len` counters must have.
    pub(crate) fn directory_bytes(len: u64) -> u64 {
        crate::cells::bytes_for(len.div_ceil(RUN).saturating_mul(8))
    }

    /// The counters, if this is how `encode` would have written them.
    pub(crate) fn new(len: u64, directory: Words, fields: Words) -> Result<Self> {
        let wrong = |what: &str| Err(Error::Field { name: "cells", got: what.to_owned() });
        let runs = len.div_ceil(RUN);
        if directory.bytes() != Self::directory_bytes(len) {
            return wrong("a directory of another length");
        }
        // The directory was read, so its length is real and the starts are no more than that.
        let mut starts = Vec::with_capacity(runs as usize);
        let mut bit = 0u64;
        for run in 0..runs {
            starts.push(bit);
            let width = width_of(&directory, run);
            if width > 64 {
                return wrong("a counter of more than 64 bits");
            }
            bit += (cells(run, len).end - run * RUN) * u64::from(width);
        }
        if fields.bytes() != crate::cells::bytes_for(bit) {
            return wrong("fields of another length than the directory says");
        }
        let this = Values { len, directory, fields, starts };
        if !this.directory.is_zero_from(runs * 8) || !this.fields.is_zero_from(bit) {
            return wrong("bits beyond the last counter");
        }
        let mut held = [0; RUN as usize];
        for run in 0..runs {
            this.unpack(run, &mut held);
            let any = held.iter().fold(0, |any, value| any | value);
            if u64::BITS - any.leading_zeros() != width_of(&this.directory, run) {
                return wrong("a run that is wider than its counters");
            }
        }
        Ok(this)
    }

    /// The counters of a run; zeroes behind the last one.
    fn unpack(&self, run: u64, held: &mut [u64; RUN as usize]) {
        held.fill(0);
        let width = width_of(&self.directory, run);
        if width > 0 {
            let mut bit = self.starts[run as usize];
            for (value, _) in held.iter_mut().zip(cells(run, self.len)) {
                *value = packed::read(self.fields.atomics(), bit, width);
                bit += u64::from(width);
            }
        }
    }

    /// Bits of the largest counter.
    pub(crate) fn widest(&self) -> u32 {
        let runs = self.len.div_ceil(RUN);
        (0..runs).map(|run| width_of(&self.directory, run)).max().unwrap_or(0)
    }

    /// The counters, for who asks mostly for one after the other: a run is unpacked once.
    pub(crate) fn in_order(&self) -> impl Fn(u64) -> u64 {
        let unpacked = RefCell::new((u64::MAX, [0; RUN as usize]));
        move |cell| {
            let (run, held) = &mut *unpacked.borrow_mut();
            if *run != cell / RUN {
                *run = cell / RUN;
                self.unpack(*run, held);
            }
            held[(cell % RUN) as usize]
        }
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
            let (directory, fields) = encode(len, value).unwrap();
            let values = Values::new(len, directory, fields).unwrap();
            let get = values.in_order();
            assert!((0..len).all(|cell| get(cell) == value(cell)));
            assert!((0..len).rev().all(|cell| get(cell) == value(cell)));
        }
    }

    #[test]
    fn an_encoding_that_is_not_ours_is_refused() {
        let value = |cell: u64| cell % 7;
        let broken = |mend: &dyn Fn(&Words, &Words)| {
            let (directory, fields) = encode(200, value).unwrap();
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
