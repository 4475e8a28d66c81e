"""bounter: a count-min sketch in C with conservative update and 32-bit cells."""

from __future__ import annotations

from importlib import import_module

from benchmarks.engines.contract import Counting, Filter
from benchmarks.engines.count_min import EQUAL, equal_shape, shape
from benchmarks.engines.threads import in_halves


def counting(*, equal: bool = False) -> Counting:
    module = import_module("bounter")

    def build(distinct: int, error_rate: float) -> Filter:
        rows, width = (
            equal_shape(distinct, error_rate, 32) if equal else shape(distinct, error_rate)
        )
        # It accepts powers of two only; the next larger one keeps its error under the others'.
        return module.CountMinSketch(depth=rows, width=1 << (width - 1).bit_length())

    return Counting(
        name="bounter" + EQUAL * equal,
        package="bounter",
        build=build,
        add_each=_add_each,
        count_each=_count_each,
        count=lambda target, key: int(target[key]),
        bits=lambda target: int(target.size()) * 8,
        add_list=in_halves(lambda target, keys: target.update(keys)),
        sized_by_memory=equal,
        lacks="no batch count, no Arrow",
    )


def _add_each(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.increment(key)


def _count_each(target: Filter, keys: list[str]) -> None:
    for key in keys:
        _ = target[key]
