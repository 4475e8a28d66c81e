//! The parameters of one filter as 64 bytes, the same for every kind.

use super::header::{u32_at, u64_at};
use crate::error::{Error, Result};
use crate::filters::{BloomPlan, Policy};
use crate::hash::Hasher;
use crate::placement::{Layout, Placement};
use crate::positions::Derivation;

/// Length of a record.
pub(super) const RECORD: usize = 64;

/// Ids are places in the list `ALL` of an enum, counted from one; zero means "has none".
pub(super) fn id<T: PartialEq>(list: &[T], value: &T) -> u8 {
    list.iter().position(|item| item == value).map_or(0, |i| i as u8 + 1)
}

pub(super) fn by_id<T: Copy>(list: &[T], id: u8, name: &'static str) -> Result<T> {
    usize::from(id)
        .checked_sub(1)
        .and_then(|i| list.get(i).copied())
        .ok_or_else(|| Error::Field { name, got: id.to_string() })
}

/// Every parameter a filter can have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Record {
    pub(super) hasher: Hasher,
    derivation: Derivation,
    layout: Option<Layout>,
    policy: Option<Policy>,
    counter_bits: u8,
    hashes: u32,
    cells: u64,
    pub(super) capacity: Option<u64>,
    pub(super) error_rate: Option<f64>,
}

impl Record {
    pub(super) fn of_bloom(plan: &BloomPlan, hasher: &Hasher) -> Self {
        Record {
            hasher: *hasher,
            derivation: plan.derivation,
            layout: Some(plan.layout),
            policy: None,
            counter_bits: 1,
            hashes: plan.hashes,
            cells: plan.bits,
            capacity: plan.capacity,
            error_rate: plan.error_rate,
        }
    }

    /// Of counters that lie anywhere or in blocks, with what they were planned for.
    pub(super) fn of_counters(
        hasher: &Hasher,
        placement: &Placement,
        policy: Policy,
        counter_bits: u32,
        (capacity, error_rate): (Option<u64>, Option<f64>),
    ) -> Self {
        Record {
            hasher: *hasher,
            derivation: placement.derivation,
            layout: Some(placement.layout),
            policy: Some(policy),
            counter_bits: counter_bits as u8,
            hashes: placement.hashes,
            cells: placement.cells,
            capacity,
            error_rate,
        }
    }

    /// The hash function and one number, for what has no cells.
    pub(super) fn of_hasher(hasher: &Hasher, cells: u64) -> Self {
        Record {
            hasher: *hasher,
            derivation: Derivation::Enhanced,
            layout: None,
            policy: None,
            counter_bits: 0,
            hashes: 0,
            cells,
            capacity: None,
            error_rate: None,
        }
    }

    /// (number, hash function), if nothing else was written.
    pub(super) fn hasher_alone(&self) -> Result<(u64, Hasher)> {
        if *self != Record::of_hasher(&self.hasher, self.cells) {
            return Err(Error::Field { name: "parameters", got: "unknown fields".to_owned() });
        }
        Ok((self.cells, self.hasher))
    }

    pub(super) fn bloom(&self) -> Result<(BloomPlan, Hasher)> {
        let Placement { layout, derivation, cells, hashes } = self.placement()?;
        if let Some(policy) = self.policy {
            return Err(Error::Field { name: "policy", got: policy.name().to_owned() });
        }
        if self.counter_bits != 1 {
            return Err(Error::Field { name: "counter_bits", got: self.counter_bits.to_string() });
        }
        let (capacity, error_rate) = (self.capacity, self.error_rate);
        let plan = BloomPlan { layout, derivation, bits: cells, hashes, capacity, error_rate };
        Ok((plan.checked()?, self.hasher))
    }

    /// Where the cells of a key lie.
    pub(super) fn placement(&self) -> Result<Placement> {
        let layout = self.layout.ok_or(Error::Field { name: "layout", got: "none".to_owned() })?;
        let Record { derivation, cells, hashes, .. } = *self;
        Ok(Placement { layout, derivation, cells, hashes })
    }

    pub(super) fn policy(&self) -> Result<Policy> {
        self.policy.ok_or(Error::Field { name: "policy", got: "none".to_owned() })
    }

    pub(super) fn counter_bits(&self) -> u32 {
        u32::from(self.counter_bits)
    }

    pub(super) fn encode(&self) -> [u8; RECORD] {
        let mut out = [0; RECORD];
        let (hash, seed, secret) = self.hasher.parts();
        out[0] = hash;
        out[1] = id(Derivation::ALL, &self.derivation);
        out[2] = self.layout.map_or(0, |layout| id(Layout::ALL, &layout));
        out[3] = self.policy.map_or(0, |policy| id(Policy::ALL, &policy));
        out[4] = self.counter_bits;
        out[8..12].copy_from_slice(&self.hashes.to_le_bytes());
        out[16..24].copy_from_slice(&self.cells.to_le_bytes());
        out[24..32].copy_from_slice(&self.capacity.unwrap_or(0).to_le_bytes());
        out[32..40].copy_from_slice(&self.error_rate.unwrap_or(0.0).to_le_bytes());
        out[40..48].copy_from_slice(&seed.to_le_bytes());
        out[48..64].copy_from_slice(&secret);
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        if bytes.len() != RECORD {
            return Err(Error::Field { name: "parameters", got: bytes.len().to_string() });
        }
        let mut secret = [0; 16];
        secret.copy_from_slice(&bytes[48..64]);
        let optional = |value: u64| (value != 0).then_some(value);
        let record = Record {
            hasher: Hasher::from_parts(bytes[0], u64_at(bytes, 40), secret)?,
            derivation: by_id(Derivation::ALL, bytes[1], "derivation")?,
            layout: if bytes[2] == 0 {
                None
            } else {
                Some(by_id(Layout::ALL, bytes[2], "layout")?)
            },
            policy: if bytes[3] == 0 {
                None
            } else {
                Some(by_id(Policy::ALL, bytes[3], "policy")?)
            },
            counter_bits: bytes[4],
            hashes: u32_at(bytes, 8),
            cells: u64_at(bytes, 16),
            capacity: optional(u64_at(bytes, 24)),
            error_rate: optional(u64_at(bytes, 32)).map(f64::from_bits),
        };
        // Reserved bytes are zero until a version says otherwise.
        if record.encode() != bytes {
            return Err(Error::Field { name: "parameters", got: "unknown fields".to_owned() });
        }
        Ok(record)
    }
}
