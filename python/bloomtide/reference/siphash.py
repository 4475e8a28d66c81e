"""SipHash-c-d with its 128-bit result: the digest of `hash="keyed"` is SipHash-1-3.

Paper    J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012,
         section 2; the longer result (the constants 0xee and 0xdd) is the authors' later addition.
Use      Whoever does not know the 16-byte secret cannot choose keys that fill chosen cells.
"""

from __future__ import annotations

MASK = 2**64 - 1


def _rotate(x: int, bits: int) -> int:
    return (x << bits | x >> (64 - bits)) & MASK


def _round(v0: int, v1: int, v2: int, v3: int) -> tuple[int, int, int, int]:
    """SipRound: the two columns, then the two diagonals."""
    v0 = (v0 + v1) & MASK
    v2 = (v2 + v3) & MASK
    v1 = _rotate(v1, 13) ^ v0
    v3 = _rotate(v3, 16) ^ v2
    v0 = _rotate(v0, 32)
    v2 = (v2 + v1) & MASK
    v0 = (v0 + v3) & MASK
    v1 = _rotate(v1, 17) ^ v2
    v3 = _rotate(v3, 21) ^ v0
    v2 = _rotate(v2, 32)
    return v0, v1, v2, v3


def siphash128(data: bytes, secret: bytes, *, c: int = 1, d: int = 3) -> int:
    """The 128-bit SipHash of `data`: the first 64-bit word of the result is the low half."""
    k0, k1 = (int.from_bytes(secret[i : i + 8], "little") for i in (0, 8))
    v = (
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D ^ 0xEE,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    )
    padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) & 0xFF])
    for start in range(0, len(padded), 8):
        word = int.from_bytes(padded[start : start + 8], "little")
        v = (v[0], v[1], v[2], v[3] ^ word)
        for _ in range(c):
            v = _round(*v)
        v = (v[0] ^ word, v[1], v[2], v[3])
    v = (v[0], v[1], v[2] ^ 0xEE, v[3])
    for _ in range(d):
        v = _round(*v)
    low = v[0] ^ v[1] ^ v[2] ^ v[3]
    v = (v[0], v[1] ^ 0xDD, v[2], v[3])
    for _ in range(d):
        v = _round(*v)
    return low | (v[0] ^ v[1] ^ v[2] ^ v[3]) << 64
