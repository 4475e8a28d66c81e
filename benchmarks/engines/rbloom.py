"""rbloom: a classic filter in Rust over Python's `hash()`, so its answers hold in one process."""

from __future__ import annotations

from importlib import import_module

from benchmarks.engines.contract import Filter, Membership
from benchmarks.engines.threads import in_halves


def membership() -> Membership:
    module = import_module("rbloom")
    return Membership(
        name="rbloom",
        package="rbloom",
        build=module.Bloom,
        add_each=_add_each,
        query_each=_query_each,
        bits=lambda target: int(target.size_in_bits),
        add_list=in_halves(lambda target, keys: target.update(keys)),
        fill=lambda target, below: target.update(range(below)),
        lacks="no batch query, no Arrow",
    )


def _add_each(target: Filter, keys: list[str]) -> None:
    for key in keys:
        target.add(key)


def _query_each(target: Filter, keys: list[str]) -> None:
    for key in keys:
        if key in target:
            pass
