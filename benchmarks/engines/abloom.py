"""abloom: a split-block filter in C, the fastest Python peer.

Its serializable mode hashes with xxHash and gives the same answers in every process, as bloomtide
does: that is the fair opponent. Its default mode calls Python's `hash()`, which differs from one
process to the next.
"""

from __future__ import annotations

from importlib import import_module

from benchmarks.engines.contract import Filter, Membership
from benchmarks.engines.threads import in_halves

SERIALIZABLE = "abloom, serializable"


def membership(serializable: bool) -> Membership:
    module = import_module("abloom")

    def build(capacity: int, error_rate: float) -> Filter:
        return module.BloomFilter(capacity, error_rate, serializable=serializable)

    return Membership(
        name=SERIALIZABLE if serializable else "abloom, default",
        package="abloom",
        build=build,
        add_each=_add_each,
        query_each=_query_each,
        bits=lambda target: int(target.bit_count),
        add_list=in_halves(lambda target, keys: target.update(keys)),
        fill=(lambda target, below: target.update(range(below))) if serializable else None,
        lacks="no batch query, no Arrow",
    )


def _add_each(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.add(key)


def _query_each(target: Filter, keys: list[str]) -> None:
    for key in keys:
        if key in target:
            pass
