"""The dynamic count filter: counters in two vectors, of which the upper one widens when it must.

Paper    J. Aguilar-Saborit, P. Trancoso, V. Muntes-Mulero, J. Larriba-Pey, "Dynamic Count Filters",
         SIGMOD Record 35(1), 2006; Data & Knowledge Engineering 66, 2008, section 3.4.
Idea     CBFV has x bits per counter, enough for the mean; OFV has y bits for what overflows, the
         same y for every counter, no bits at all in the beginning.

             value = OF 2^x + C            x = 8, value 1026:    OF = 4    C = 2

         An overflow that does not fit y bits rebuilds the OFV, one field for each cell. So does
         giving bits back; when to do that is read from a table of levels, kept up to date with
         every change. Level l holds the counters whose OF has l bits, each *below* or *above*

             T_l = 2^(x+l-1) (1 + s)   for l >= 1,        T_0 = s (2^x - 1),        0 <= s <= 1

         The OFV may lose a bit when the top level is empty and nothing of the next is above.
Differs  The threshold is lost in the papers; this one is from a public implementation (J. Meng,
         2007). s = 1 gives a bit back at once, so a counter that goes up and down across a power
         of two rebuilds every time; s = 0 always keeps a bit in reserve.
Holds    1. Values are those of counters without a limit (until 64 bits: then stuck).
         2. The level table equals a recount.
         3. bitlen(max OF) <= y <= bitlen(max OF) + 1 after every change.
Prefer   `partitioned.py`: here one hot counter widens all the others.
"""

from __future__ import annotations

from bloomtide.reference.policies import LIMIT, CountingModel, Policy, Positions


class DynamicCells:
    """CBFV, OFV and the level table."""

    def __init__(self, cells: int, counter_bits: int, shrink: float) -> None:
        self.x = counter_bits
        self.y = 0
        self.shrink = shrink
        self.cbfv = [0] * cells
        self.ofv = [0] * cells
        self.levels = {0: {"below": 0, "above": 0}}
        level, side = self.level_of(0)
        self.levels[level][side] = cells
        self.rebuilds = 0

    def threshold(self, level: int) -> float:
        """T_l: a counter of this level at or over it keeps the level above from being given up."""
        if level == 0:
            return self.shrink * ((1 << self.x) - 1)
        return (1 << self.x + level - 1) * (1 + self.shrink)

    def level_of(self, value: int) -> tuple[int, str]:
        """The entry of the table that counts this value."""
        level = (value >> self.x).bit_length()
        return level, "above" if value >= self.threshold(level) else "below"

    def __len__(self) -> int:
        return len(self.cbfv)

    def __getitem__(self, cell: int) -> int:
        return (self.ofv[cell] << self.x) + self.cbfv[cell]

    def __setitem__(self, cell: int, value: int) -> None:
        old, value = self[cell], min(value, LIMIT)
        if old == LIMIT:
            return
        overflow, rest = divmod(value, 2**self.x)
        if overflow.bit_length() > self.y:
            self.rebuild(overflow.bit_length())
        self.ofv[cell], self.cbfv[cell] = overflow, rest
        for moved, by in ((old, -1), (value, +1)):
            level, side = self.level_of(moved)
            self.levels[level][side] += by
        if value < old:
            self.give_back()

    def give_back(self) -> None:
        """Drop as many bits as the table allows; a large removal may allow several at once."""
        y = self.y
        while y > 0 and not any(self.levels[y].values()) and not self.levels[y - 1]["above"]:
            y -= 1
        if y < self.y:
            self.rebuild(y)

    def rebuild(self, y: int) -> None:
        """Lay the OFV out again with y bits per counter: all m fields are copied."""
        fresh = {"below": 0, "above": 0}
        self.levels = {level: self.levels.get(level, dict(fresh)) for level in range(y + 1)}
        self.y = y
        self.rebuilds += 1

    @property
    def entry(self) -> int:
        """What the partition vector keeps beside the pointer: y."""
        return self.y

    @property
    def bits(self) -> int:
        """m (x + y)."""
        return len(self) * (self.x + self.y)


class ReferenceDynamicCountFilter(CountingModel):
    """`cells` counters of `counter_bits` (x) bits and as many (y) more as the largest needs."""

    store: DynamicCells

    def __init__(
        self,
        positions: Positions,
        cells: int,
        hashes: int,
        *,
        counter_bits: int,
        shrink: float = 0.5,
        policy: Policy = "plain",
    ) -> None:
        super().__init__(
            positions, hashes, policy, lambda: DynamicCells(cells, counter_bits, shrink)
        )
