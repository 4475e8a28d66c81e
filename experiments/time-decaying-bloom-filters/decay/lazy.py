"""`lazy`: decay a block when it is touched, against the paper's pass over all cells at a boundary.

Every run has a boundary between two epochs in its middle. The eager side makes the same calls to a
filter of the same class whose time stands still, so that it never decays anything, and at the
boundary the pass runs over an array of as many cells. The core has no eager pass, so NumPy's stands
for it, made as quick as can be: with lambda = 15/16 it is a shift and a subtraction, in pieces that
stay in the cache.
"""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from bloomtide import TimeDecayingBloomFilter
from decay.setting import EPOCH, LAYOUTS, SEED
from trials.outcome import Claim, Outcome, Row
from trials.streams import Keys
from trials.timing import timed

DECAY = 15 / 16
"""A half-life of 10.7 epochs; the default is 10."""
HASHES = 4
BATCH = 10_000
PIECE = 1 << 15
"""Cells that the eager pass takes at a time."""

Cells32 = npt.NDArray[np.uint32]
Filter = TimeDecayingBloomFilter


def eager_pass(cells: Cells32) -> None:
    """C_i = lambda * C_i for all i, rounded up: v - floor(v / 16)."""
    sixteenth = np.empty(PIECE, dtype=np.uint32)
    for first in range(0, len(cells), PIECE):
        piece = cells[first : first + PIECE]
        part = sixteenth[: len(piece)]
        np.right_shift(piece, 4, out=part)
        np.subtract(piece, part, out=piece)


def _filled(cells: int, layout: str) -> Filter:
    """A filter with a key for each ten cells, so that no page of memory is new to a later call."""
    options: dict[str, Any] = {"storage": layout, "cells": cells, "hashes": HASHES}
    filter = TimeDecayingBloomFilter(decay=DECAY, epoch=EPOCH, **options)
    for first in range(0, cells // 10, 1_000_000):
        filter.add_many(np.arange(first, min(first + 1_000_000, cells // 10)), at=0)
    return filter


def _halves(keys: Keys, before: int, moving: bool) -> Iterator[tuple[Keys, float]]:
    """The keys of both epochs, and their time; where it stands still that is the first one's."""
    middle = len(keys) // 2
    yield keys[:middle], float(before * EPOCH)
    yield keys[middle:], float((before + moving) * EPOCH)


def _timed_calls(filter: Filter, keys: Keys, before: int, moving: bool) -> list[int]:
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


def _calls(filter: Filter, keys: Keys, before: int, moving: bool) -> float:
    """Seconds of all calls, without a clock between them."""
    add, parts = filter.add, [(part.tolist(), at) for part, at in _halves(keys, before, moving)]
    start = time.perf_counter()
    for part, at in parts:
        for key in part:
            add(key, 1, at)
    return time.perf_counter() - start


def _preemptions() -> int:
    """How often another process took this one's place; a call that it happens in takes long."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw


def _batches(filter: Filter, keys: Keys, before: int, moving: bool) -> list[float]:
    """Seconds of each batch."""
    return [
        timed(filter.add_many, part[first : first + BATCH], None, at)
        for part, at in _halves(keys, before, moving)
        for first in range(0, len(part), BATCH)
    ]


def _row(cells: int, way: str, calls: int, runs: int) -> Row:
    """The best of the runs in each figure. A run has three boundaries: one for each way to add."""
    random = np.random.default_rng(SEED)
    moving = way != "eager"
    filter = _filled(cells, way if moving else "basic")
    array: Cells32 = np.full(0 if moving else cells, 1000, dtype=np.uint32)
    found: list[Row] = []
    gc.collect()
    gc.disable()
    for run in range(runs):
        passed = timed(eager_pass, array) if len(array) else 0.0
        single, each, many = (random.integers(2**62, size=calls) for _ in range(3))
        preempted = _preemptions()
        longest = max(_timed_calls(filter, single, 3 * run, moving)) * 1e-9
        preempted = _preemptions() - preempted
        seconds = _calls(filter, each, 3 * run + 1, moving)
        batches = _batches(filter, many, 3 * run + 2, moving)
        found.append(
            {
                "pass_us": passed * 1e6,
                "preempted": preempted,
                "longest_call_us": max(longest, passed) * 1e6,
                "longest_batch_us": max(*batches, passed) * 1e6,
                "call_ns": (seconds + passed) / calls * 1e9,
                "batch_ns": (sum(batches) + passed) / calls * 1e9,
            }
        )
    gc.enable()
    best = {name: min(run[name] for run in found) for name in found[0]}
    best["longest_of_all_us"] = max(run["longest_call_us"] for run in found)
    size = filter.stats(at=float(3 * runs * EPOCH)).bytes
    return {"cells": cells, "way": way, "calls": calls, "bytes": size, **best}


def lazy(sizes: tuple[int, ...], calls: int, runs: int) -> Outcome:
    """Both ways by the number of cells."""
    ways = ("eager", *LAYOUTS)
    rows = [_row(cells, way, calls, runs) for cells in sizes for way in ways]
    of = {(row["cells"], row["way"]): row for row in rows}
    largest, smallest = sizes[-1], sizes[0]
    claims: list[Claim] = []
    for way in ways[1:]:
        ours, eager = of[largest, way], of[largest, "eager"]
        text = f"{way}, m = {largest:.0e}: the longest call is at least 100x shorter than the pass"
        gain = eager["pass_us"] / ours["longest_call_us"]
        told = (
            f"{gain:.0f}x ({eager['pass_us']:.0f} us and {ours['longest_call_us']:.0f} us; "
            f"{ours['longest_of_all_us']:.0f} us in the worst of {runs} runs)"
        )
        claims.append(Claim(text, "", told, gain >= 100))
        growth = ours["longest_call_us"] / of[smallest, way]["longest_call_us"]
        text = f"{way}: longest call, m = {largest:.0e} over m = {smallest:.0e}"
        claims.append(Claim(text, "", f"{growth:.1f}x", growth <= 3))
        for kind in ("call", "batch"):
            text = f"{way}: throughput over eager's, {kind} by {kind}"
            column = f"{kind}_ns"
            told = ", ".join(
                f"{of[m, 'eager'][column] / of[m, way][column]:.2f}x (m = {m:.0e})" for m in sizes
            )
            claims.append(Claim(text, "", told, eager[column] >= ours[column]))
    return Outcome(rows, claims)
