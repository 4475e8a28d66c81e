//! The parameters of one filter as 64 bytes, the same for every kind.

use super::count::ShapeRecord;
use super::header::{u32_at, u64_at};
use crate::cells::Rounding;
use crate::error::{Error, Result};
use crate::filters::{
    BloomPlan, CountPlan, CountingPlan, DecayStorage, DecayingPlan, Fade, Policy, PoolPolicy,
};
use crate::hash::Hasher;
use crate::placement::{Layout, Placement};
use crate::positions::Derivation;

/// Length of a record.
pub(super) const RECORD: usize = 64;

const HASHES: [&str; 2] = ["xxh3", "keyed"];
const DERIVATIONS: [Derivation; 3] = [Derivation::Enhanced, Derivation::Double, Derivation::Slices];
const LAYOUTS: [Layout; 2] = [Layout::Blocked, Layout::Classic];
const POLICIES: [Policy; 3] = Policy::SPECTRAL;

/// Ids are places in the lists above, counted from one; zero means "has none".
fn id<T: PartialEq>(list: &[T], value: &T) -> u8 {
    list.iter().position(|item| item == value).map_or(0, |i| i as u8 + 1)
}

fn by_id<T: Copy>(list: &[T], id: u8, name: &'static str) -> Result<T> {
    usize::from(id)
        .checked_sub(1)
        .and_then(|i| list.get(i).copied())
        .ok_or_else(|| Error::Field { name, got: id.to_string() })
}

