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
use crate::url::Cutter;

/// The number by which an address is extended for X, so that X and the last layer, which hold the same
/// address, have unrelated cells and err independently.
const WHOLE: u64 = u64::MAX;

impl Bind {
    /// What a layer holds, from what the layer above does and the segment.
    #[inline(always)]
    fn next(self, above: KeyHash, hasher: &Hasher, segment: &[u8], depth: u64) -> KeyHash {
        let segment = hasher.salted(segment, if self == Bind::SaltedXor { depth } else { 0 });
        match self {
            Bind::SaltedXor => above ^ segment,
            Bind::Ordered => (above ^ segment).extend(0),
            Bind::Xor => segment,
        }
    }
}

/// A URL's digests, one for each of its segments.
pub(super) struct Address {
    digests: [KeyHash; MAX_LAYERS],
}

impl Address {
    pub(super) fn new() -> Self {
        Address { digests: [KeyHash::default(); MAX_LAYERS] }
    }

    /// What each layer holds of a URL as it stands anywhere, from the root on; refuses what is none.
    pub(super) fn of(&mut self, plan: &UrlPlan, hasher: &Hasher, url: &[u8]) -> Result<&[KeyHash]> {
        let mut depth = 0;
        read(plan, hasher, Some(Key::Bytes(url)), &mut Cutter::default(), |layer, digest| {
            self.digests[layer] = digest;
            depth = layer + 1;
        })?;
        Ok(&self.digests[..depth])
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

/// Hands out the digests of a row, layer by layer, after the whole row was found to be a URL.
#[inline(always)]
pub(super) fn read(
    plan: &UrlPlan,
    hasher: &Hasher,
    key: Option<Key<'_>>,
    cutter: &mut Cutter,
    mut then: impl FnMut(usize, KeyHash),
) -> Result<()> {
    let mut above = KeyHash::default();
    let segments = cutter.cut(text(key)?, plan.max_layers as usize)?;
    for (layer, segment) in segments.enumerate() {
        above = plan.bind.next(above, hasher, segment, layer as u64 + 1);
        then(layer, above);
    }
    Ok(())
}
