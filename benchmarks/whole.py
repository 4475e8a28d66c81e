"""How fast whole filters are merged, copied, compared, written and read.

`python -m benchmarks.whole [KEYS] [ROUNDS]` fills two filters of each structure with a skewed
stream and prints megabytes of `stats().bytes` in a second, the best of the rounds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.answers import WrongAnswerError
from bloomtide import (
    CountingBloomFilter,
    DynamicCountFilter,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    SpectralBloomFilter,
    TimeDecayingBloomFilter,
)

MAKERS: dict[str, Callable[[int], Any]] = {
    "DynamicCountFilter": DynamicCountFilter,
    "PartitionedDynamicCountFilter": PartitionedDynamicCountFilter,
    "the same, conservative": lambda n: PartitionedDynamicCountFilter(n, policy="conservative"),
    "SpectralBloomFilter": SpectralBloomFilter,
    "PartitionedSpectralBloomFilter": PartitionedSpectralBloomFilter,
    "CountingBloomFilter": CountingBloomFilter,
    "TimeDecayingBloomFilter": lambda n: TimeDecayingBloomFilter(n, half_life="1h"),
    "the same, optimized": lambda n: TimeDecayingBloomFilter(
        n, half_life="1h", storage="optimized"
    ),
}


def filled(name: str, keys: int, seed: int) -> Any:
    """A filter at its capacity: every key once, and some very often."""
    made = MAKERS[name](keys)
    draw = np.random.default_rng(seed)
    often = (keys ** draw.random(4 * keys)).astype(np.int64)
    stream = np.concatenate((np.arange(keys), often))
    fades = isinstance(made, TimeDecayingBloomFilter)
    made.add_many(stream, **({"at": 1_700_000_000} if fades else {}))
    return made


def best(rounds: int, prepare: Callable[[], Any], work: Callable[[Any], object]) -> float:
    """Seconds that the work takes, at best."""
    seconds = []
    for _ in range(rounds):
        prepared = prepare()
        start = time.perf_counter()
        work(prepared)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def always(value: Any) -> Callable[[], Any]:
    """What prepares nothing."""
    return lambda: value


def merge(one: Any, other: Any) -> None:
    """Adds the other."""
    one.merge(other)


def main(keys: int = 200_000, rounds: int = 20) -> None:
    """Prints a table."""
    print("| MB/s | bytes | merge | copy | == | to_bytes | from_bytes |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in MAKERS:
        one, other = filled(name, keys, 1), filled(name, keys, 2)
        same, data = one.copy(), one.to_bytes()
        if one != same or type(one).from_bytes(data) != one:
            raise WrongAnswerError(f"{name}: a copy differs")
        size = one.stats().bytes
        times = (
            best(rounds, one.copy, partial(merge, other=other)),
            best(rounds, always(one), type(one).copy),
            best(rounds, always(one), same.__eq__),
            best(rounds, always(one), type(one).to_bytes),
            best(rounds, always(data), type(one).from_bytes),
        )
        rates = " | ".join(f"{size / seconds / 1e6:,.0f}" for seconds in times)
        print(f"| {name} | {size:,} | {rates} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
