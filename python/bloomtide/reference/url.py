"""The multi-layer Bloom filter: a filter for each segment of a URL, and one that binds them.

Paper    S. Saha, S. Navale, M. Navandar, "A Multi-Layer Bloom Filter for Duplicated URL Detection",
         after Z. Cen, J. Xu, J. Sun, ICACTE 2010. Algorithms 3 and 4, with LAddr zero at first,
         which the listing forgets, and m a power of two, so that XOR stays below m.
Idea     Layer i holds what stands at depth i. X, the paper's BF_(L+1), says which of them belong
         together: its address is the XOR of the segments' addresses.

             example.org / news / 17        BF_1  example.org
                                            BF_2  news
                                            BF_3  17
                                            X     example.org ^ news ^ 17

Errors   No false negatives; a URL deeper than every layer is certainly absent. The paper multiplies
         the errors of all layers, but a layer helps only if its segment is new at its depth: where
         all of them were seen, only X is left. XOR does not see order, and x ^ x is nothing: h/a/b
         passes X after h/b/a, and x/a/a after x.
Repairs  `ReferenceUrlFilter` binds 128-bit digests instead of cells, and the depth or the order is
         part of the address. Its layers hold prefixes (example.org, example.org/news, ...), bound
         the same way: they tell a directory that was seen from one whose parts were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from bloomtide.reference.bloom import ReferenceBloomFilter
from bloomtide.reference.positions import Rehash

WHOLE = 2**64 - 1
"""X's seed: X and the deepest layer hold the same address, and shall not err together."""
SALT_STEP = 0x8CB9_2BA7_2F3D_8DD7
"""How much two neighbouring depths differ, before they are XORed with the filter's seed."""


def segments(url: bytes, max_layers: int) -> list[bytes]:
    """Of a canonical URL: its host, then its path cut at "/"; the query stays with the last one.

    The paper drops http:// and https://; any other scheme is a part of the first segment. What is
    deeper than `max_layers` is one segment, the last.
    """
    scheme, _, address = url.partition(b"://")
    path, mark, query = address.partition(b"?")
    found = path.split(b"/", max_layers - 1)
    found[-1] += mark + query
    if scheme not in (b"http", b"https"):
        found[0] = scheme + b"://" + found[0]
    return found


class ReferenceMultiLayerBloomFilter:
    """To the letter: every layer and X have `bits` cells, and a segment sets `hashes` of them."""

    def __init__(
        self,
        positions: Callable[[bytes], Sequence[int]],
        bits: int,
        hashes: int,
        max_layers: int = 64,
    ) -> None:
        if bits & (bits - 1):
            raise ValueError("XOR needs a power of two")
        self.positions = positions
        self.bits = bits
        self.hashes = hashes
        self.max_layers = max_layers
        self.clear()

    def clear(self) -> None:
        """Forget every URL. Layers come with the URLs that need them."""
        self.layers: list[list[bool]] = []
        self.x = [False] * self.bits

    def add(self, url: bytes) -> bool:
        """Algorithm 3; True iff the URL was certainly absent."""
        absent = url not in self
        bound = [0] * self.hashes
        for depth, segment in enumerate(segments(url, self.max_layers)):
            if depth == len(self.layers):
                self.layers.append([False] * self.bits)
            for j, position in enumerate(self.positions(segment)):
                self.layers[depth][position] = True
                bound[j] ^= position
        for position in bound:
            self.x[position] = True
        return absent

    def __contains__(self, url: bytes) -> bool:
        """Algorithm 4: every segment at its depth, then X."""
        bound = [0] * self.hashes
        for depth, segment in enumerate(segments(url, self.max_layers)):
            if depth == len(self.layers):
                return False
            for j, position in enumerate(self.positions(segment)):
                if not self.layers[depth][position]:
                    return False
                bound[j] ^= position
        return all(self.x[position] for position in bound)

    def seen_prefix(self, url: bytes, depth: int) -> bool:
        """Whether each of the first segments was seen at its depth, in whatever URLs."""
        parts = segments(url, self.max_layers)[:depth]
        return len(parts) <= len(self.layers) and all(
            layer[position]
            for layer, segment in zip(self.layers, parts, strict=False)
            for position in self.positions(segment)
        )

    def merge(self, other: ReferenceMultiLayerBloomFilter) -> None:
        """OR of every layer and of X; who has fewer layers gets those of the other."""
        while len(self.layers) < len(other.layers):
            self.layers.append([False] * self.bits)
        pairs = [*zip(self.layers, other.layers, strict=False), (self.x, other.x)]
        for mine, theirs in pairs:
            mine[:] = [a or b for a, b in zip(mine, theirs, strict=True)]


