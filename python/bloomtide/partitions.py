"""How many partitions a filter should have: the paper's two models and three closer ones.

Paper    J. Aguilar-Saborit et al., Data & Knowledge Engineering 66, 2008, section 5. A rebuild
         makes requests wait, and they wait in a buffer. More partitions make rebuilds shorter and
         the buffer smaller, but each has an entry in the partition vector (PV).

             buf = t_R freq S_e        the buffer of a filter in one piece, in bytes

    EvenModel             Eq. 3, for even data         F(c) = buf/c + PV c
    SkewModel             Eq. 4, for PDCF as printed   F(c) = buf/c + PV c - c occ csize (1-inn_occ)
    HotCounterModel       h counters far above all     F(c) = buf/c + PV c + (m y/8) (1-(1-1/c)^h)
    LevelModel            h_l with l bits or more      F(c) = buf/c + PV c + (m/8) sum_l of the same
    PausedPartitionModel  the other partitions go on   F(c) = d buf/c^2 + PV c

Every model gives the number of partitions for a filter of so many cells, `choose(cells)`, and what
they cost, `overhead`, in bytes. Which one?

- Eq. 3 lets the whole filter stop during a rebuild. That is the careful reading; with
  `PausedPartitionModel` only requests to the partition that is rebuilt wait.
- Eq. 4 counts one counter saved in each oversized partition. What an oversized partition wastes is
  all its counters, and the share of such partitions falls with their number: `HotCounterModel`
  for a few hot counters of one size, `LevelModel` for a long tail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import pairwise
from math import ceil, expm1, floor, inf, log1p, sqrt

from bloomtide._core import partition_entry_bytes
from bloomtide.errors import require
from bloomtide.plain import plain, with_plain

DYNAMIC_ENTRY_BYTES = partition_entry_bytes("dynamic")
"""PV of `PartitionedDynamicCountFilter`: a version, a pointer, the record of overflow counters."""
SPECTRAL_ENTRY_BYTES = partition_entry_bytes("spectral")
"""PV of `PartitionedSpectralBloomFilter`."""
PAPER_ENTRY_BYTES = 10
"""PV of the paper: a pointer of 8 bytes and a counter of 2 (its Table 3 has 4 and 2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Requests:
    """The stream that meets a rebuild, and the price of a partition."""

    rebuild_seconds: float
    """t_R: how long a rebuild takes with one partition; in proportion to the cells."""
    requests_per_second: float
    """freq."""
    element_bytes: float
    """S_e: bytes of a waiting request."""
    entry_bytes: float = DYNAMIC_ENTRY_BYTES
    """PV: what our dynamic filter takes for one more partition; `SPECTRAL_ENTRY_BYTES` and
    `PAPER_ENTRY_BYTES` are for others."""

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, plain(getattr(self, field.name)))
        for name in ("rebuild_seconds", "requests_per_second"):
            value = getattr(self, name)
            require(name, value, "a finite number of 0 or more", 0 <= value < inf)
        for name in ("element_bytes", "entry_bytes"):
            value = getattr(self, name)
            require(name, value, "a finite number over 0", 0 < value < inf)

    @property
    def buffer_bytes(self) -> float:
        """buf = t_R freq S_e: all that arrives while a filter in one piece is rebuilt."""
        return self.rebuild_seconds * self.requests_per_second * self.element_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EvenModel(_Requests):
    """Eq. 3: every partition is alike, so only the buffer and the vector count."""

    @with_plain
    def overhead(self, partitions: int) -> float:
        """F(c) = buf/c + PV c, in bytes; at the optimum 2 sqrt(buf PV)."""
        return self.buffer_bytes / partitions + self.entry_bytes * partitions

    def optimum(self) -> float:
        """c* = sqrt(t_R freq S_e / PV)."""
        return sqrt(self.buffer_bytes / self.entry_bytes)

    def break_even(self) -> float:
        """c*^2: more partitions than this cost more than one."""
        return self.buffer_bytes / self.entry_bytes

    @with_plain
    def choose(self, cells: int) -> int:
        """The whole number with the least overhead."""
        return _whole(self.optimum(), self.overhead, cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkewModel(_Requests):
    """Eq. 4 as printed: an oversized partition saves the unused part of a counter."""

    oversized_share: float
    """occ: the share of partitions that hot counters widen."""
    counter_bits: float
    """csize: their mean counter size."""
    used_share: float
    """inn_occ: the share of their counter space that is in use."""

    def __post_init__(self) -> None:
        # `super()` without arguments does not find the class that `slots` makes anew.
        _Requests.__post_init__(self)
        for name in ("oversized_share", "used_share"):
            value = getattr(self, name)
            require(name, value, "from 0 to 1", 0 <= value <= 1)
        require("counter_bits", self.counter_bits, "from 1 to 64", 1 <= self.counter_bits <= 64)
        require(
            "entry_bytes",
            self.entry_bytes,
            "over oversized_share x counter_bits / 8 x (1 - used_share), "
            f"here {self.saved_bytes:g}, for equation 4 to have an optimum",
            self.saved_bytes < self.entry_bytes,
            hint="use `HotCounterModel` or `LevelModel`, which always have one",
        )

    @property
    def saved_bytes(self) -> float:
        """occ csize (1 - inn_occ) for each partition; csize is in bits, PV in bytes."""
        return self.oversized_share * self.counter_bits / 8 * (1 - self.used_share)

    @with_plain
    def overhead(self, partitions: int) -> float:
        """F(c) = buf/c + (PV - occ csize (1 - inn_occ)) c, in bytes."""
        return self.buffer_bytes / partitions + (self.entry_bytes - self.saved_bytes) * partitions

    def optimum(self) -> float:
        """c* = sqrt(t_R freq S_e / (PV - occ csize (1 - inn_occ)))."""
        return sqrt(self.break_even())

    def break_even(self) -> float:
        """c*^2: more partitions than this cost more than one."""
        return self.buffer_bytes / (self.entry_bytes - self.saved_bytes)

    @with_plain
    def choose(self, cells: int) -> int:
        """The whole number with the least overhead."""
        return _whole(self.optimum(), self.overhead, cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class HotCounterModel(_Requests):
    """h counters need y more bits, and each gives them to its whole partition.

    One y for all of them. Where a few need many bits and many a few, as in a long tail, the mean
    says too little about a filter in few partitions, and `choose` may settle there: `LevelModel`.
    """

    hot_counters: float
    """h: counters that overflow."""
    extra_bits: float
    """y: the bits they need beyond the others', on average."""

    def __post_init__(self) -> None:
        _Requests.__post_init__(self)
        value = self.hot_counters
        require("hot_counters", value, "a finite number of 0 or more", 0 <= value < inf)
        require("extra_bits", self.extra_bits, "from 0 to 64", 0 <= self.extra_bits <= 64)

    @with_plain
    def overhead(self, partitions: int, cells: int) -> float:
        """F(c) = buf/c + PV c + (m y/8) occ(c), in bytes."""
        widened = cells * self.extra_bits / 8 * oversized_share(partitions, self.hot_counters)
        return self.buffer_bytes / partitions + self.entry_bytes * partitions + widened

    @with_plain
    def optimum(self, cells: int) -> float:
        """c* = sqrt((buf + m y h/8) / PV): right for h much smaller than c*, else too large."""
        widened = cells * self.extra_bits * self.hot_counters / 8
        return sqrt((self.buffer_bytes + widened) / self.entry_bytes)

    @with_plain
    def choose(self, cells: int) -> int:
        """The whole number with the least overhead, searched."""
        return _search(self, cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelModel(_Requests):
    """As many extra bits in a partition as its hottest counter needs; what a level table counts.

    A partition has an l-th extra bit iff one of the counters with l or more is in it, so that the
    sum over l is the memory to be expected, not only its order of magnitude.
    """

    counters_with: tuple[float, ...]
    """h_1, h_2, ...: counters that need at least 1, 2, ... extra bits."""

    def __post_init__(self) -> None:
        _Requests.__post_init__(self)
        own = tuple(map(plain, self.counters_with))
        if any(a is not b for a, b in zip(own, self.counters_with, strict=True)):
            object.__setattr__(self, "counters_with", own)
        known = (inf, *self.counters_with)
        require(
            "counters_with",
            self.counters_with,
            "up to 64 finite numbers of 0 or more, none larger than the one before it",
            len(known) <= 65 and all(0 <= b < inf and b <= a for a, b in pairwise(known)),
        )

    @with_plain
    def overhead(self, partitions: int, cells: int) -> float:
        """F(c) = buf/c + PV c + (m/8) sum over l of 1 - (1 - 1/c)^h_l, in bytes."""
        bits = sum(oversized_share(partitions, hot) for hot in self.counters_with)
        waiting = self.buffer_bytes / partitions
        return waiting + self.entry_bytes * partitions + cells / 8 * bits

    @with_plain
    def optimum(self, cells: int) -> float:
        """c* = sqrt((buf + (m/8) sum of h_l) / PV): right for h_1 much smaller than c*."""
        widened = cells / 8 * sum(self.counters_with)
        return sqrt((self.buffer_bytes + widened) / self.entry_bytes)

    @with_plain
    def choose(self, cells: int) -> int:
        """The whole number with the least overhead, searched."""
        return _search(self, cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class PausedPartitionModel(_Requests):
    """Eq. 3 when only requests to the partition that is rebuilt wait, d in c of all."""

    hashes: int
    """d: the cells, hence partitions, that a request touches."""

    def __post_init__(self) -> None:
        _Requests.__post_init__(self)
        require("hashes", self.hashes, "1 or more", 1 <= self.hashes < inf)

    @with_plain
    def overhead(self, partitions: float) -> float:
        """F(c) = (buf/c) min(1, d/c) + PV c, in bytes."""
        waiting = min(1.0, self.hashes / partitions)
        return self.buffer_bytes / partitions * waiting + self.entry_bytes * partitions

    def optimum(self) -> float:
        """c* = (2 d buf / PV)^(1/3) from d partitions on, Eq. 3 up to d; the better of the two."""
        even = sqrt(self.buffer_bytes / self.entry_bytes)
        paused: float = (2 * self.hashes * self.buffer_bytes / self.entry_bytes) ** (1 / 3)
        valleys = max(1.0, min(even, self.hashes)), max(paused, self.hashes)
        return min(valleys, key=self.overhead)

    @with_plain
    def choose(self, cells: int) -> int:
        """The whole number with the least overhead."""
        return _whole(self.optimum(), self.overhead, cells)


@with_plain
def oversized_share(partitions: int, hot_counters: float) -> float:
    """occ(c) = 1 - (1 - 1/c)^h: the chance that a partition has one of h hot counters."""
    require("partitions", partitions, "1 or more", partitions >= 1)
    if partitions == 1:
        return float(hot_counters > 0)
    # By logarithms: 1 - 1/c loses digits for large c.
    return -expm1(hot_counters * log1p(-1 / partitions))


def _require_cells(cells: int) -> None:
    require("cells", cells, "a whole number, 1 or more", type(cells) is int and cells >= 1)


def _whole(optimum: float, cost: Callable[[int], float], cells: int) -> int:
    """The better of the two whole numbers around the optimum, within 1..cells."""
    _require_cells(cells)
    return min((min(max(1, c), cells) for c in (floor(optimum), ceil(optimum))), key=cost)


def _search(model: HotCounterModel | LevelModel, cells: int) -> int:
    """The number of partitions with the least overhead.

    c^2 F'(c) = PV c^2 - buf - (m y h/8) (1 - 1/c)^(h-1): F falls up to Eq. 3's optimum, where the
    last term would be 0, and rises from the closed form on, where it would be 1. Between the two
    it may have several valleys, all wide on a logarithmic scale: walk there, then look closely.
    """
    _require_cells(cells)

    def cost(partitions: int) -> float:
        return model.overhead(partitions, cells)

    high = min(cells, max(1, ceil(model.optimum(cells))))
    walk = [min(high, max(1, floor(sqrt(model.buffer_bytes / model.entry_bytes))))]
    while walk[-1] < high:
        walk.append(min(high, max(walk[-1] + 1, int(walk[-1] * 1.02))))
    best = min(range(len(walk)), key=lambda i: cost(walk[i]))
    low, high = walk[max(0, best - 1)], walk[min(len(walk) - 1, best + 1)]
    while high - low > 2:  # one valley is left: cut off the third that is on the slope
        third = (high - low) // 3
        if cost(low + third) <= cost(high - third):
            high -= third
        else:
            low += third
    return min(range(low, high + 1), key=cost)
