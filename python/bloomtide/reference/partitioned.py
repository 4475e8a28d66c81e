"""Partitioned counting filters: the counters in c pieces, each with widths and rebuilds of its own.

Paper    J. Aguilar-Saborit et al., Data & Knowledge Engineering 66, 2008, sections 4 to 5.1.
Idea     Counter h of m lies in piece K = h div m', at place j = h mod m', with m' = ceil(m / c).
         The partition vector (PV) has one entry per piece: where it is and how wide, that is the
         bits y of its OFV (PDCF) or the bits of its base array (PSBF).

             m = 10, c = 4:    0 1 2 | 3 4 5 | 6 7 8 | 9        PV = [0, 3, 0, 1]

         A hot counter widens its own piece only, and only that piece stands still meanwhile.
Differs  "One partition per operation" cannot hold with d hashes: K is taken for each hash. The
         counters are then exactly those of the filter in one piece, and so is every answer.
         What the paper leaves for later is here as `split`: a piece is cut once more, and its
         entry of the PV becomes a vector of its own.
Holds    Values are those of `spectral.py` and `dynamic_count.py` for every c, before and after
         `repartition` and `split`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from bloomtide.reference.dynamic_count import DynamicCells
from bloomtide.reference.policies import CountingModel, Policy, Positions, Store
from bloomtide.reference.spectral import SpectralCells

Make = Callable[[int], Any]
"""An empty store of so many counters."""


class Partitions:
    """Counters that are spread over stores of `make`; itself a store, so it can be nested."""

    def __init__(self, cells: int, partitions: int, make: Make) -> None:
        self.cells = cells
        self.make = make
        self.size = -(-cells // partitions)  # m'; the last pieces may be smaller, or empty
        starts = [min(i * self.size, cells) for i in range(partitions + 1)]
        self.parts = [make(end - start) for start, end in pairwise(starts)]
        self.earlier = 0

    def find(self, cell: int) -> tuple[Any, int]:
        """The piece K and the place j in it."""
        piece, place = divmod(cell, self.size)
        return self.parts[piece], place

    def __len__(self) -> int:
        return self.cells

    def __getitem__(self, cell: int) -> int:
        part, place = self.find(cell)
        return int(part[place])

    def __setitem__(self, cell: int, value: int) -> None:
        part, place = self.find(cell)
        part[place] = value

    def split(self, partition: int, pieces: int) -> None:
        """Cut one piece again, by the same rule and into stores of the same kind."""
        old = self.parts[partition]
        self.parts[partition] = copy_into(Partitions(len(old), pieces, self.make), old)

    @property
    def rebuilds(self) -> int:
        """Of all pieces, and of those that were there before a new cut."""
        return self.earlier + sum(int(part.rebuilds) for part in self.parts)

    @property
    def vector(self) -> list[Any]:
        """PV: what is kept of each piece; of one that was split, its own vector."""
        return [part.vector if isinstance(part, Partitions) else part.entry for part in self.parts]


def copy_into(empty: Partitions, old: Store) -> Partitions:
    """Bring every counter of `old` into a fresh layout; that itself counts as no rebuild."""
    for cell in range(len(old)):
        empty[cell] = old[cell]
    empty.earlier = old.rebuilds - empty.rebuilds
    return empty


class PartitionedModel(CountingModel):
    """What both partitioned filters add to the verbs."""

    store: Partitions

    def __init__(
        self,
        positions: Positions,
        cells: int,
        hashes: int,
        policy: Policy,
        partitions: int,
        make: Make,
    ) -> None:
        self.partitions = partitions
        super().__init__(
            positions, hashes, policy, lambda: Partitions(cells, self.partitions, make)
        )

    def repartition(self, partitions: int) -> None:
        """Cut all counters into another number of pieces; no value changes."""
        self.partitions = partitions
        self.store = copy_into(Partitions(len(self.store), partitions, self.store.make), self.store)

    @property
    def partition_vector(self) -> list[Any]:
        """PV without the pointers."""
        return self.store.vector


class ReferencePartitionedDynamicCountFilter(PartitionedModel):
    """PDCF: each piece has a CBFV, an OFV and a level table."""

    def __init__(
        self,
        positions: Positions,
        cells: int,
        hashes: int,
        *,
        partitions: int,
        counter_bits: int,
        shrink: float = 0.5,
        policy: Policy = "plain",
    ) -> None:
        def make(count: int) -> DynamicCells:
            return DynamicCells(count, counter_bits, shrink)

        super().__init__(positions, cells, hashes, policy, partitions, make)


class ReferencePartitionedSpectralBloomFilter(PartitionedModel):
    """PSBF: each piece has a base array and an index, and its share of bits and slack."""

    def __init__(
        self,
        positions: Positions,
        cells: int,
        hashes: int,
        *,
        partitions: int,
        base_bits: int | None = None,
        slack: float = 0.1,
        policy: Policy = "plain",
    ) -> None:
        def make(count: int) -> SpectralCells:
            return SpectralCells(count, (base_bits or cells) * count // cells, slack)

        super().__init__(positions, cells, hashes, policy, partitions, make)
