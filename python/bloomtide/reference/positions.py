"""From the 128-bit digest of a key to its cells: three derivations and two blocked layouts.

The digest is one integer; its low 64 bits are h1 and its high 64 bits are h2.

classic   `double`    A. Kirsch, M. Mitzenmacher, "Less Hashing, Same Performance", ESA 2006:
                      g_i = x + i y.
          `enhanced`  after P. Dillinger, P. Manolios, "Bloom Filters in Probabilistic
                      Verification", FMCAD 2004, who go on from double to triple hashing:
                      g_i = x + C(i,1) y + C(i,2) z + C(i,3) w. Two start values make m^2 sets of
                      cells, so an absent key has all cells of a present one with chance n/m^2,
                      too much for a small filter with a tiny error; four make m^4.
          `slices`    Beach Software, "Web Caching with Dynamic Content", 2000, "How it works":
                      the next log2(m) bits of the hash, as often as the phase says.
blocked   all cells of a key in one block: F. Putze, P. Sanders, J. Singler, "Cache-, Hash- and
          Space-Efficient Bloom Filters", WEA 2007. A block is 512 bits, or 128 counters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import comb

WORD = 2**64 - 1
BLOCK_BITS = 512
WORD_BITS = 64
BLOCK_COUNTERS = 128

Rehash = Callable[[bytes, int], int]
"""(bytes, seed) -> 128-bit digest: XXH3-128."""


def halves(digest: int) -> tuple[int, int]:
    """(h1, h2): the low and the high 64 bits."""
    return digest & WORD, digest >> 64


def reduce(h: int, m: int) -> int:
    """A 64-bit hash spread evenly over 0..m-1: the high word of the product, no division."""
    return (h * m) >> 64


def double(digest: int, m: int, k: int) -> list[int]:
    """x + i y mod m. The step y must reach many cells: odd for m = 2^b, never zero otherwise."""
    x, y = (reduce(half, m) for half in halves(digest))
    if m & (m - 1) == 0:
        y |= 1
    elif y == 0:
        y = 1
    return [(x + i * y) % m for i in range(k)]


def enhanced(digest: int, m: int, k: int) -> list[int]:
    """x + C(i,1) y + C(i,2) z + C(i,3) w mod m: a cubic in i with four random start values."""
    h1, h2 = halves(digest)
    x, y = reduce(h1, m), reduce(h2, m)
    z, w = reduce(h1 * m & WORD, m), reduce(h2 * m & WORD, m)  # from what the first two left over
    return [(x + comb(i, 1) * y + comb(i, 2) * z + comb(i, 3) * w) % m for i in range(k)]


def slices(digest: int, m: int, k: int, rehash: Rehash) -> list[int]:
    """The digest as a little-endian bit string, log2(m) bits at a time from its low end."""
    bits = m.bit_length() - 1
    if m != 2**bits:
        raise ValueError("slices need a power of two")
    if bits == 0:
        return [0] * k
    found: list[int] = []
    for source in _digests(digest, rehash):
        for start in range(0, 128 - bits + 1, bits):  # a slice never spans two digests
            found.append((source >> start) % m)
            if len(found) == k:
                return found
    raise AssertionError("the digests never end")


def _digests(digest: int, rehash: Rehash) -> Iterator[int]:
    """The digest, then the digests of its 16 bytes under the seeds 1, 2, 3, ..."""
    yield digest
    extension = 1
    while True:
        yield rehash(digest.to_bytes(16, "little"), extension)
        extension += 1


def blocked(digest: int, bits: int, k: int) -> list[int]:
    """One bit in each of k of the eight words of one block.

    h1 chooses the block. h2 holds eight 6-bit fields, the bit within each word, and above them the
    word to start from, so that with k < 8 every word of a block fills alike.
    """
    h1, h2 = halves(digest)
    block = reduce(h1, bits // BLOCK_BITS)
    first = (h2 >> 48) & 7 if k < 8 else 0
    words = [(first + i) & 7 for i in range(k)]
    return [block * BLOCK_BITS + w * WORD_BITS + ((h2 >> (6 * w)) & 63) for w in words]


def counter_blocked(digest: int, cells: int, k: int) -> list[int]:
    """One counter in each of the k equal groups of one block; k is 1, 2, 4 or 8.

    h1 chooses the block. h2 is read from its low end: as many bits as name one counter of a group,
    for one group after the other.
    """
    if k not in (1, 2, 4, 8):
        raise ValueError("a block has 1, 2, 4 or 8 groups")
    h1, h2 = halves(digest)
    block = reduce(h1, cells // BLOCK_COUNTERS)
    group = BLOCK_COUNTERS // k
    return [block * BLOCK_COUNTERS + i * group + h2 // group**i % group for i in range(k)]
