//! The only place that hashes. A key becomes one 128-bit `KeyHash`; everything below it sees only that.
//!
//! Two functions, named in every file by an id that never changes meaning:
//!   `xxh3`   XXH3-128 (xxHash 0.8 specification), seeded. Same digest on every machine, in every
//!            language that has XXH3.
//!   `keyed`  SipHash-1-3 with a 128-bit result and a secret. For keys an attacker may choose: who knows
//!            the seed of a plain hash can fill chosen cells (specification 10.5).
//!
//! Three key domains, so that `5` never equals `"5"`: text/bytes, integers >= 0, integers < 0.
//! Integers are hashed as eight little-endian bytes. In `xxh3` a domain changes the seed, in `keyed`
//! it is the first byte hashed.

use crate::error::{Error, Result};
use siphasher::sip128::{Hasher128, SipHasher13};
use std::hash::Hasher as _;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// Seed change for integers >= 0 (the 64-bit golden ratio).
const UINT_DOMAIN: u64 = 0x9E37_79B9_7F4A_7C15;
/// Seed change for integers < 0 (an odd constant unrelated to the first).
const NEGATIVE_DOMAIN: u64 = 0xD1B5_4A32_D192_ED03;

/// Seed change for each step of a salt (odd, unrelated to the others).
const SALT_STEP: u64 = 0x8CB9_2BA7_2F3D_8DD7;

/// A key's digest. `h1` is the low half of the 128-bit value, `h2` the high half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)] // vectors of them are read by lanes
pub struct KeyHash {
    /// Low 64 bits: chooses the block, or the first position.
    pub h1: u64,
    /// High 64 bits: chooses the bits inside a block, or the step.
    pub h2: u64,
}

impl KeyHash {
    fn from_u128(value: u128) -> Self {
        KeyHash { h1: value as u64, h2: (value >> 64) as u64 }
    }

    /// The digest as one number.
    pub fn as_u128(self) -> u128 {
        (u128::from(self.h2) << 64) | u128::from(self.h1)
    }

    /// The next 128 bits for derivations that need more than one digest: XXH3-128 of the digest's
    /// sixteen bytes, seeded by the extension's number. Two keys with equal digests are one key to
    /// us anyway, so hashing the digest loses nothing against hashing the key again.
    #[inline(always)]
    pub fn extend(self, number: u64) -> Self {
        KeyHash::from_u128(xxh3_128_with_seed(&self.as_u128().to_le_bytes(), number))
    }
}

impl std::ops::BitXor for KeyHash {
    type Output = KeyHash;

    #[inline(always)]
    fn bitxor(self, other: KeyHash) -> KeyHash {
        KeyHash { h1: self.h1 ^ other.h1, h2: self.h2 ^ other.h2 }
    }
}

/// Which hash function a filter uses, with its seed or secret. Part of what must match in a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hasher {
    /// XXH3-128 with a seed.
    Xxh3 {
        /// Any number; equal seeds give equal filters.
        seed: u64,
    },
    /// SipHash-1-3-128 with a secret.
    Keyed {
        /// Must stay unknown to whoever chooses the keys.
        secret: [u8; 16],
    },
}

impl Hasher {
    /// The name users and files know it by.
    pub fn name(&self) -> &'static str {
        match self {
            Hasher::Xxh3 { .. } => "xxh3",
            Hasher::Keyed { .. } => "keyed",
        }
    }

    /// The seed; zero for the keyed function, which has a secret instead.
    pub fn seed(&self) -> u64 {
        match self {
            Hasher::Xxh3 { seed } => *seed,
            Hasher::Keyed { .. } => 0,
        }
    }

    /// As files have it: the function's id, its seed, and its secret.
    pub(crate) fn parts(&self) -> (u8, u64, [u8; 16]) {
        match *self {
            Hasher::Xxh3 { seed } => (1, seed, [0; 16]),
            Hasher::Keyed { secret } => (2, 0, secret),
        }
    }

    /// What `parts` gave.
    pub(crate) fn from_parts(id: u8, seed: u64, secret: [u8; 16]) -> Result<Self> {
        match id {
            1 => Ok(Hasher::Xxh3 { seed }),
            2 => Ok(Hasher::Keyed { secret }),
            _ => Err(Error::Field { name: "hash", got: id.to_string() }),
        }
    }

    /// Hashes text or bytes.
    #[inline(always)]
    pub fn bytes(&self, key: &[u8]) -> KeyHash {
        match self {
            Hasher::Xxh3 { seed } => KeyHash::from_u128(xxh3_128_with_seed(key, *seed)),
            Hasher::Keyed { secret } => keyed(secret, 0, key),
        }
    }

    /// Hashes text or bytes by a function that differs for every salt; the one of zero is `bytes`.
    #[inline(always)]
    pub fn salted(&self, key: &[u8], salt: u64) -> KeyHash {
        match self {
            Hasher::Xxh3 { seed } => {
                let seed = seed ^ salt.wrapping_mul(SALT_STEP);
                KeyHash::from_u128(xxh3_128_with_seed(key, seed))
            }
            Hasher::Keyed { secret } if salt == 0 => keyed(secret, 0, key),
            Hasher::Keyed { secret } => keyed(secret, 0, key).extend(salt),
        }
    }

    /// Hashes an integer >= 0.
    #[inline(always)]
    pub fn unsigned(&self, key: u64) -> KeyHash {
        let bytes = key.to_le_bytes();
        match self {
            Hasher::Xxh3 { seed } => {
                KeyHash::from_u128(xxh3_128_with_seed(&bytes, seed ^ UINT_DOMAIN))
            }
            Hasher::Keyed { secret } => keyed(secret, 1, &bytes),
        }
    }

    /// Hashes a signed integer; those >= 0 are the same keys as in `unsigned`.
    #[inline(always)]
    pub fn signed(&self, key: i64) -> KeyHash {
        if key >= 0 {
            return self.unsigned(key as u64);
        }
        let bytes = key.to_le_bytes();
        match self {
            Hasher::Xxh3 { seed } => {
                KeyHash::from_u128(xxh3_128_with_seed(&bytes, seed ^ NEGATIVE_DOMAIN))
            }
            Hasher::Keyed { secret } => keyed(secret, 2, &bytes),
        }
    }

    /// Refuses to go on when `other` hashes differently.
    pub fn require_same(&self, other: &Hasher) -> Result<()> {
        match (self, other) {
            (Hasher::Xxh3 { seed: a }, Hasher::Xxh3 { seed: b }) if a != b => {
                Err(Error::incompatible("seed", a, b))
            }
            // Secrets are never printed.
            (Hasher::Keyed { secret: a }, Hasher::Keyed { secret: b }) if a != b => {
                Err(Error::incompatible("secret", "one secret", "another"))
            }
            (a, b) if a.name() != b.name() => Err(Error::incompatible("hash", a.name(), b.name())),
            _ => Ok(()),
        }
    }
}

fn keyed(secret: &[u8; 16], domain: u8, key: &[u8]) -> KeyHash {
    let mut hasher = SipHasher13::new_with_key(secret);
    hasher.write(&[domain]);
    hasher.write(key);
    let digest = hasher.finish128();
    KeyHash { h1: digest.h1, h2: digest.h2 }
}
