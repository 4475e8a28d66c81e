//! The marks of a batch of keys.

use super::Mark;
use crate::batch::{GROUP, KeySource, hash_rows};
use crate::hash::{Hasher, KeyHash};

/// Writes the mark of every row.
pub fn marks<S: KeySource + ?Sized>(keys: &S, hasher: &Hasher, out: &mut [Mark]) {
    let mut digests = [KeyHash::default(); GROUP];
    for (group, out) in out.chunks_mut(GROUP).enumerate() {
        let digests = &mut digests[..out.len()];
        hash_rows(keys, hasher, group * GROUP, digests);
        out.iter_mut().zip(digests).for_each(|(mark, digest)| *mark = digest.mark());
    }
}
