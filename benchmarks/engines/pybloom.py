"""pybloom-live: a classic filter in plain Python over bitarray; many projects still use it."""

from __future__ import annotations

from importlib import import_module

from benchmarks.engines.contract import Filter, Membership


def membership() -> Membership:
    module = import_module("pybloom_live")
    return Membership(
        name="pybloom-live",
        package="pybloom-live",
        build=module.BloomFilter,
        add_each=_add_each,
        query_each=_query_each,
        bits=lambda target: int(target.num_bits),
        slow=True,
        lacks="no batches; filling 100 M keys would take minutes, so it is measured at 1 M only",
    )


def _add_each(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.add(key)


def _query_each(target: Filter, keys: list[str]) -> None:
    for key in keys:
        if key in target:
            pass
