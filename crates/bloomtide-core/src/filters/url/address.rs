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
use crate::url::{Cutter, trimmed};

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

/// The digests of one URL after the other. Neighbours in a list often share a site or a directory, and what a URL
/// shares with the one before it is not hashed again.
pub(super) struct Trail<'k> {
    cutter: Cutter,
    digests: [KeyHash; MAX_LAYERS],
    depth: usize,
    /// The canonical form of the URL before, without its scheme; nothing if it was not given in that form.
    before: &'k [u8],
}

impl<'k> Trail<'k> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Trail {
            cutter: Cutter::default(),
            digests: [KeyHash::default(); MAX_LAYERS],
            depth: 0,
            before: &[],
        }
    }

    /// Starts anew: the next URL shares nothing.
    pub(super) fn forget(&mut self) {
        self.before = &[];
    }

    /// What each layer holds of the latest URL, from the root on.
    #[inline(always)]
    pub(super) fn digests(&self) -> &[KeyHash] {
        &self.digests[..self.depth]
    }

    /// What each layer holds of one URL as it stands anywhere, from the root on; refuses what is none.
    pub(super) fn of(
        &mut self,
        plan: &UrlPlan,
        hasher: &Hasher,
        url: &'k [u8],
    ) -> Result<&[KeyHash]> {
        self.follow(plan, hasher, Some(Key::Bytes(url)))?;
        Ok(self.digests())
    }

    /// Takes the URL of the next row and tells how many layers hold the same of it as of the one before. Refuses
    /// what is none, and changes nothing.
    #[inline(always)]
    pub(super) fn follow(
        &mut self,
        plan: &UrlPlan,
        hasher: &Hasher,
        key: Option<Key<'k>>,
    ) -> Result<usize> {
        let url = text(key)?;
        let cut = self.cutter.cut(url, plan.max_layers as usize)?;
        let same = common_length(self.before, &cut.form[cut.start..]);
        // A segment is the same if the slash after it is, too; the last has none.
        let last = cut.ends.len() - 1;
        let shared = cut.ends[..last].iter().take_while(|end| (**end as usize) < cut.start + same);
        let shared = shared.count();
        let mut above = shared.checked_sub(1).map_or(KeyHash::default(), |at| self.digests[at]);
        for (layer, segment) in (shared..).zip(cut.segments(shared)) {
            above = plan.bind.next(above, hasher, segment, layer as u64 + 1);
            self.digests[layer] = above;
        }
        self.depth = last + 1;
        self.before =
            if cut.plain { &trimmed(url)[cut.start..cut.form.len()] } else { Default::default() };
        Ok(shared)
    }
}

/// How many bytes two texts have in common from their beginning on.
#[inline(always)]
fn common_length(one: &[u8], other: &[u8]) -> usize {
    let most = one.len().min(other.len());
    let mut at = 0;
    while let (Some(a), Some(b)) = (one[at..].first_chunk(), other[at..].first_chunk()) {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differing != 0 {
            return at + differing.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + one[at..most].iter().zip(&other[at..most]).take_while(|(a, b)| a == b).count()
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
