"""datasketches, in C++: Apache's count-min sketch with 64-bit cells, and its frequent items."""

from __future__ import annotations

from importlib import import_module

from benchmarks.engines.contract import Counting, Filter, Hot
from benchmarks.engines.count_min import EQUAL, equal_shape, shape


def counting(*, equal: bool = False) -> Counting:
    module = import_module("datasketches")

    def build(distinct: int, error_rate: float) -> Filter:
        rows, width = (
            equal_shape(distinct, error_rate, 64) if equal else shape(distinct, error_rate)
        )
        return module.count_min_sketch(rows, width)

    return Counting(
        name="datasketches" + EQUAL * equal,
        package="datasketches",
        build=build,
        add_each=_add_each,
        count_each=_count_each,
        count=lambda target, key: int(target.get_estimate(key)),
        bits=lambda target: int(target.num_hashes) * int(target.num_buckets) * 64,
        sized_by_memory=equal,
        lacks="no batches, no Arrow",
    )


def hot() -> Hot:
    module = import_module("datasketches")

    def build(k: int) -> Filter:
        # Three quarters of its table can be used.
        return module.frequent_strings_sketch((k * 4 // 3).bit_length())

    def top(target: Filter, n: int) -> list[str]:
        rows = target.get_frequent_items(module.frequent_items_error_type.NO_FALSE_NEGATIVES)
        return [row[0] for row in rows[:n]]

    return Hot(
        name="datasketches",
        package="datasketches",
        build=build,
        add_each=_hot_each,
        top=top,
        lacks="no batches, no Arrow, no decay",
    )


def _hot_each(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.update(key)


def _add_each(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.update(key)


def _count_each(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.get_estimate(key)
