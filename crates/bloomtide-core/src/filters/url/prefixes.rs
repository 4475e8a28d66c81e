//! Counts the distinct prefixes of URLs, depth by depth, exactly: what `layer_sizes` may be made from.

use super::address::Trail;
use super::{Bind, LayerSizes, UrlPlan};
use crate::batch::KeySource;
use crate::error::{Error, Result};
use crate::hash::Hasher;

/// Addresses kept before repeats are taken out.
const ROOM: usize = 1 << 16;

/// The prefixes of some URLs.
#[derive(Debug)]
pub struct PrefixCount {
    plan: UrlPlan,
    /// Of each depth, the addresses; some of them more than once.
    seen: Vec<Vec<u128>>,
    /// Of each depth, how many there may be before repeats are taken out again.
    room: Vec<usize>,
}

impl PrefixCount {
    /// None yet; what is deeper than `max_layers` is joined.
    pub fn new(max_layers: u32) -> Result<Self> {
        // Only the way from a URL to its addresses is used of the plan.
        let plan = UrlPlan {
            capacity: 1,
            error_rate: 0.5,
            max_layers,
            bind: Bind::Ordered,
            layer_sizes: LayerSizes::Uniform,
        };
        Ok(PrefixCount { plan: plan.checked()?, seen: Vec::new(), room: Vec::new() })
    }

    /// Counts more URLs; refuses the first row that is none.
    pub fn add_many(&mut self, keys: &dyn KeySource) -> Result<()> {
        let hasher = Hasher::Xxh3 { seed: 0 };
        let PrefixCount { plan, seen, room } = self;
        let mut trail = Trail::new();
        for row in 0..keys.len() {
            let shared = trail
                .follow(plan, &hasher, keys.key(row))
                .map_err(|error| Error::Row { row, error: Box::new(error) })?;
            for (layer, digest) in trail.digests().iter().enumerate().skip(shared) {
                if layer == seen.len() {
                    seen.push(Vec::new());
                    room.push(ROOM);
                }
                seen[layer].push(digest.as_u128());
                if seen[layer].len() == room[layer] {
                    distinct(&mut seen[layer]);
                    room[layer] = seen[layer].len() * 2 + ROOM;
                }
            }
        }
        Ok(())
    }

    /// How many distinct prefixes each depth has.
    pub fn counts(mut self) -> Vec<u64> {
        self.seen.iter_mut().for_each(distinct);
        self.seen.iter().map(|seen| seen.len() as u64).collect()
    }
}

fn distinct(addresses: &mut Vec<u128>) {
    addresses.sort_unstable();
    addresses.dedup();
}