class ReferenceUrlFilter:
    """Repaired. `size_of(depth)` gives the (bits, hashes) of a layer; depth 0 stands for X."""

    def __init__(
        self,
        digest: Rehash,
        positions: Callable[[int, int], Sequence[int]],
        size_of: Callable[[int], tuple[int, int]],
        bind: Literal["salted_xor", "ordered"] = "salted_xor",
        max_layers: int = 8,
        seed: int = 0,
    ) -> None:
        self.digest = digest
        self.seed = seed
        self.positions = positions
        self.size_of = size_of
        self.bind = bind
        self.max_layers = max_layers
        self.clear()

    def clear(self) -> None:
        """Forget every URL. Layers come with the URLs that need them."""
        self.layers: list[ReferenceBloomFilter] = []
        self.x = self.empty(0)

    def empty(self, depth: int) -> ReferenceBloomFilter:
        """A layer, or X at depth 0, whose keys are addresses."""
        return ReferenceBloomFilter(
            lambda address: self.positions(address, depth), *self.size_of(depth)
        )

    def mixed(self, address: int, seed: int) -> int:
        """Another address, that differs for every seed."""
        return self.digest(address.to_bytes(16, "little"), seed)

    def addresses(self, url: bytes) -> list[int]:
        """Of the prefixes, from the host to the whole URL.

        `salted_xor` is the paper's XOR, of digests by a function of each depth's own. `ordered`
        mixes what there is with every segment, so that what came first was mixed most often.
        """
        found: list[int] = []
        address = 0
        for depth, segment in enumerate(segments(url, self.max_layers), start=1):
            if self.bind == "salted_xor":
                salt = depth * SALT_STEP % 2**64
                address ^= self.digest(segment, self.seed ^ salt)
            else:
                address = self.mixed(address ^ self.digest(segment, self.seed), 0)
            found.append(address)
        return found

    def add(self, url: bytes) -> bool:
        """Every prefix to its layer and the whole to X; True iff the URL was certainly absent."""
        absent = url not in self
        addresses = self.addresses(url)
        while len(self.layers) < len(addresses):
            self.layers.append(self.empty(len(self.layers) + 1))
        for layer, address in zip(self.layers, addresses, strict=False):
            layer.add(address)
        self.x.add(self.mixed(addresses[-1], WHOLE))
        return absent

    def add_many(self, urls: Iterable[bytes]) -> list[bool]:
        """Add the URLs in order."""
        return [self.add(url) for url in urls]

    def __contains__(self, url: bytes) -> bool:
        """Absent if one layer says so, or X."""
        addresses = self.addresses(url)
        return (
            len(addresses) <= len(self.layers)
            and all(a in layer for layer, a in zip(self.layers, addresses, strict=False))
            and self.mixed(addresses[-1], WHOLE) in self.x
        )

    def contains_many(self, urls: Iterable[bytes]) -> list[bool]:
        """Ask for the URLs in order."""
        return [url in self for url in urls]

    def seen_prefix(self, url: bytes, depth: int) -> bool:
        """Whether some URL begins with the first `depth` segments of this one.

        The layer of that depth knows; those above must have the shorter prefixes too.
        """
        prefixes = self.addresses(url)[:depth]
        return len(prefixes) <= len(self.layers) and all(
            address in layer for layer, address in zip(self.layers, prefixes, strict=False)
        )

    def merge(self, other: ReferenceUrlFilter) -> None:
        """Every layer and X of both; who has fewer layers gets those of the other."""
        while len(self.layers) < len(other.layers):
            self.layers.append(self.empty(len(self.layers) + 1))
        for mine, theirs in zip(self.layers, other.layers, strict=False):
            mine.merge(theirs)
        self.x.merge(other.x)
