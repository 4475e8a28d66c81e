"""bloomtide itself."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from benchmarks.engines.contract import Counting, Filter, Hot, Membership

_FILL_CHUNK = 5_000_000  # 40 MB of integers at a time


def membership() -> Membership:
    from bloomtide import BloomFilter

    return Membership(
        name="bloomtide",
        package="bloomtide",
        build=BloomFilter,
        add_each=_add_each,
        query_each=_query_each,
        bits=_bits,
        add_list=_add_many,
        query_list=_contains_many,
        add_arrow=_add_many,
        query_arrow=_contains_many,
        fill=_fill,
    )


def counting(counter_bits: Literal[4, 32]) -> Counting:
    from bloomtide import CountingBloomFilter

    def build(distinct: int, error_rate: float) -> Filter:
        return CountingBloomFilter(distinct, error_rate, counter_bits=counter_bits)

    return Counting(
        name=f"bloomtide, {counter_bits}-bit counters",
        package="bloomtide",
        build=build,
        add_each=_add_each_counted,
        count_each=_count_each,
        count=lambda target, key: int(target.count(key)),
        bits=_bits,
        ceiling=2**counter_bits - 1,
        add_list=_add_many,
        count_list=_count_many,
        add_arrow=_add_many,
        count_arrow=_count_many,
    )


def growing() -> Counting:
    from bloomtide import PartitionedDynamicCountFilter

    def build(distinct: int, error_rate: float) -> Filter:
        return PartitionedDynamicCountFilter(distinct, error_rate)

    return Counting(
        name="bloomtide, PDCF",
        package="bloomtide",
        build=build,
        add_each=_add_each_growing,
        count_each=_count_each_growing,
        count=lambda target, key: int(target.count(key)),
        bits=_bits,
        ceiling=2**64 - 1,
        add_list=_add_many,
        count_list=_count_many,
        add_arrow=_add_many,
        count_arrow=_count_many,
    )


def hot() -> Hot:
    from bloomtide import HotList

    def build(k: int) -> Filter:
        return HotList(k, half_life="1h")

    return Hot(
        name="bloomtide",
        package="bloomtide",
        build=build,
        add_each=_add_each_hot,
        top=lambda target, n: [item.key for item in target.top(n)],
        add_list=_add_many_hot,
        add_arrow=_add_many_hot,
    )


def fading(layout: Literal["basic", "optimized"]) -> Counting:
    from bloomtide import TimeDecayingBloomFilter

    def build(distinct: int, error_rate: float) -> Filter:
        # The clock is read for every key, but no epoch ends while others are measured.
        return TimeDecayingBloomFilter(
            distinct, error_rate, half_life=10**10, epoch=10**9, storage=layout
        )

    return Counting(
        name=f"bloomtide, fading, {layout}",
        package="bloomtide",
        build=build,
        add_each=_add_each_basic if layout == "basic" else _add_each_optimized,
        count_each=_count_each_basic if layout == "basic" else _count_each_optimized,
        count=lambda target, key: int(target.count(key)),
        bits=_bits,
        ceiling=2**24 - 1,
        add_list=_add_many,
        count_list=_count_many,
        add_arrow=_add_many,
        count_arrow=_count_many,
    )


def _add_each(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.add(key)


def _query_each(target: Filter, keys: list[str]) -> None:
    for key in keys:
        if key in target:
            pass


# A second loop, because the first one is already specialised for BloomFilter.
def _add_each_counted(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.add(key)


# And a third, for the class that grows.
def _add_each_growing(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.add(key)


# And one for the list.
def _add_each_hot(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.add(key)


def _add_many_hot(target: Filter, keys: Any, threads: int) -> object:
    return target.add_many(keys)


def _count_each_growing(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.count(key)


# Again for those that fade, of which one layout waits for memory more than the other.
def _add_each_basic(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.add(key)


def _add_each_optimized(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.add(key)


def _count_each_basic(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.count(key)


def _count_each_optimized(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.count(key)


def _count_each(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.count(key)


def _add_many(target: Filter, keys: Any, threads: int) -> object:
    return target.add_many(keys, threads=threads)


def _contains_many(target: Filter, keys: Any, threads: int) -> object:
    return target.contains_many(keys, threads=threads)


def _count_many(target: Filter, keys: Any, threads: int) -> object:
    return target.count_many(keys, threads=threads)


def _fill(target: Filter, below: int) -> None:
    for start in range(0, below, _FILL_CHUNK):
        target.add_many(np.arange(start, min(start + _FILL_CHUNK, below), dtype=np.int64))


def _bits(target: Filter) -> int:
    return int(target.stats().bytes) * 8
