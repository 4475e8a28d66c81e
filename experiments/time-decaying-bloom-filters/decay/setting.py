"""What the experiments share: filters in the paper's setting and in ours, and their time.

Paper    K. Cheng et al., "Time-Decaying Bloom Filters": counters of 16 bits without a fraction, k
         positions anywhere. It gives neither m nor k: here they are those of an error rate of 2 %,
         about 8 cells for each page.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bloomtide import TimeDecayingBloomFilter
from decay.truth import Floats
from trials.streams import Keys

SEED = 20_040_301
ERROR_RATE = 0.02
EPOCH = 3600
"""Seconds. Epochs of a log are numbers here, whatever their length was."""

LAYOUTS = ("basic", "optimized")
"""Those that are measured. They must give the same answers."""

PAPER = {"counter_bits": 16, "fraction_bits": 0, "layout": "classic"}
SETTINGS: dict[str, dict[str, Any]] = {
    "paper": PAPER,
    "paper, expiring": {**PAPER, "rounding": "expiring"},
    "ours": {"counter_bits": 32, "fraction_bits": 8},
}


class Fading:
    """A filter whose time is counted in epochs, as the truth's is."""

    def __init__(self, pages: int, decay: float, **options: Any) -> None:
        size: dict[str, Any] = {"capacity": pages, "error_rate": ERROR_RATE}
        if "cells" in options:
            size = {}
        self.filter = TimeDecayingBloomFilter(**size, decay=decay, epoch=EPOCH, **options)
        self.keys: Keys = np.arange(pages)
        self.epoch = 0

    def add_many(self, epoch: int, pages: Keys) -> None:
        """Visits of an epoch, which is not before the last one."""
        self.epoch = epoch
        self.filter.add_many(pages, at=float(epoch * EPOCH))

    def advance(self, epoch: int) -> None:
        """Move the time on."""
        self.epoch = epoch
        self.filter.advance(float(epoch * EPOCH))

    def counts(self) -> Floats:
        """Of every page."""
        return self.counts_of(self.keys)

    def counts_of(self, keys: Keys) -> Floats:
        """Of these keys."""
        counts: Floats = self.filter.count_many(keys, at=float(self.epoch * EPOCH))
        return counts

    def stats(self) -> Any:
        """As of the last epoch."""
        return self.filter.stats(at=float(self.epoch * EPOCH))

    def units(self, fraction_bits: int) -> npt.NDArray[np.int64]:
        """Every cell as the whole number that it is inside."""
        cells: Floats = self.filter.cells(at=float(self.epoch * EPOCH))
        units: npt.NDArray[np.int64] = np.rint(cells * 2**fraction_bits).astype(np.int64)
        return units

    def positions(self) -> npt.NDArray[np.int64]:
        """A row for each page; where two coincide the first stands twice."""
        rows = [self.filter.positions(page) for page in range(len(self.keys))]
        width = max(map(len, rows))
        return np.array([row + row[:1] * (width - len(row)) for row in rows], dtype=np.int64)
