"""The time-decaying Bloom filter: counts that fade, so that a count says how hot a key is now.

Paper    K. Cheng et al., "Time-Decaying Bloom Filters": section 3.1 (the basic filter), equations
         (1) to (4) in 3.2.
Idea     A counting Bloom filter whose counters are all multiplied by lambda (`decay`) whenever an
         epoch of time ends. A cell then holds Y_t = x_t + lambda * Y_(t-1), equation (3), for the
         occurrences x_t of its keys in each epoch; the smallest cell of a key is its decayed sum,
         and (1 - lambda) times that its average count per epoch, equation (4).

             lambda = 1/2     hits of q     8  0  0  4         cell of q     8  4  2  5

Differs  Rounding. The paper multiplies integers and does not say how; rounding down undercounts
         most keys. Cells are fixed point numbers with `fraction_bits` bits behind the point, and
           strict     rounds up: never too small, but the last unit stays for ever
           expiring   the same, but at least one unit less every epoch, and nothing where a unit
                      or less is left: reaches zero, at most 2^-fraction_bits / (1 - lambda) too
                      small
         Laziness. The paper's pass over all cells (`eager=True`) stops everything for as long as it
         takes. Here each block of 128 cells has a stamp, the epoch it was last brought up to, and
         is decayed by lambda^age when it is touched: rounded once instead of `age` times, so
           exact decayed sum  <=  lazy  <=  eager                     (strict)
         Late events. One that is older than the filter's epoch has its weight decayed, rounded up.
Errors   As for counting filters. A cell that once was full is too small from then on; its block
         says so.

Time is a whole number of epochs here: floor((seconds - origin) / epoch).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache
from math import ceil
from typing import Any, Literal

BLOCK = 128
"""Cells that share a stamp."""
ONE = 2**64
"""Powers of lambda are fixed point numbers with 64 bits behind the point."""
SWEPT_BY_ADVANCE = 1024
"""Blocks that `advance` brings up to date, wherever the keys are."""

Rounding = Literal["strict", "expiring"]


def up(value: int, factor: int) -> int:
    """`value * factor` with `factor` in units of 1 / ONE, rounded up."""
    return -(-value * factor // ONE)


@cache
def power(decay: float, age: int) -> int:
    """lambda^age, never rounded down: by squaring, in units of 1 / ONE."""
    square, product = min(ceil(Fraction(decay) * ONE), ONE - 1), ONE
    while age:
        if age & 1:
            product = up(product, square)
        square = up(square, square)
        age >>= 1
    return product


class DecayedSum:
    """The truth that a filter is compared with: equation (1), kept for each key without error."""

    def __init__(self, decay: float) -> None:
        self.decay = Fraction(decay)
        self.sums: dict[Any, tuple[int, Fraction]] = {}

    def add(self, key: Any, epoch: int, count: int = 1) -> None:
        """`count` occurrences in that epoch, which may be an earlier one."""
        last, total = self.sums.get(key, (epoch, Fraction(0)))
        now = max(last, epoch)
        faded = total * self.decay ** (now - last) + count * self.decay ** (now - epoch)
        self.sums[key] = (now, faded)

    def at(self, key: Any, epoch: int) -> Fraction:
        """The sum of lambda^age over all occurrences of the key."""
        last, total = self.sums.get(key, (epoch, Fraction(0)))
        return total * self.decay ** (epoch - last)


class ReferenceTimeDecayingBloomFilter:
    """`cells` fixed point counters of `counter_bits` bits each."""

    def __init__(
        self,
        positions: Callable[[Any], Sequence[int]],
        cells: int,
        hashes: int,
        *,
        decay: float,
        rounding: Rounding = "strict",
        policy: Literal["plain", "conservative"] = "plain",
        counter_bits: int = 32,
        fraction_bits: int = 8,
        eager: bool = False,
    ) -> None:
        self.positions = positions
        self.hashes = hashes
        self.decay = decay
        self.rounding = rounding
        self.policy = policy
        self.limit = 2**counter_bits - 1
        self.one: int = 2**fraction_bits
        self.eager = eager
        self.size = cells
        self.clear()

    def clear(self) -> None:
        """Forget every key, and the time."""
        self.values = [0] * self.size
        self.stamps = [0] * -(-self.size // BLOCK)
        self.full: set[int] = set()
        self.now: int | None = None
        self.late = 0

    # ---- decay

    def faded(self, value: int, age: int) -> int:
        """A cell after `age` epochs, in one step."""
        rounded = up(value, power(self.decay, age))
        if self.rounding == "strict":
            return rounded
        return max(min(rounded, value - age), 0) if rounded > 1 else 0

    def enter(self, epoch: int) -> None:
        """Let the filter's time be `epoch`, if that is later."""
        begin = epoch if self.now is None else self.now
        self.now = max(begin, epoch)
        if self.eager:  # section 3.1: on the start of each new epoch, C_i = lambda * C_i for all i
            for _ in range(begin, self.now):
                self.values = [value and self.faded(value, 1) for value in self.values]

    def touch(self, block: int, epoch: int) -> None:
        """Bring a block up to an epoch, which is not before its stamp unless the block is empty."""
        if self.eager:
            return
        cells = range(block * BLOCK, min((block + 1) * BLOCK, self.size))
        age = epoch - self.stamps[block]
        for cell in cells:
            if age and self.values[cell]:
                self.values[cell] = self.faded(self.values[cell], age)
        self.stamps[block] = epoch

    def advance(self, epoch: int) -> None:
        """Move the time on, and bring some blocks up to it: others in the next epoch."""
        self.enter(epoch)
        assert self.now is not None
        blocks = len(self.stamps)
        for i in range(min(SWEPT_BY_ADVANCE, blocks)):
            self.touch((self.now * SWEPT_BY_ADVANCE + i) % blocks, self.now)

    def sweep(self, first: int) -> None:
        """One add in eight takes another block along, chosen by the key and the epoch."""
        assert self.now is not None
        if (first + self.now) % 8 == 0:
            self.touch((first // BLOCK + self.now) % len(self.stamps), self.now)

    # ---- keys

    def distinct(self, key: Any) -> list[int]:
        """The key's positions, each once."""
        return list(dict.fromkeys(self.positions(key)))

    def add(self, key: Any, count: int = 1, epoch: int | None = None) -> bool:
        """Count occurrences in an epoch (None: the filter's own); True iff the key was absent."""
        self.enter((self.now or 0) if epoch is None else epoch)
        assert self.now is not None
        age = 0 if epoch is None else self.now - epoch
        self.late += age > 0
        weight = up(count * self.one, power(self.decay, age))
        cells = self.distinct(key)
        before = self.settled(cells)
        self.full |= {cell // BLOCK for cell in self.raise_cells(cells, weight)}
        self.sweep(cells[0])
        return before == 0

    def settled(self, cells: Sequence[int]) -> int:
        """The smallest of some cells, after their blocks were brought up to date."""
        assert self.now is not None
        for block in dict.fromkeys(cell // BLOCK for cell in cells):
            self.touch(block, self.now)
        return min(self.values[cell] for cell in cells)

    def raise_cells(self, cells: Sequence[int], weight: int) -> list[int]:
        """Raise cells that are up to date by the policy; those that cannot go so far."""
        before, stuck = min(self.values[cell] for cell in cells), []
        for cell in cells:
            if self.policy == "plain":
                raised = self.values[cell] + weight
            else:  # only as far as the new count demands
                raised = max(self.values[cell], before + weight)
            self.values[cell] = min(raised, self.limit)
            if raised > self.limit:
                stuck.append(cell)
        return stuck

    def add_many(
        self,
        keys: Iterable[Any],
        counts: Iterable[int] | None = None,
        epochs: Iterable[int] | None = None,
    ) -> list[bool]:
        """Add the keys in order."""
        rows = list(keys)
        every_count = [1] * len(rows) if counts is None else counts
        every_epoch = [None] * len(rows) if epochs is None else epochs
        paired = zip(rows, every_count, every_epoch, strict=True)
        return [self.add(key, count, epoch) for key, count, epoch in paired]

    def cell(self, cell: int, epoch: int | None = None) -> int:
        """A cell as of an epoch that is not before the filter's; nothing is changed."""
        if self.now is None or not self.values[cell]:
            return 0
        later = self.now if epoch is None else max(epoch, self.now)
        if not self.eager:
            age = later - self.stamps[cell // BLOCK]
            return self.faded(self.values[cell], age) if age else self.values[cell]
        value = self.values[cell]
        for _ in range(self.now, later):
            value = self.faded(value, 1)
        return value

    def count(self, key: Any, epoch: int | None = None) -> float:
        """The decayed sum: the smallest cell."""
        return min(self.cell(cell, epoch) for cell in self.positions(key)) / self.one

    def rate(self, key: Any, epoch: int | None = None) -> float:
        """The average count per epoch, equation (4); without decay there is none."""
        if self.decay == 1:
            raise ValueError("a filter that does not decay has no rate")
        return (1 - self.decay) * self.count(key, epoch)

    def __contains__(self, key: Any) -> bool:
        """Present iff no cell is zero."""
        return self.count(key) > 0

    def cells(self, epoch: int | None = None) -> list[float]:
        """Every cell."""
        return [self.cell(cell, epoch) / self.one for cell in range(self.size)]

    # ---- whole filters

    def merge(self, other: ReferenceTimeDecayingBloomFilter) -> None:
        """Add the cells of another lazy filter, each block as of the later of its two stamps."""
        assert not self.eager
        assert not other.eager
        for block in range(len(self.stamps)):
            cells = range(block * BLOCK, min((block + 1) * BLOCK, self.size))
            theirs = [other.values[cell] for cell in cells]
            if not any(theirs):
                continue
            stamp = other.stamps[block]
            if any(self.values[cell] for cell in cells):
                stamp = max(stamp, self.stamps[block])
                self.touch(block, stamp)
            self.stamps[block] = stamp
            age = stamp - other.stamps[block]
            for cell, value in zip(cells, theirs, strict=True):
                total = self.values[cell] + (other.faded(value, age) if age else value)
                self.values[cell] = min(total, self.limit)
                if total > self.limit:
                    self.full.add(block)
        self.full |= other.full
        if other.now is not None:
            self.enter(other.now)
