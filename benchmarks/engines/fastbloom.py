"""fastbloom-rs: a classic filter and 4-bit counters in Rust behind a thin Python class.

`add_str` and `contains_str` are its quickest public calls; `add` and `in` first look at the type.
"""

from __future__ import annotations

import math
from importlib import import_module

from benchmarks.engines.contract import Counting, Filter, Membership
from benchmarks.engines.count_min import EQUAL, EQUAL_BITS
from benchmarks.engines.threads import in_halves

_FILL_CHUNK = 1_000_000  # it takes a list, so the integers are made in pieces


def membership() -> Membership:
    module = import_module("fastbloom_rs")
    return Membership(
        name="fastbloom-rs",
        package="fastbloom-rs",
        build=module.BloomFilter,
        add_each=_add_each,
        query_each=_query_each,
        bits=lambda target: int(target.config().size()),
        add_list=in_halves(lambda target, keys: target.add_str_batch(keys)),
        query_list=in_halves(
            lambda target, keys: target.contains_str_batch(keys, check_type=False)
        ),
        fill=_fill,
        lacks="no Arrow",
    )


def counting(*, equal: bool = False) -> Counting:
    module = import_module("fastbloom_rs")

    def build(distinct: int, error_rate: float) -> Filter:
        planned = module.CountingBloomFilter(distinct, error_rate)
        if not equal:
            return planned
        # Its counters are in proportion to the keys it is made for.
        larger = distinct * EQUAL_BITS / (_bits(planned) / distinct)
        return module.CountingBloomFilter(math.ceil(larger), error_rate)

    return Counting(
        name="fastbloom-rs, 4-bit counters" + EQUAL * equal,
        package="fastbloom-rs",
        build=build,
        add_each=_add_each_counted,
        count_each=_count_each,
        count=lambda target, key: int(target.estimate_count(key)),
        bits=_bits,
        ceiling=15,
        add_list=in_halves(lambda target, keys: target.add_str_batch(keys)),
        sized_by_memory=equal,
        lacks="no batch count, no Arrow; its counters stop at 15",
    )


def _bits(target: Filter) -> int:
    return len(target.get_bytes()) * 8


def _add_each(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.add_str(key)


def _query_each(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.contains_str(key)


# A second loop, because the first one is already specialised for the other class.
def _add_each_counted(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.add_str(key)


def _count_each(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.estimate_count(key)


def _fill(target: Filter, below: int) -> None:
    for start in range(0, below, _FILL_CHUNK):
        target.add_int_batch(list(range(start, min(start + _FILL_CHUNK, below))))
