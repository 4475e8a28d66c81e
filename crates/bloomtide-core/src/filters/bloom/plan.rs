//! Goals in, sizes out: the plan of a Bloom filter. Allocates nothing.

use super::line::{bit, used};
use crate::cells::LINE_BYTES;
use crate::error::{Result, require, require_same};
use crate::filters::{check_capacity, check_error_rate, check_goal, check_hashes};
use crate::hash::KeyHash;
use crate::placement::Layout;
use crate::positions::{Derivation, MAX_HASHES, Positions, reduce};
use crate::sizing::{self, BLOCK_BITS};

/// The layout is blocked down to this error rate; below it the blocked layout's memory grows faster
/// than its speed is worth (specification 10.4).
const BLOCKED_FROM: f64 = 1e-4;
/// Bits beyond this are refused before any arithmetic could overflow.
const MAX_BITS: u64 = 1 << 56;

/// The sizes of a Bloom filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BloomPlan {
    /// Where a key's bits lie.
    pub layout: Layout,
    /// How classic positions come from a digest. The blocked layout has its own, see `line.rs`.
    pub derivation: Derivation,
    /// Number of bits, m.
    pub bits: u64,
    /// Bits per key, k: the white paper's phase.
    pub hashes: u32,
    /// Distinct keys planned for, if the plan came from a goal.
    pub capacity: Option<u64>,
    /// Error rate planned for, if the plan came from a goal.
    pub error_rate: Option<f64>,
}

impl BloomPlan {
    /// The smallest filter that meets `error_rate` when it holds `capacity` keys.
    pub fn for_goal(
        capacity: u64,
        error_rate: f64,
        layout: Option<Layout>,
        derivation: Derivation,
    ) -> Result<Self> {
        check_capacity(capacity)?;
        check_error_rate(error_rate)?;
        // Slices of a digest are classic positions, so asking for them asks for that layout.
        let by_itself = if error_rate >= BLOCKED_FROM && derivation != Derivation::Slices {
            Layout::Blocked
        } else {
            Layout::Classic
        };
        let n = capacity as f64;
        let layout = layout.unwrap_or(by_itself);
        let (bits, hashes) = match layout {
            Layout::Blocked => {
                let (blocks, hashes) = sizing::blocked_plan(n, error_rate);
                (blocks.saturating_mul(BLOCK_BITS), hashes)
            }
            Layout::Classic => sizing::classic_plan(n, error_rate, derivation),
        };
        let plan = BloomPlan {
            layout,
            derivation,
            bits,
            hashes,
            capacity: Some(capacity),
            error_rate: Some(error_rate),
        };
        plan.checked()
    }

    /// A filter of given sizes: `bits` is the white paper's N, `hashes` its phase.
    pub fn for_sizes(
        bits: u64,
        hashes: u32,
        layout: Option<Layout>,
        derivation: Derivation,
    ) -> Result<Self> {
        let layout = layout.unwrap_or(Layout::Classic);
        // A block is never split, so a blocked filter has whole blocks.
        let bits = match layout {
            Layout::Blocked => bits.checked_next_multiple_of(BLOCK_BITS).unwrap_or(u64::MAX),
            Layout::Classic => bits,
        };
        BloomPlan { layout, derivation, bits, hashes, capacity: None, error_rate: None }.checked()
    }

    /// The plan, if every field is one that can be built. Files pass through here too.
    pub fn checked(self) -> Result<Self> {
        check_goal(self.capacity, self.error_rate)?;
        let most = if self.layout == Layout::Blocked { 8 } else { MAX_HASHES };
        check_hashes(self.hashes, most)?;
        let (bits, hint) = (self.bits, "about 10 bits a key give 1 % error");
        require((1..=MAX_BITS).contains(&bits), "bits", bits, "between 1 and 2**56", hint)?;
        let blocked = self.layout == Layout::Blocked;
        let (whole, allowed) =
            (bits.is_multiple_of(BLOCK_BITS), "a multiple of 512 in the blocked layout");
        require(!blocked || whole, "bits", bits, allowed, "round it up to whole blocks")?;
        if self.derivation == Derivation::Slices {
            let allowed = "\"enhanced\" or \"double\" in the blocked layout";
            let hint = "use layout=\"classic\" with slices";
            require(!blocked, "derivation", "slices", allowed, hint)?;
            let allowed = "a power of two with derivation=\"slices\"";
            let hint = "a slice of b bits names one of 2**b cells";
            require(bits.is_power_of_two(), "bits", bits, allowed, hint)?;
        }
        Ok(self)
    }

    /// Whether a file may have this plan where `plan` makes another of an error rate: sizes come from logarithms,
    /// which machines round differently in their last bits. All else must be the same.
    pub(crate) fn is_made_by(
        &self,
        error_rate: f64,
        plan: impl Fn(f64) -> Result<BloomPlan>,
    ) -> Result<bool> {
        const ROUNDING: f64 = 1e-9;
        let exact = plan(error_rate)?;
        let BloomPlan { bits, hashes, .. } = *self;
        if *self == exact || *self != (BloomPlan { bits, hashes, ..exact }) {
            return Ok(*self == exact);
        }
        let near = |factor: f64| plan(error_rate * factor).unwrap_or(exact);
        let (smaller, larger) = (near(1.0 + ROUNDING), near(1.0 - ROUNDING));
        let known = [smaller.hashes, larger.hashes].contains(&hashes);
        Ok(known && (smaller.bits..=larger.bits).contains(&bits))
    }

    /// Number of blocks of the blocked layout.
    pub fn blocks(&self) -> u64 {
        self.bits / BLOCK_BITS
    }

    /// Memory of the cells in bytes: whole cache lines.
    pub fn bytes(&self) -> u64 {
        self.bits.div_ceil(BLOCK_BITS) * LINE_BYTES as u64
    }

    /// The bits of a key, in the order they are derived.
    pub fn positions(&self, hash: KeyHash) -> Vec<u64> {
        match self.layout {
            Layout::Classic => {
                Positions::new(hash, self.derivation, self.bits, self.hashes).collect()
            }
            Layout::Blocked => {
                let first = reduce(hash.h1, self.blocks()) * BLOCK_BITS;
                let bits = used(hash.h2, self.hashes).map(|word| word * 64 + bit(hash.h2, word));
                bits.map(|bit| first + u64::from(bit)).collect()
            }
        }
    }

    /// Expected error rate when `n` distinct keys are inside.
    pub fn error_at(&self, n: f64) -> f64 {
        match self.layout {
            Layout::Blocked => sizing::blocked_error(n, self.blocks() as f64, self.hashes),
            Layout::Classic => {
                sizing::derived_error(n, self.bits as f64, self.hashes, self.derivation)
            }
        }
    }

    /// Refuses to go on when `other` has other sizes.
    pub fn require_same(&self, other: &BloomPlan) -> Result<()> {
        require_same("layout", self.layout.name(), other.layout.name())?;
        // Before the sizes, which a goal derives from it.
        if self.layout == Layout::Classic {
            require_same("derivation", self.derivation.name(), other.derivation.name())?;
        }
        require_same("bits", self.bits, other.bits)?;
        require_same("hashes", self.hashes, other.hashes)
    }
}