/// Every parameter a filter can have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Record {
    hasher: Hasher,
    derivation: Derivation,
    layout: Option<Layout>,
    policy: Option<Policy>,
    counter_bits: u8,
    hashes: u32,
    cells: u64,
    capacity: Option<u64>,
    error_rate: Option<f64>,
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

    pub(super) fn of_counting(plan: &CountingPlan, hasher: &Hasher) -> Self {
        Record {
            hasher: *hasher,
            derivation: plan.placement.derivation,
            layout: Some(plan.placement.layout),
            policy: Some(plan.policy),
            counter_bits: plan.counter_bits as u8,
            hashes: plan.hashes(),
            cells: plan.cells(),
            capacity: plan.capacity,
            error_rate: plan.error_rate,
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
        let layout = self.layout.ok_or(Error::Field { name: "layout", got: "none".to_owned() })?;
        if let Some(policy) = self.policy {
            return Err(Error::Field { name: "policy", got: policy.name().to_owned() });
        }
        if self.counter_bits != 1 {
            return Err(Error::Field { name: "counter_bits", got: self.counter_bits.to_string() });
        }
        let plan = BloomPlan {
            layout,
            derivation: self.derivation,
            bits: self.cells,
            hashes: self.hashes,
            capacity: self.capacity,
            error_rate: self.error_rate,
        };
        Ok((plan.checked()?, self.hasher))
    }

    pub(super) fn counting(&self) -> Result<(CountingPlan, Hasher)> {
        let policy = self.policy.ok_or(Error::Field { name: "policy", got: "none".to_owned() })?;
        let layout = self.layout.ok_or(Error::Field { name: "layout", got: "none".to_owned() })?;
        let plan = CountingPlan {
            placement: Placement {
                layout,
                derivation: self.derivation,
                cells: self.cells,
                hashes: self.hashes,
            },
            counter_bits: u32::from(self.counter_bits),
            policy,
            capacity: self.capacity,
            error_rate: self.error_rate,
        };
        Ok((plan.checked()?, self.hasher))
    }

    pub(super) fn of_count<S: ShapeRecord>(plan: &CountPlan<S>, hasher: &Hasher) -> Self {
        Record {
            hasher: *hasher,
            derivation: plan.placement.derivation,
            layout: Some(plan.placement.layout),
            policy: Some(plan.policy),
            counter_bits: plan.shape.counter_bits() as u8,
            hashes: plan.hashes(),
            cells: plan.cells(),
            capacity: plan.capacity,
            error_rate: plan.error_rate,
        }
    }

    pub(super) fn count<S: ShapeRecord>(
        &self,
        shape: S,
        total: u64,
        partitions: u64,
        partitioned: bool,
    ) -> Result<(CountPlan<S>, Hasher)> {
        let none = |name| Error::Field { name, got: "none".to_owned() };
        let plan = CountPlan {
            placement: Placement {
                layout: self.layout.ok_or(none("layout"))?,
                derivation: self.derivation,
                cells: self.cells,
                hashes: self.hashes,
            },
            policy: self.policy.ok_or(none("policy"))?,
            shape,
            partitioned,
            partitions,
            total,
            capacity: self.capacity,
            error_rate: self.error_rate,
        };
        Ok((plan.checked()?, self.hasher))
    }

    pub(super) fn of_decaying(plan: &DecayingPlan, hasher: &Hasher) -> Self {
        Record {
            hasher: *hasher,
            derivation: plan.placement.derivation,
            layout: Some(plan.placement.layout),
            policy: Some(plan.policy),
            counter_bits: plan.counter_bits as u8,
            hashes: plan.hashes(),
            cells: plan.cells(),
            capacity: plan.capacity,
            error_rate: plan.error_rate,
        }
    }

    pub(super) fn decaying(
        &self,
        storage: DecayStorage,
        fade: Fade,
        rounding: Rounding,
        fraction_bits: u32,
        pool: PoolPolicy,
    ) -> Result<(DecayingPlan, Hasher)> {
        let none = |name| Error::Field { name, got: "none".to_owned() };
        let plan = DecayingPlan {
            placement: Placement {
                layout: self.layout.ok_or(none("layout"))?,
                derivation: self.derivation,
                cells: self.cells,
                hashes: self.hashes,
            },
            storage,
            fade,
            rounding,
            policy: self.policy.ok_or(none("policy"))?,
            counter_bits: u32::from(self.counter_bits),
            fraction_bits,
            pool,
            capacity: self.capacity,
            error_rate: self.error_rate,
        };
        Ok((plan.checked()?, self.hasher))
    }

    pub(super) fn counter_bits(&self) -> u32 {
        u32::from(self.counter_bits)
    }

    pub(super) fn encode(&self) -> [u8; RECORD] {
        let mut out = [0; RECORD];
        out[0] = id(&HASHES, &self.hasher.name());
        out[1] = id(&DERIVATIONS, &self.derivation);
        out[2] = self.layout.map_or(0, |layout| id(&LAYOUTS, &layout));
        out[3] = self.policy.map_or(0, |policy| id(&POLICIES, &policy));
        out[4] = self.counter_bits;
        out[8..12].copy_from_slice(&self.hashes.to_le_bytes());
        out[16..24].copy_from_slice(&self.cells.to_le_bytes());
        out[24..32].copy_from_slice(&self.capacity.unwrap_or(0).to_le_bytes());
        out[32..40].copy_from_slice(&self.error_rate.unwrap_or(0.0).to_le_bytes());
        out[40..48].copy_from_slice(&self.hasher.seed().to_le_bytes());
        if let Hasher::Keyed { secret } = self.hasher {
            out[48..64].copy_from_slice(&secret);
        }
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        if bytes.len() != RECORD {
            return Err(Error::Field { name: "parameters", got: bytes.len().to_string() });
        }
        let mut secret = [0; 16];
        secret.copy_from_slice(&bytes[48..64]);
        let hasher = match by_id(&HASHES, bytes[0], "hash")? {
            "keyed" => Hasher::Keyed { secret },
            _ => Hasher::Xxh3 { seed: u64_at(bytes, 40) },
        };
        let optional = |value: u64| (value != 0).then_some(value);
        let record = Record {
            hasher,
            derivation: by_id(&DERIVATIONS, bytes[1], "derivation")?,
            layout: if bytes[2] == 0 { None } else { Some(by_id(&LAYOUTS, bytes[2], "layout")?) },
            policy: if bytes[3] == 0 { None } else { Some(by_id(&POLICIES, bytes[3], "policy")?) },
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
