"""The spectral Bloom filter: every counter in a field of its own width, next to its neighbours.

Papers   S. Cohen, Y. Matias, "Spectral Bloom Filters", SIGMOD 2003. J. Aguilar-Saborit et al., Data
         & Knowledge Engineering 66, 2008, sections 3.3 and 6.3.
Idea     A base array of N bits, cut into m fields. A counter that outgrows its field takes a bit
         from the nearest field that can spare one; the fields between them move by one place.

             values   7   1  0  2  1
             fields  111|01|0|10|1        7 becomes 8 and needs a fourth bit:
                     1000|1|0|10|1        the field on its right had one to spare

         Where a field starts is found in three steps: CV1 has the start of each group of log N
         counters, CV2 of each chunk of loglog N counters in it, OV of each counter in the chunk.
Differs  Slack is spare high bits inside the fields, spread evenly. N is what the expected stream
         needs and `slack` (the paper's epsilon) times m on top: the paper's N = m + epsilon m has
         no room for counters over one bit. When no field can spare a bit, all fields are laid out
         again with fresh slack; in the paper the counter sticks where it is, and undercounts.
Holds    1. The widths add up to N between two layouts.
         2. No field is narrower than its value, or than one bit.
Prefer   `partitioned.py`: there the nearest spare bit is never far. `dynamic_count.py` for memory:
         the index is larger than the counters.
"""

from __future__ import annotations

from itertools import accumulate
from math import ceil, log2

from bloomtide.reference.policies import LIMIT, CountingModel, Policy, Positions


def width(value: int) -> int:
    """The bits a value needs; even a zero takes one."""
    return max(1, value.bit_length())


class SpectralCells:
    """The base array as a list of field widths and the list of what they hold."""

    def __init__(self, cells: int, base_bits: int, slack: float) -> None:
        self.values = [0] * cells
        self.slack_bits = int(slack * cells)
        self.rebuilds = 0
        self.moved = 0
        self.lay(base_bits + self.slack_bits - cells)

    def lay(self, spare: int) -> None:
        """Give each value the field it needs, and spread the spare bits evenly among them."""
        m = len(self.values)
        self.widths = [
            width(value) + (j + 1) * spare // m - j * spare // m
            for j, value in enumerate(self.values)
        ]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, cell: int) -> int:
        return self.values[cell]

    def __setitem__(self, cell: int, value: int) -> None:
        if self.values[cell] == LIMIT:
            return
        value = min(value, LIMIT)
        while width(value) > self.widths[cell] and self.expand(cell):
            pass
        self.values[cell] = value
        if width(value) > self.widths[cell]:
            self.lay(self.slack_bits)
            self.rebuilds += 1

    def expand(self, cell: int) -> bool:
        """Section 6.3: one bit from the nearest other field with one to spare, left before right.

        l - j + 1 counters are touched if it is on the right, j - l if it is on the left.
        """
        spare = [i for i, v in enumerate(self.values) if i != cell and self.widths[i] > width(v)]
        if not spare:
            return False
        nearest = min(spare, key=lambda i: (abs(i - cell), i))
        self.widths[nearest] -= 1
        self.widths[cell] += 1
        self.rebuilds += 1
        self.moved += nearest - cell + 1 if nearest > cell else cell - nearest
        return True

    def index(self) -> tuple[int, int, list[int], list[int], list[int]]:
        """(counters per group, per chunk, CV1, CV2, OV) as section 3.3 describes them."""
        starts = [0, *accumulate(self.widths)][:-1]
        n = max(4, sum(self.widths))
        group, chunk = ceil(log2(n)), ceil(log2(log2(n)))
        cv1 = starts[::group]
        first = [j - j % group % chunk for j in range(len(self))]  # where the counter's chunk opens
        cv2 = [starts[j] - cv1[j // group] for j in range(len(self)) if first[j] == j]
        ov = [start - starts[opens] for start, opens in zip(starts, first, strict=True)]
        return group, chunk, cv1, cv2, ov

    def locate(self, cell: int) -> int:
        """Where a field starts, in three steps through the index."""
        group, chunk, cv1, cv2, ov = self.index()
        chunks_per_group = ceil(group / chunk)
        in_group = cell % group // chunk
        return cv1[cell // group] + cv2[cell // group * chunks_per_group + in_group] + ov[cell]

    @property
    def entry(self) -> int:
        """What the partition vector keeps beside the pointer: the length of the base array."""
        return sum(self.widths)


class ReferenceSpectralBloomFilter(CountingModel):
    """`cells` counters in `base_bits` bits and slack."""

    store: SpectralCells

    def __init__(
        self,
        positions: Positions,
        cells: int,
        hashes: int,
        *,
        base_bits: int | None = None,
        slack: float = 0.1,
        policy: Policy = "plain",
    ) -> None:
        def lay() -> SpectralCells:
            return SpectralCells(cells, base_bits or cells, slack)

        super().__init__(positions, hashes, policy, lay)
