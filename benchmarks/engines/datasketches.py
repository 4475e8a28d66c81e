"""datasketches: Apache's count-min sketch in C++ with 64-bit cells."""

from __future__ import annotations

from importlib import import_module

from benchmarks.engines.contract import Counting, Filter
from benchmarks.engines.count_min import shape


def counting() -> Counting:
    module = import_module("datasketches")

    def build(distinct: int, error_rate: float) -> Filter:
        rows, width = shape(distinct, error_rate)
        return module.count_min_sketch(rows, width)

    return Counting(
        name="datasketches",
        package="datasketches",
        build=build,
        add_each=_add_each,
        count_each=_count_each,
        count=lambda target, key: int(target.get_estimate(key)),
        bits=lambda target: int(target.num_hashes) * int(target.num_buckets) * 64,
        lacks="no batches, no Arrow",
    )


def _add_each(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.update(key)


def _count_each(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.get_estimate(key)
