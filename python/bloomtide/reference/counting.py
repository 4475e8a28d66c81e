"""The counting Bloom filter: a counter in each cell, so that keys can be counted and removed.

Papers   L. Fan, P. Cao, J. Almeida, A. Broder, "Summary Cache", IEEE/ACM ToN 8(3), 2000 (counters
         in place of bits). J. Aguilar-Saborit et al., Data & Knowledge Engineering 66, 2008,
         section 3.2 (insert and delete). S. Cohen, Y. Matias, "Spectral Bloom Filters", SIGMOD
         2003 (minimum selection = "plain", minimal increase = "conservative").
Idea     A key raises its cells; its count is the smallest of them.

             positions(key) = 1, 3, 6        cells  0 2 0 1 0 5 1 0        count(key) = 1

Differs  A counter at its largest value is *saturated* and never moves again: lowering one that
         lost count would make other keys vanish. Positions that coincide count once.
Errors   Counts are never too small while nothing saturates and only added keys are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal


class ReferenceCountingBloomFilter:
    """`cells` counters of `counter_bits` bits each."""

    def __init__(
        self,
        positions: Callable[[Any], Sequence[int]],
        cells: int,
        hashes: int,
        *,
        counter_bits: int = 4,
        policy: Literal["plain", "conservative"] = "plain",
    ) -> None:
        self.positions = positions
        self.hashes = hashes
        self.limit = 2**counter_bits - 1
        self.policy = policy
        self.cells = [0] * cells

    def distinct(self, key: Any) -> list[int]:
        """The key's positions, each once: a cell that is met twice would rise by two per add."""
        return list(dict.fromkeys(self.positions(key)))

    def add(self, key: Any, count: int = 1) -> bool:
        """Count `count` occurrences; True iff the key was certainly absent before."""
        before = self.count(key)
        for position in self.distinct(key):
            if self.policy == "plain":  # Aguilar-Saborit, 3.2: every counter of the key rises
                raised = self.cells[position] + count
            else:  # Cohen & Matias, minimal increase: only as far as the new count demands
                raised = max(self.cells[position], before + count)
            self.cells[position] = min(raised, self.limit)
        return before == 0

    def add_many(self, keys: Iterable[Any]) -> list[bool]:
        """Add the keys in order."""
        return [self.add(key) for key in keys]

    def remove(self, key: Any, count: int = 1) -> None:
        """Take `count` occurrences back, or raise and change nothing at all.

        Every cell is checked before the first one changes. Saturated cells stay: nobody knows how
        many occurrences they stand for.
        """
        if self.policy == "conservative":
            raise TypeError("a counter that was not raised for this key must not be lowered for it")
        live = [i for i in self.distinct(key) if self.cells[i] < self.limit]
        if any(self.cells[i] < count for i in live):
            raise KeyError(key)
        for i in live:
            self.cells[i] -= count

    def count(self, key: Any) -> int:
        """The smallest counter: each one holds at least the key's own occurrences."""
        return min(self.cells[position] for position in self.positions(key))

    def count_many(self, keys: Iterable[Any]) -> list[int]:
        """Count the keys in order."""
        return [self.count(key) for key in keys]

    def __contains__(self, key: Any) -> bool:
        """Present iff no counter is zero."""
        return self.count(key) > 0

    def contains_many(self, keys: Iterable[Any]) -> list[bool]:
        """Ask for the keys in order."""
        return [key in self for key in keys]

    def merge(self, other: ReferenceCountingBloomFilter) -> None:
        """Saturating addition.

        "plain": exactly the filter of both streams joined, while that one saturates the same cells.
        "conservative": still never too small, but looser than one filter that saw both streams.
        """
        pairs = zip(self.cells, other.cells, strict=True)
        self.cells = [min(a + b, self.limit) for a, b in pairs]

    def clear(self) -> None:
        """Forget every key."""
        self.cells = [0] * len(self.cells)

    @property
    def saturated(self) -> int:
        """How many counters are stuck at their largest value."""
        return self.cells.count(self.limit)

    @property
    def saturation(self) -> float:
        """The share of cells that are not zero (Beach, "Tuning the Bloom filter")."""
        return sum(cell > 0 for cell in self.cells) / len(self.cells)
