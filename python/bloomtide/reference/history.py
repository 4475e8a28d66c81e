"""Multi-Bloom filters: how often a key came between two instants of a long stream.

Paper    Y. Zhang, H. Shen, "Aggregate Queries over Data Streams Based on Multi-Bloom Filters" (in
         Chinese, 2008): definition 3, algorithms 1 and 2, sections 3.3 (errors), 4 (sizes) and 5
         (two compressions).
Idea     The stream is cut into windows. Each window has a row of counters (CBF); a few rows make an
         MBF, with one Bloom filter in front of all its rows; a table tells the time of each MBF.

             MBF_Table      MBF 1  09:00-09:10            MBF 2  09:10-09:20
             gate BF        # . # # . . # .               . # # . . # . .
             CM  CBF_1      2 0 1 5 0 0 1 0   n2 events   ...
                 CBF_2      1 0 0 4 0 0 3 0   n2 events
                 ...        l rows

Repairs  The listings and the text do not agree everywhere; what is done here:
         - Algorithm 1 sets k1 bits of the gate and raises k2 counters (the listing: k2 both times).
         - Algorithm 2 sums only rows of the range (the listing: all rows), over k2 cells (k1), and
           an MBF whose gate says no adds nothing (COUNT = 0 would forget the MBFs before it).
         - Definition 1 is garbled: two times are disjoint iff one ends before the other begins.
         - A counter holds up to n2, so d = ceil(log2(n2 + 1)), not ceil(log2 n2).
         - P_FF is Pr[count > truth]; it is never smaller.
         - Compression 1 does *not* keep the error: min(a + b) >= min(a) + min(b).
         - The open row and the open MBF answer, too.
Ranges   [start, end), as everywhere in bloomtide; rows are what they hold, [first, last]. Of a row
         that lies partly in the range nobody knows where its events are: see `RangeAnswer`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from bloomtide.reference.bloom import ReferenceBloomFilter

Positions = Callable[[Any], Sequence[int]]


@dataclass(frozen=True)
class Sizes:
    """Section 4: what a window of `n2` events, `rows` of them and two error rates need."""

    n2: int
    rows: int
    p_cbf: float
    p_bf: float

    @property
    def n1(self) -> int:
        """Events of an MBF: l = n1 / n2."""
        return self.n2 * self.rows

    @property
    def k2(self) -> int:
        """ceil(log_1/2 P_CBF)."""
        return math.ceil(-math.log2(self.p_cbf))

    @property
    def m2(self) -> int:
        """n2 k2 / ln 2."""
        return math.ceil(self.n2 * self.k2 / math.log(2))

    @property
    def k1(self) -> int:
        """ceil(log_1/2 P_BF)."""
        return math.ceil(-math.log2(self.p_bf))

    @property
    def m1(self) -> int:
        """n1 k1 / ln 2."""
        return math.ceil(self.n1 * self.k1 / math.log(2))

    @property
    def d(self) -> int:
        """Bits of a counter that never overflows."""
        return self.n2.bit_length()


# Section 3.3. `n` is a number of distinct keys; with arrivals in its place they are upper bounds.


def p_filter(m: int, k: int, n: int) -> float:
    """P_BF and P_CBF: (1 - (1 - 1/m)^(k n))^k."""
    return float((1 - (1 - 1 / m) ** (k * n)) ** k)


def p_cm(p_cbf: float, rows: int) -> float:
    """P_CM = 1 - (1 - P_CBF)^l: one of the rows says more than zero. Also P_FF, for a key inside.

    It holds for rows of different keys. Rows of the same keys err together: then it is P_CBF.
    """
    return float(1 - (1 - p_cbf) ** rows)


def p_mbf(p_bf: float, p_of_rows: float) -> float:
    """P_FP = P_BF P_CM, if the gate's positions are independent of the rows'."""
    return p_bf * p_of_rows


@dataclass
class Row:
    """CBF_i: `m2` counters, the time of its first and its last event, how many there were."""

    cells: list[int]
    first: float = math.inf
    last: float = -math.inf
    events: int = 0
    windows: int = 1
    counts: dict[Any, int] = field(default_factory=dict)

    def fill(self) -> float:
        """Share of cells that are not zero."""
        return sum(cell > 0 for cell in self.cells) / len(self.cells)

    def overlaps(self, start: float, end: float) -> bool:
        """One of its events may be in [start, end)."""
        return self.first < end and start <= self.last

    def covered(self, start: float, end: float) -> bool:
        """All of its events are in [start, end)."""
        return start <= self.first and self.last < end

    def share(self, start: float, end: float) -> float:
        """How much of its time is in [start, end), if it is not covered."""
        return (min(end, self.last) - max(start, self.first)) / (self.last - self.first)


@dataclass(frozen=True)
class RangeAnswer:
    """How often: never more than `upper`; `inner` is what whole rows say, so nothing from outside.

    `estimate` adds to `inner` the part of each partial row that its time in the range suggests.
    """

    upper: int
    inner: int
    estimate: float
    rows: int
    partial: int


class ReferenceMultiBloomFilter:
    """One MBF. `policy="largest"` keeps in a cell the largest count of a key instead of the sum."""

    def __init__(
        self,
        gate: tuple[Positions, int, int],
        matrix: tuple[Positions, int, int],
        policy: Literal["plain", "largest"] = "plain",
    ) -> None:
        self.gate = ReferenceBloomFilter(*gate)
        self.positions, self.columns, self.hashes = matrix
        self.policy = policy
        self.rows: list[Row] = []

    def open_row(self) -> None:
        """Append an empty row to CM."""
        self.rows.append(Row([0] * self.columns))

    def cells_of(self, key: Any) -> list[int]:
        """The key's columns, each once: a cell that is met twice would rise by two."""
        return list(dict.fromkeys(self.positions(key)))

    def add(self, key: Any, at: float, count: int = 1) -> None:
        """Algorithm 1, the two inner loops, into the last row."""
        row = self.rows[-1]
        self.gate.add(key)
        row.counts[key] = row.counts.get(key, 0) + count
        for cell in self.cells_of(key):
            if self.policy == "plain":
                row.cells[cell] += count
            else:  # all counts of a row are known until it is closed
                row.cells[cell] = max(row.cells[cell], row.counts[key])
        row.first, row.last = min(row.first, at), max(row.last, at)
        row.events += count

    def close_row(self) -> None:
        """The row is what is kept of its window; the counts are not."""
        self.rows[-1].counts.clear()

    def in_row(self, row: Row, key: Any) -> int:
        """The smallest counter of a row."""
        return min(row.cells[cell] for cell in self.cells_of(key))

    def counts(self, key: Any, start: float, end: float) -> Iterator[tuple[Row, int]]:
        """Algorithm 2, of one MBF: each row of the range, and what it says."""
        passes = key in self.gate
        for row in self.rows:
            if row.overlaps(start, end):
                yield row, self.in_row(row, key) if passes else 0

    @property
    def first(self) -> float:
        """Definition 2: of all its events."""
        return min((row.first for row in self.rows), default=math.inf)

    @property
    def last(self) -> float:
        """Definition 2: of all its events."""
        return max((row.last for row in self.rows), default=-math.inf)

    def predicted_error(self) -> float:
        """P_FF from the fill that is there, not from the one that was planned."""
        right = 1.0
        for row in self.rows:
            right *= 1 - row.fill() ** self.hashes
        return 1 - right

    def bits(self, d: int) -> int:
        """Of the gate and the matrix, with counters of `d` bits."""
        return self.gate.bits + len(self.rows) * self.columns * d

    # ---- section 5

    def merge_rows(self) -> None:
        """Compression 1: rows 2i-1 and 2i become one, cell by cell; a last odd one stays."""
        pairs = [self.rows[i : i + 2] for i in range(0, len(self.rows), 2)]
        self.rows = [_joined(*pair) if len(pair) == 2 else pair[0] for pair in pairs]

    def join(self, later: ReferenceMultiBloomFilter) -> None:
        """Compression 2: the gates are ORed, and the rows of the later MBF appended."""
        self.gate.merge(later.gate)
        self.rows += later.rows


