"""`lazy`: decay a block when it is touched, against the paper's pass over all cells at a boundary.

Every run has a boundary between two epochs in its middle. The eager side makes the same calls to a
filter of the same class whose time stands still, so that it never decays anything, and at the
boundary the pass runs over an array of as many cells. The core has no eager pass. NumPy's is made
to be quick: pieces that stay in the cache, one multiplication for each cell.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from bloomery import TimeDecayingBloomFilter
from decay.setting import EPOCH, SEED
from trials.outcome import Claim, Outcome, Row, ratio
from trials.streams import Keys
from trials.timing import timed

DECAY = 0.5**0.1
"""What a half-life of ten epochs comes to, the default."""
HASHES = 4
BATCH = 10_000
PIECE = 1 << 15
"""Cells that the eager pass takes at a time."""

Cells32 = npt.NDArray[np.uint32]


def eager_pass(cells: Cells32) -> None:
    """C_i = lambda * C_i for all i, rounded up."""
    factor, rest = np.uint64(np.ceil(DECAY * 2**32)), np.uint64(2**32 - 1)
    product = np.empty(PIECE, dtype=np.uint64)
    for first in range(0, len(cells), PIECE):
        piece = cells[first : first + PIECE]
        wide = product[: len(piece)]
        np.multiply(piece, factor, out=wide)
        wide += rest
        # The upper half of each product, without a shift: the machine is little-endian.
        piece[:] = wide.view(np.uint32)[1::2]


def _filled(cells: int, layout: str) -> TimeDecayingBloomFilter:
    """A filter with a key for each ten cells, so that no page of memory is new to a later call."""
    filter = TimeDecayingBloomFilter(
        cells=cells, hashes=HASHES, decay=DECAY, epoch=EPOCH, layout=layout
    )
    for first in range(0, cells // 10, 1_000_000):
        filter.add_many(np.arange(first, min(first + 1_000_000, cells // 10)), at=0)
    return filter


def _halves(keys: Keys, before: int, moving: bool) -> Iterator[tuple[Keys, int]]:
    """The keys of both epochs, and their time; where it stands still that is the first one's."""
    middle = len(keys) // 2
    yield keys[:middle], before * EPOCH
    yield keys[middle:], (before + moving) * EPOCH


def _calls(filter: TimeDecayingBloomFilter, keys: Keys, before: int, moving: bool) -> list[int]:
    """Nanoseconds of each call; the clock's own are among them."""
    add, clock = filter.add, time.perf_counter_ns
    took: list[int] = []
    note = took.append
    for part, at in _halves(keys, before, moving):
        for key in part.tolist():
            start = clock()
            add(key, 1, at)
            note(clock() - start)
    return took


def _batches(filter: TimeDecayingBloomFilter, keys: Keys, before: int, moving: bool) -> list[float]:
    """Seconds of each batch."""
    return [
        timed(filter.add_many, part[first : first + BATCH], None, at)
        for part, at in _halves(keys, before, moving)
        for first in range(0, len(part), BATCH)
    ]


def _row(cells: int, way: str, calls: int, runs: int) -> Row:
    """The best of the runs in each figure."""
    random = np.random.default_rng(SEED)
    moving = way != "eager"
    filter = _filled(cells, "basic" if way == "eager" else way)
    array: Cells32 = np.full(0 if moving else cells, 1000, dtype=np.uint32)
    found: list[Row] = []
    gc.collect()
    gc.disable()
    for run in range(runs):
        passed = timed(eager_pass, array)
        # Two boundaries in a run: one for single calls, one for batches.
        took = _calls(filter, random.integers(2**62, size=calls), 2 * run, moving)
        batches = _batches(filter, random.integers(2**62, size=calls), 2 * run + 1, moving)
        found.append(
            {
                "mean_call_ns": sum(took) / calls + passed * 1e9 / calls,
                "longest_call_us": max(max(took) / 1e3, passed * 1e6),
                "call_999_us": float(np.quantile(took, 0.999)) / 1e3,
                "mean_batch_ns": (sum(batches) + passed) * 1e9 / calls,
                "longest_batch_us": (max(batches) + passed) * 1e6,
                "pass_us": passed * 1e6,
            }
        )
    gc.enable()
    best = {name: min(run[name] for run in found) for name in found[0]}
    return {
        "cells": cells,
        "way": way,
        "calls": calls,
        "bytes": filter.stats(at=10**6).bytes,
        **best,
    }


def lazy(sizes: tuple[int, ...], calls: int, runs: int) -> Outcome:
    """Both ways by the number of cells."""
    ways = ("eager", "basic", "optimized")
    rows = [_row(cells, way, calls, runs) for cells in sizes for way in ways]
    of = {(row["cells"], row["way"]): row for row in rows}
    largest, smallest = sizes[-1], sizes[0]
    claims: list[Claim] = []
    for way in ways[1:]:
        ours, eager = of[largest, way], of[largest, "eager"]
        text = f"{way}, m = {largest:.0e}: the longest call is at least 100x shorter than the pass"
        gain = eager["pass_us"] / ours["longest_call_us"]
        told = f"{gain:.0f}x ({eager['pass_us']:.0f} us and {ours['longest_call_us']:.0f} us)"
        claims.append(Claim(text, "", told, gain >= 100))
        growth = ours["longest_call_us"] / of[smallest, way]["longest_call_us"]
        text = f"{way}: longest call, m = {largest:.0e} over m = {smallest:.0e}"
        claims.append(Claim(text, "", f"{growth:.1f}x", growth <= 3))
        for kind in ("call", "batch"):
            text = f"{way}: throughput over eager's, {kind} by {kind}"
            column = f"mean_{kind}_ns"
            told = ", ".join(
                f"{ratio(of[m, 'eager'][column], of[m, way][column])} (m = {m:.0e})" for m in sizes
            )
            claims.append(Claim(text, "", told, eager[column] >= ours[column]))
    return Outcome(rows, claims)
