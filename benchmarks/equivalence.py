"""`python -m benchmarks.equivalence`: five structures, one truth, over a million operations.

PDCF, DCF, PSBF, SBF and `CountingBloomFilter` with counters of 32 bits get the same stream of adds
and removals, under both layouts and both policies. Every answer is compared as it comes, and every
counter after each tenth of the stream. Few keys are hot, and times of growth take turns with times
of decline, so that counters cross powers of two in both directions and partitions are rebuilt all
the time. At each tenth the filters are also replaced by what a file or a copy brings back, the
partitioned ones are cut anew, and every filter is merged with a small other one.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from typing import Any

import numpy as np

import bloomtide
from bloomtide import (
    CountingBloomFilter,
    DynamicCountFilter,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    SpectralBloomFilter,
)
from bloomtide.errors import AbsentKeyError

OPERATIONS = 1_000_000
KEYS = 4_000
CELLS = 128 * 160
HASHES = 4
TENTHS = 10
CUTS = itertools.cycle((7, 1, "auto", 160, 31))


class Difference(Exception):
    """Two structures that do not agree."""


def family(layout: Any, policy: Any) -> dict[str, Any]:
    """One of each, with the same counters for every key."""
    growing: Any = {"cells": CELLS, "hashes": HASHES, "layout": layout, "policy": policy}
    return {
        "counting": CountingBloomFilter(**growing, counter_bits=32),
        "sbf": SpectralBloomFilter(**growing),
        "dcf": DynamicCountFilter(**growing, counter_bits=3),
        "psbf": PartitionedSpectralBloomFilter(**growing, partitions=23),
        "pdcf": PartitionedDynamicCountFilter(**growing, partitions=23, counter_bits=3),
        "pdcf auto": PartitionedDynamicCountFilter(**growing),
    }


def agree(step: int, what: str, answers: dict[str, Any]) -> None:
    """Complain unless all answers are the same."""
    if len(set(answers.values())) != 1:
        raise Difference(f"operation {step}, {what}: {answers}")


def removed(made: Any, key: int, count: int) -> Any:
    """The count afterwards, or the estimate of an error."""
    try:
        made.remove(key, count)
    except AbsentKeyError as error:
        return "absent", error.estimate
    return made.count(key)


def compare(layout: str, policy: str, operations: int, seed: int) -> Counter[str]:
    """Run one stream through one family; how often each verb was compared."""
    made, draw, done = family(layout, policy), np.random.default_rng(seed), Counter[str]()
    tenth = max(1, operations // TENTHS)
    for begin in range(0, operations, tenth):
        size = min(tenth, operations - begin)
        keys = (KEYS * draw.random(size) ** 4).astype(np.int64).tolist()
        counts = np.minimum(draw.zipf(1.8, size), 5_000).tolist()
        shrinking = begin // tenth % 2 == 1 and policy == "plain"
        removals = (draw.random(size) < (0.6 if shrinking else 0.2)).tolist()
        for row, (key, count, removal) in enumerate(zip(keys, counts, removals, strict=True)):
            verb = "remove" if removal and policy == "plain" else "add"
            if verb == "add":
                answers = {n: (one.add(key, count), one.count(key)) for n, one in made.items()}
            else:
                answers = {name: removed(one, key, count) for name, one in made.items()}
            agree(begin + row, f"{verb} {key} {count}", answers)
            done[verb] += 1
        between(begin + size, made, layout, policy)
        done["whole filters"] += 1
    return done


def between(step: int, made: dict[str, Any], layout: str, policy: str) -> None:
    """Batches, copies, files, partitions and merges, and every counter compared."""
    others = family(layout, policy)
    cut = next(CUTS)
    for name, one in made.items():
        if name.startswith("p"):
            one.repartition(cut)
            others[name].repartition(cut)
        others[name].add_many(np.arange(KEYS // 2, KEYS))
        one.merge(others[name])
        made[name] = bloomtide.from_bytes(one.to_bytes()) if step % 2 else one.copy()
        made[name].validate()
    every = np.arange(2 * KEYS)
    agree(step, "cells", {n: one.cells().astype(np.uint64).tobytes() for n, one in made.items()})
    counts = {n: one.count_many(every).astype(np.uint64).tobytes() for n, one in made.items()}
    agree(step, "count_many", counts)


def main(argv: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.equivalence", description=__doc__)
    parser.add_argument("--operations", type=int, default=OPERATIONS)
    asked = parser.parse_args(argv)
    cases = [
        (layout, policy)
        for layout in ("blocked", "classic")
        for policy in ("plain", "conservative")
    ]
    done = Counter[str]()
    for seed, (layout, policy) in enumerate(cases):
        try:
            done += compare(layout, policy, asked.operations // len(cases), seed)
        except Difference as found:
            print(f"different ({layout}, {policy}): {found}")
            return 1
    total = done["add"] + done["remove"]
    print(f"equal: {total:,} operations ({done['add']:,} adds, {done['remove']:,} removals)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