def _joined(a: Row, b: Row) -> Row:
    cells = [x + y for x, y in zip(a.cells, b.cells, strict=True)]
    first, last = min(a.first, b.first), max(a.last, b.last)
    return Row(cells, first, last, a.events + b.events, a.windows + b.windows)


class ReferenceHistory:
    """The stream and its MBF_Table: algorithms 1 and 2. The last MBF is open."""

    def __init__(
        self,
        gate: tuple[Positions, int, int],
        matrix: tuple[Positions, int, int],
        *,
        arrivals: int,
        rows: int,
        policy: Literal["plain", "largest"] = "plain",
    ) -> None:
        self.shape = gate, matrix, policy
        self.arrivals = arrivals
        self.rows = rows
        self.table: list[ReferenceMultiBloomFilter] = []

    def add(self, key: Any, at: float) -> None:
        """Algorithm 1: a row is closed after n2 arrivals, an MBF after l rows."""
        current = self.table[-1] if self.table else None
        full = current is not None and current.rows[-1].events == self.arrivals
        if current is None or (full and len(current.rows) == self.rows):
            current = ReferenceMultiBloomFilter(*self.shape)
            self.table.append(current)
            current.open_row()
        elif full:
            current.open_row()
        current.add(key, at)
        if current.rows[-1].events == self.arrivals:
            current.close_row()

    def count(self, key: Any, start: float, end: float) -> RangeAnswer:
        """Algorithm 2: look for MBFs of the range, then for rows in them."""
        found = [
            answer
            for mbf in self.table
            if mbf.first < end and start <= mbf.last
            for answer in mbf.counts(key, start, end)
        ]
        upper, inner, estimate, partial = 0, 0, 0.0, 0
        for row, count in found:
            upper += count
            if row.covered(start, end):
                inner += count
            else:
                partial += 1
                estimate += count * row.share(start, end)
        return RangeAnswer(upper, inner, inner + estimate, len(found), partial)

    def total(self, start: float, end: float) -> int:
        """Events of all keys in rows of the range: exact where they are covered."""
        rows = (row for mbf in self.table for row in mbf.rows)
        return sum(row.events for row in rows if row.overlaps(start, end))

    def join(self, index: int) -> None:
        """Compression 2 of an MBF and its neighbour; the table has one entry less."""
        self.table[index].join(self.table.pop(index + 1))
