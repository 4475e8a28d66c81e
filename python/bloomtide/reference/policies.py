"""How the counters of a key rise and fall, whatever holds them: two policies, one set of verbs.

Papers   S. Cohen, Y. Matias, "Spectral Bloom Filters", SIGMOD 2003: minimum selection ("plain")
         and minimal increase ("conservative"). J. Aguilar-Saborit et al., Data & Knowledge
         Engineering 66, 2008, sections 3.2 to 3.4.
Idea     A count is the smallest counter of the key. A store of counters (`spectral.py`,
         `dynamic_count.py`, `partitioned.py`) reads and writes single cells and knows no key; the
         verbs here know keys and no widths. So all four filters must answer alike.
Errors   Counts are never too small while no counter is stuck and only added keys are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Protocol

LIMIT = 2**64 - 1
"""A counter that reaches this is stuck: no structure counts further."""

Positions = Callable[[Any], Sequence[int]]
Policy = Literal["plain", "conservative"]


class Store(Protocol):
    """Counters by number. Writing makes the room a value needs; a stuck counter takes nothing."""

    def __len__(self) -> int: ...
    def __getitem__(self, cell: int) -> int: ...
    def __setitem__(self, cell: int, value: int) -> None: ...
    @property
    def rebuilds(self) -> int: ...


def distinct(positions: Sequence[int]) -> list[int]:
    """Each position once: a cell that is met twice would rise by two per add."""
    return list(dict.fromkeys(positions))


class CountingModel:
    """The verbs. `make` lays out an empty store."""

    def __init__(
        self,
        positions: Positions,
        hashes: int,
        policy: Policy,
        make: Callable[[], Store],
    ) -> None:
        self.positions = positions
        self.hashes = hashes
        self.policy = policy
        self.make = make
        self.clear()

    def clear(self) -> None:
        """Forget every key."""
        self.store = self.make()

    def add(self, key: Any, count: int = 1) -> bool:
        """Count `count` occurrences; True iff the key was certainly absent before."""
        before = self.count(key)
        for cell in distinct(self.positions(key)):
            if self.policy == "conservative":  # only as far as the new count demands
                self.store[cell] = max(self.store[cell], before + count)
            else:
                self.store[cell] += count
        return before == 0

    def add_many(self, keys: Iterable[Any], counts: Iterable[int] | None = None) -> list[bool]:
        """Add the keys in order."""
        return [self.add(key, count) for key, count in with_counts(keys, counts)]

    def require_plain(self) -> None:
        """Refuse to remove anything under the other policy."""
        if self.policy == "conservative":
            raise TypeError("a counter that was not raised for this key must not be lowered for it")

    def remove(self, key: Any, count: int = 1) -> None:
        """Take `count` occurrences back, or raise and change nothing at all."""
        self.require_plain()
        store, lowered = self.store, distinct(self.positions(key))
        if any(store[cell] < count for cell in lowered):
            raise KeyError(key)
        for cell in lowered:
            store[cell] -= count

    def remove_many(self, keys: Iterable[Any], counts: Iterable[int] | None = None) -> None:
        """Remove the keys in order; the first one that is absent ends it."""
        self.require_plain()
        for key, count in with_counts(keys, counts):
            self.remove(key, count)

    def change_many(self, keys: Iterable[Any], changes: Iterable[int]) -> list[int]:
        """Add, remove (below zero) or ask (zero), in order; the counts after each."""
        counts = []
        for key, change in zip(keys, changes, strict=True):
            if change > 0:
                self.add(key, change)
            elif change < 0:
                self.remove(key, -change)
            counts.append(self.count(key))
        return counts

    def count(self, key: Any) -> int:
        """The smallest counter."""
        return min(self.store[cell] for cell in self.positions(key))

    def count_many(self, keys: Iterable[Any]) -> list[int]:
        """Count the keys in order."""
        return [self.count(key) for key in keys]

    def __contains__(self, key: Any) -> bool:
        """Present iff no counter is zero."""
        return self.count(key) > 0

    def contains_many(self, keys: Iterable[Any]) -> list[bool]:
        """Ask for the keys in order."""
        return [key in self for key in keys]

    def merge(self, other: CountingModel) -> None:
        """Cell-wise addition: for "plain" exactly the filter of both streams joined."""
        for cell in range(len(self.store)):
            self.store[cell] += other.store[cell]

    @property
    def cells(self) -> list[int]:
        """Every counter."""
        return [self.store[cell] for cell in range(len(self.store))]

    @property
    def saturated(self) -> int:
        """How many counters are stuck."""
        return self.cells.count(LIMIT)

    @property
    def saturation(self) -> float:
        """The share of cells that are not zero."""
        return sum(value > 0 for value in self.cells) / len(self.store)

    @property
    def rebuilds(self) -> int:
        """How often counters were moved to make or give back room."""
        return self.store.rebuilds


def with_counts(keys: Iterable[Any], counts: Iterable[int] | None) -> Iterable[tuple[Any, int]]:
    """Each key with its count, one where none is given."""
    if counts is None:
        return ((key, 1) for key in keys)
    return zip(keys, counts, strict=True)
