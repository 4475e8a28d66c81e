"""One MBF of the paper over whole arrays of keys: the reference model with NumPy.

The model in plain Python takes minutes for 10 rows of 10,000 events; the tests compare the two cell
by cell. Keys are numbers, and the gate and the matrix have positions of their own: the paper
multiplies their errors, which needs that.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bloomtide.reference.history import Sizes

Numbers = npt.NDArray[np.int64]
Cells = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]

GATE, MATRIX = 1 << 20, 2 << 20
"""Seeds; a function of its own for each of the k."""


def positions(keys: Numbers, cells: int, hashes: int, seed: int) -> Numbers:
    """A row for each key: independent functions with the seeds seed, seed + 1, ..."""
    words = keys.astype(np.uint64)
    columns = [(_mix(words, seed + j) % np.uint64(cells)).astype(np.int64) for j in range(hashes)]
    return np.stack(columns, axis=1)


def _mix(words: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.uint64]:
    z = words + np.uint64((seed + 1) * 0x9E37_79B9_7F4A_7C15 % 2**64)
    for _ in range(2):  # once leaves neighbouring numbers a little alike
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
        z = z ^ (z >> np.uint64(31))
    return z


class Segment:
    """A gate and its rows. Counters do not overflow: the paper leaves that out, too."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.gate: Bits = np.zeros(sizes.m1, dtype=bool)
        self.rows: list[Cells] = []

    def add_row(self, keys: Numbers) -> None:
        """A window with these events."""
        sizes = self.sizes
        self.gate[positions(keys, sizes.m1, sizes.k1, GATE)] = True
        places = np.sort(positions(keys, sizes.m2, sizes.k2, MATRIX), axis=1)
        once = np.ones(places.shape, dtype=bool)
        once[:, 1:] = places[:, 1:] != places[:, :-1]
        self.rows.append(np.bincount(places[once], minlength=sizes.m2))

    def passes(self, keys: Numbers) -> Bits:
        """What the gate says."""
        places = positions(keys, self.sizes.m1, self.sizes.k1, GATE)
        passed: Bits = np.all(self.gate[places], axis=1)
        return passed

    def counts(self, keys: Numbers) -> Cells:
        """What each row says, gate or not: a column for each row."""
        places = positions(keys, self.sizes.m2, self.sizes.k2, MATRIX)
        return np.stack([row[places].min(axis=1) for row in self.rows], axis=1)

    def merge_rows(self) -> None:
        """Compression 1."""
        pairs = [self.rows[i : i + 2] for i in range(0, len(self.rows), 2)]
        self.rows = [pair[0] + pair[1] if len(pair) == 2 else pair[0] for pair in pairs]

    def join(self, later: Segment) -> None:
        """Compression 2."""
        self.gate |= later.gate
        self.rows += later.rows

    def bits(self) -> int:
        """The gate, and counters wide enough for the largest one."""
        widest = max(int(row.max()) for row in self.rows).bit_length()
        return len(self.gate) + len(self.rows) * self.sizes.m2 * widest
