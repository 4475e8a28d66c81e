"""What the experiments share: the paper's filters, how a filter is measured.

Paper    J. Aguilar-Saborit et al., Data & Knowledge Engineering 66, 2008, section 7: P = 0.05 and
         d = 3; m follows from both and from n, the number of distinct keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from bloomtide import (
    DynamicCountFilter,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    SpectralBloomFilter,
)
from bloomtide.partitions import PAPER_ENTRY_BYTES, EvenModel
from trials.outcome import Row

SEED = 20_080_901
ERROR_RATE, HASHES = 0.05, 3
ELEMENT_BYTES = 4
ENTRY_BYTES = PAPER_ENTRY_BYTES

Counts = npt.NDArray[np.int64]
Filter = Any  # one of the four; they have the same verbs

CLASSES: dict[str, Callable[..., Filter]] = {
    "SBF": SpectralBloomFilter,
    "PSBF": PartitionedSpectralBloomFilter,
    "DCF": DynamicCountFilter,
    "PDCF": PartitionedDynamicCountFilter,
}


def make(name: str, n: int, total: int, **options: Any) -> Filter:
    """A filter in the paper's setting: all that is not said here is an option.

    The paper shrinks at once. Its spectral filters never get more memory; ours grow.
    """
    paper = {"shrink": 1.0} if "DCF" in name else {}
    setting = {"hashes": HASHES, "layout": "classic", "total": total, **paper, **options}
    if "cells" in setting:
        return CLASSES[name](**setting)
    return CLASSES[name](n, ERROR_RATE, **setting)


def rebuild_figures(filter: Filter) -> Row:
    """Rebuilds of a filter: how many, how long, and how many counters each moved.

    The last figure is the same on every machine.
    """
    stats = filter.stats()
    rebuilds = max(stats.rebuilds, 1)
    return {
        "partitions": stats.partitions,
        "bytes": stats.bytes,
        "rebuilds": stats.rebuilds,
        "rebuild_seconds": stats.pauses,
        "mean_rebuild_us": stats.pauses / rebuilds * 1e6,
        "longest_rebuild_us": stats.longest_pause * 1e6,
        "counters_moved": stats.moved / rebuilds,
    }


def exact_share(filter: Filter, true: Counts) -> float:
    """The paper's accuracy: the share of present keys whose count is right."""
    present = np.flatnonzero(true)
    return float(np.mean(filter.count_many(present).astype(np.int64) == true[present]))


def even_partitions(
    cells: int,
    rebuild_seconds: float,
    requests_per_second: float,
    entry_bytes: float = ENTRY_BYTES,
) -> int:
    """c by Eq. 3 from the rebuild time and the rate that were observed."""
    model = EvenModel(
        rebuild_seconds=rebuild_seconds,
        requests_per_second=requests_per_second,
        element_bytes=ELEMENT_BYTES,
        entry_bytes=entry_bytes,
    )
    return model.choose(cells)


def extra_bits(cells: npt.NDArray[np.uint64], counter_bits: int) -> npt.NDArray[np.int64]:
    """For each counter the bits that it needs beyond x: its level in a dynamic count filter."""
    over = (cells >> np.uint64(counter_bits)).astype(np.float64)
    levels: npt.NDArray[np.int64] = np.frexp(over)[1].astype(np.int64)  # bit length; 0 of 0
    return levels


def level_counts(levels: npt.NDArray[np.int64]) -> tuple[float, ...]:
    """h_1, h_2, ...: counters that need at least 1, 2, ... extra bits."""
    return tuple(float(np.sum(levels >= level)) for level in range(1, int(levels.max()) + 1))
