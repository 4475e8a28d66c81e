//! What a segment holds becomes its file.

use super::columns::Cells;
use super::filled::Filled;
use super::header::Header;
use super::journal::put_key;
use super::mark::{Part, Spread};
use super::plan::{self, Load};
use super::varint;
use super::{Contents, Goal, bits};
use crate::crew::Crew;
use crate::error::Result;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Threads that seal at the same time, at most.
const THREADS: usize = 4;

/// The file of a segment.
pub fn build(contents: &Contents, goal: &Goal) -> Result<Vec<u8>> {
    contents.check()?;
    let filled = Filled::of(&contents.rows);
    let load = Load::of(contents);
    let sizes = plan::plan(&load, filled.len() as u32, goal)?;
    let mut gate = bits::zeroed(sizes.gate_bits)?;
    for one in contents.items.chunk_by(|a, b| a.mark == b.mark) {
        let own = Spread::of(one[0].mark, Part::Gate);
        let own = own.positions(sizes.gate_hashes, sizes.gate_bits);
        own.for_each(|bit| bits::set(&mut gate, bit));
    }
    let gate_on: u64 = gate.iter().map(|byte| u64::from(byte.count_ones())).sum();
    let gate_fill = gate_on as f64 / sizes.gate_bits as f64;
    let cells = Cells::of(&filled, &sizes, &contents.items)?;
    let (encoded, taken) = (cells.encode()?, cells.used_by_row());
    let mut body = [gate, cells.maps, encoded.index, encoded.codes.bytes()].concat();
    let before = body.len();
    for name in &contents.names {
        put_key(&mut body, &name.key);
        varint::put(name.count, &mut body);
    }
    let header = Header {
        level: contents.level,
        order: encoded.order,
        hasher: goal.hasher,
        begin: contents.begin,
        end: contents.end,
        sizes,
        keys: load.keys,
        items: contents.items.len() as u64,
        unlisted: contents.unlisted,
        names: contents.names.len() as u64,
        name_bytes: (body.len() - before) as u64,
        code_bits: encoded.codes.len(),
        error_rate: goal.error_rate,
        gate_error: goal.gate_error,
        predicted_error: plan::measured_error(&taken, sizes.columns, sizes.hashes),
        predicted_gate_error: gate_fill.powi(sizes.gate_hashes as i32),
        rows: contents.rows.as_slice().into(),
    };
    Ok(header.seal(&body))
}

/// Does so many jobs in as many threads as are worth it for `entries`; the answers in the order of the jobs.
pub fn in_threads<T: Send>(
    jobs: usize,
    entries: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(jobs)));
    Crew::new(jobs.min(THREADS)).muster(entries).run(|_| {
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= jobs {
                return;
            }
            let made = work(job);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((job, made));
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(job, _)| *job);
    done.into_iter().map(|(_, made)| made).collect()
}
