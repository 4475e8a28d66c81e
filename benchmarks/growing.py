"""`ScalableBloomFilter()` beside a `BloomFilter` of the right size: time and memory.

`python -m benchmarks.growing [KEYS ...]` adds so many numbers to both, the last ones by calls,
asks for some that are there and some that are not, and prints nanoseconds a key, the best of the
rounds. They are those that the thread had the processor, so that other programs disturb little.
Memory is compared after every batch past a million keys.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.answers import WrongAnswerError
from benchmarks.measure import collector_off
from bloomtide import BloomFilter, ScalableBloomFilter

BATCH = 1_000_000
CALLS = 200_000
ABSENT = 1 << 60


def per_key(work: Callable[[], Any], keys: int) -> tuple[float, Any]:
    """Nanoseconds per key that `work` takes, and what it returned."""
    start = time.thread_time_ns()
    result = work()
    return (time.thread_time_ns() - start) / keys, result


def measure(made: Any, keys: int) -> Iterator[tuple[str, float]]:
    """Fills a filter; what was done and nanoseconds a key."""

    def each(call: Any, given: Any) -> list[Any]:
        return list(map(call, given))

    many = keys - CALLS
    batches = [np.arange(first, min(many, first + BATCH)) for first in range(0, many, BATCH)]
    yield "add_many", per_key(partial(each, made.add_many, batches), many)[0]
    yield "one add", per_key(partial(each, made.add, range(many, keys)), CALLS)[0]
    for name, first in (("there", 0), ("absent", ABSENT)):
        asked = np.arange(first, first + min(keys, BATCH))
        nanoseconds, found = per_key(partial(made.contains_many, asked), len(asked))
        if name == "there" and not all(found):
            raise WrongAnswerError(f"{type(made).__name__} lost a key")
        yield f"contains_many, {name}", nanoseconds
        some = range(first, first + CALLS)
        yield f"one question, {name}", per_key(partial(each, made.__contains__, some), CALLS)[0]


def memory(keys: int) -> tuple[float, float]:
    """Bytes of a growing filter over those of a right one: with all keys, and at most."""
    growing, ratios = ScalableBloomFilter(), []
    for first in range(0, keys, BATCH):
        end = min(keys, first + BATCH)
        growing.add_many(np.arange(first, end))
        ratios.append(growing.stats().bytes / BloomFilter.plan(end).bytes)
    return ratios[-1], max(ratios)


def main() -> None:
    """Prints a table for each number of keys."""
    for keys in [int(text) for text in sys.argv[1:]] or [1_000_000, 100_000_000]:
        best: list[dict[str, float]] = [{}, {}]
        makers: tuple[Callable[[], Any], ...] = (partial(BloomFilter, keys), ScalableBloomFilter)
        for _ in range(max(1, min(10, 200_000_000 // keys))):
            for make, row in zip(makers, best, strict=True):
                with collector_off():
                    for name, nanoseconds in measure(make(), keys):
                        row[name] = min(nanoseconds, row.get(name, nanoseconds))
        print(f"{keys:,} keys: nanoseconds in BloomFilter, in ScalableBloomFilter, ratio")
        for name, right in best[0].items():
            print(f"{name:24} {right:8.1f} {best[1][name]:8.1f} {best[1][name] / right:6.2f}x")
        now, most = memory(keys)
        print(f"{'memory':24} {now:24.2f}x, at most {most:.2f}x\n")


if __name__ == "__main__":
    main()
