"""What the filters are compared with: the exact decayed sum, and the paper's eager filter.

F_e = sum over the visits of e of lambda^(epochs since), equation (1). `DecayedSums` keeps it for
all pages in float64, which is exact to 1e-12 here; comparisons allow for `SLACK`.

`EagerFilter` is section 3.1 of the paper: cells, and a pass over all of them at every boundary. How
the pass rounds is a parameter. It shares only the positions of the keys with the core.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from trials.streams import Keys

SLACK = 1e-9
"""Relative: far above what float64 loses, far below a unit of a cell."""

Floats = npt.NDArray[np.float64]
Cells = npt.NDArray[np.uint64]
Pass = Callable[[Floats], Floats]
"""Every cell, in units of 1 / 2^fraction_bits, one epoch later."""


class DecayedSums:
    """Equation (3) for every page: Y_t = x_t + lambda * Y_(t-1)."""

    def __init__(self, pages: int, decay: float) -> None:
        self.decay = decay
        self.sums: Floats = np.zeros(pages)
        self.epoch = 0

    def add_many(self, epoch: int, pages: Keys) -> None:
        """Visits of an epoch, which is not before the last one."""
        self.advance(epoch)
        self.sums += np.bincount(pages, minlength=len(self.sums))

    def advance(self, epoch: int) -> None:
        """Move the time on."""
        self.sums *= self.decay ** (epoch - self.epoch)
        self.epoch = epoch


def undercounts(counts: Floats, true: Floats) -> Floats:
    """By how much each count is too small; 0 where it is not."""
    deficit = true - counts
    return np.where(deficit > SLACK * (1 + true), deficit, 0.0)


def fade_up(values: Cells, decay: float) -> Cells:
    """ceil(lambda * v) for values below 2^32, exact: lambda is a multiple of 2^-64 here.

    The product has 96 bits; `high` and `low` are lambda's upper and lower 32.
    """
    units = int(decay * 2**64)
    high, low = np.uint64(units >> 32), np.uint64(units & 0xFFFF_FFFF)
    rest, half = np.uint64(0xFFFF_FFFF), np.uint64(32)
    product_low = values * low
    product = values * high + (product_low >> half)
    inexact = ((product | product_low) & rest) != 0
    faded: Cells = (product >> half) + inexact
    return faded


class EagerFilter:
    """The basic filter of the paper, with a pass of one's choice."""

    def __init__(
        self, positions: npt.NDArray[np.int64], cells: int, fraction_bits: int, fade: Pass
    ) -> None:
        self.positions = positions
        self.one = float(2**fraction_bits)
        self.fade = fade
        self.values: Floats = np.zeros(cells)
        self.epoch = 0
        # A key raises each of its cells once, also where two of its positions are the same.
        rows = np.sort(positions, axis=1)
        new = np.diff(rows, axis=1, prepend=-1) != 0
        self.cells = rows[new]
        self.keys = np.repeat(np.arange(len(rows)), new.sum(axis=1))

    def add_many(self, epoch: int, pages: Keys) -> None:
        """Visits of an epoch, which is not before the last one."""
        self.advance(epoch)
        hits = np.bincount(pages, minlength=len(self.positions))[self.keys]
        self.values += self.one * np.bincount(self.cells, hits, len(self.values))

    def advance(self, epoch: int) -> None:
        """A pass for each epoch that has begun."""
        for _ in range(self.epoch, epoch):
            self.values = self.fade(self.values)
        self.epoch = epoch

    def counts(self) -> Floats:
        """Of every page."""
        least: Floats = self.values[self.positions].min(axis=1)
        return least / self.one
