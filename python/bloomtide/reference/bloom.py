"""The Bloom filter: a set that may wrongly say "present" and never wrongly "absent".

Paper    B. H. Bloom, "Space/Time Trade-offs in Hash Coding with Allowable Errors", CACM 13(7), 1970
         (method 2). Beach Software, "Web Caching with Dynamic Content", 2000: sections "How it
         works" and "Tuning the Bloom filter", whose words *saturation* and *phase* are kept here.
Idea     A key sets k cells; it is present iff all of its k cells are set.

             positions(key) = 1, 3, 6        cells  . # . # . . # .

Prefer   `ReferenceCountingBloomFilter` to remove, `ReferenceScalableBloomFilter` to grow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any


class ReferenceBloomFilter:
    """`bits` cells, of which each key sets the `hashes` ones that `positions(key)` names."""

    def __init__(self, positions: Callable[[Any], Sequence[int]], bits: int, hashes: int) -> None:
        self.positions = positions
        self.bits = bits
        self.hashes = hashes
        self.cells = [False] * bits

    def add(self, key: Any) -> bool:
        """Set the key's cells; True iff the key was certainly absent, so one cell was not set."""
        absent = key not in self
        for position in self.positions(key):
            self.cells[position] = True
        return absent

    def add_many(self, keys: Iterable[Any]) -> list[bool]:
        """Add the keys in order."""
        return [self.add(key) for key in keys]

    def __contains__(self, key: Any) -> bool:
        """Beach, "How it works": one cell that is not set proves that the key was never added."""
        return all(self.cells[position] for position in self.positions(key))

    def contains_many(self, keys: Iterable[Any]) -> list[bool]:
        """Ask for the keys in order."""
        return [key in self for key in keys]

    def merge(self, other: ReferenceBloomFilter) -> None:
        """Cell-wise OR: exactly the filter of both streams joined."""
        self.cells = [a or b for a, b in zip(self.cells, other.cells, strict=True)]

    def intersect(self, other: ReferenceBloomFilter) -> None:
        """Cell-wise AND: has every key of both, and more false positives than a filter of them."""
        self.cells = [a and b for a, b in zip(self.cells, other.cells, strict=True)]

    def copy(self) -> ReferenceBloomFilter:
        """A second filter with the same cells."""
        twin = ReferenceBloomFilter(self.positions, self.bits, self.hashes)
        twin.cells = list(self.cells)
        return twin

    def clear(self) -> None:
        """Forget every key."""
        self.cells = [False] * self.bits

    @property
    def saturation(self) -> float:
        """Beach, "Tuning the Bloom filter": the share of cells that are set."""
        return sum(self.cells) / self.bits

    @property
    def phase(self) -> int:
        """Beach, "Tuning the Bloom filter": how many cells each key sets."""
        return self.hashes

    def false_positive_rate(self) -> float:
        """Beach's one equation: False_Positive = Saturation ^ Phase, for independent positions."""
        return self.saturation**self.phase

    def estimated_items(self) -> float:
        """Distinct keys inside, n = -(m/k) ln(1 - saturation).

        It solves the expected fill, 1 - e^(-kn/m) after n keys, for n.
        """
        if all(self.cells):
            return math.inf
        return -self.bits / self.hashes * math.log1p(-self.saturation)
