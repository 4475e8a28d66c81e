//! From a URL to what the layers and X hold of it.
//!
//! The address of a path is one digest. It grows by a segment a layer, so that the address of every prefix
//! comes with that of the whole.

use super::UrlPlan;
use super::plan::{Bind, MAX_LAYERS};
use crate::error::{Error, Result};
use crate::hash::{Hasher, KeyHash};
use crate::key::Key;
use crate::positions::{Derivation, MAX_HASHES, Positions};
use crate::url::{Canon, canonical, segments};

/// The number by which an address is extended for X, so that X and the last layer, which hold the same
/// address, have unrelated cells and err independently.
const WHOLE: u64 = u64::MAX;

impl Bind {
    /// What a layer holds, from what the layer above does and the segment's digest.
    #[inline(always)]
    fn next(self, above: KeyHash, segment: KeyHash, depth: usize) -> KeyHash {
        match self {
            Bind::SaltedXor => above ^ segment.extend(depth as u64),
            Bind::Ordered => (above ^ segment).extend(0),
            Bind::Xor => segment,
        }
    }
}

/// The digest of each layer, from the root on, of a URL in canonical form.
#[inline(always)]
fn prefixes<'a>(
    plan: &UrlPlan,
    hasher: &Hasher,
    canonical: &'a [u8],
) -> impl Iterator<Item = KeyHash> + use<'a> {
    let (bind, hasher) = (plan.bind, *hasher);
    let mut address = KeyHash::default();
    segments(canonical, plan.max_layers as usize).enumerate().map(move |(above, segment)| {
        address = bind.next(address, hasher.bytes(segment), above + 1);
        address
    })
}

/// A URL's digests, one for each of its segments.
pub(super) struct Address {
    digests: [KeyHash; MAX_LAYERS],
    depth: usize,
}

impl Address {
    /// The address of a URL as it stands anywhere; refuses what is none.
    pub(super) fn of(plan: &UrlPlan, hasher: &Hasher, url: &[u8]) -> Result<Self> {
        let mut this = Address { digests: [KeyHash::default(); MAX_LAYERS], depth: 0 };
        read(plan, hasher, Some(Key::Bytes(url)), &mut Vec::new(), |layer, digest| {
            this.digests[layer] = digest;
            this.depth = layer + 1;
        })?;
        Ok(this)
    }

    /// What each layer holds, from the root on.
    pub(super) fn layers(&self) -> &[KeyHash] {
        &self.digests[..self.depth]
    }
}

/// X's digest of a URL whose deepest prefix this is. Not for `Bind::Xor`.
#[inline(always)]
pub(super) fn whole(deepest: KeyHash) -> KeyHash {
    deepest.extend(WHOLE)
}

/// X's cells of a URL with these segments, for `Bind::Xor`: LAddr of the paper's listing, which starts at
/// zero. The first `hashes` of them; `bits` is a power of two, so all are below it.
pub(super) fn crossed(layers: &[KeyHash], bits: u64, hashes: u32) -> [u64; MAX_HASHES as usize] {
    let mut cells = [0; MAX_HASHES as usize];
    for digest in layers {
        let positions = Positions::new(*digest, Derivation::Enhanced, bits, hashes);
        cells.iter_mut().zip(positions).for_each(|(cell, position)| *cell ^= position);
    }
    cells
}

/// The bytes of a row that should be a URL.
#[inline(always)]
pub(super) fn text<'a>(key: Option<Key<'a>>) -> Result<&'a [u8]> {
    match key {
        Some(Key::Text(url) | Key::Bytes(url)) => Ok(url),
        _ => Err(Error::parameter("url", "a number", "text or bytes", "convert it to str")),
    }
}

/// Hands out the digests of a row, layer by layer, with its canonical form in a buffer that all rows share.
#[inline(always)]
pub(super) fn read(
    plan: &UrlPlan,
    hasher: &Hasher,
    key: Option<Key<'_>>,
    buffer: &mut Vec<u8>,
    mut then: impl FnMut(usize, KeyHash),
) -> Result<()> {
    let canonical = canonical(text(key)?, &Canon::default(), buffer)?;
    prefixes(plan, hasher, canonical).enumerate().for_each(|(layer, digest)| then(layer, digest));
    Ok(())
}
