"""`bloomtide plan --cluster`: what a build over many machines takes, on paper.

Every number follows from the size of the filter and from a few rates measured on one core
(`make spark` measures them again). Two ways to build are told apart:

    merge    each task makes a whole filter; a filter crosses the network for each core
    shards   each task owns a slice of at most 1 GiB; every key crosses the network once

What crosses the network in fewer bytes is taken, if a filter fits one value of the engine.

A model, not a promise: it assumes that cores do not wait for disks or for each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bloomtide.cli.quantities import show_bytes, show_count

if TYPE_CHECKING:
    from rich.table import Table

    from bloomtide import Plan

SIZES = (10**9, 10**10, 10**11, 10**12)
SHARD = 1 << 30
"""Bytes of the largest shard."""
VALUE = 2**31 - 2**20
"""Bytes of the largest filter that is handed on whole, as in `bloomtide.distributed`."""
MERGES = {
    "counting": 2.0e8, "sbf": 1.8e8, "dcf": 1.65e8, "psbf": 1.8e8, "pdcf": 1.7e8, "tbf": 2.5e8,
}  # fmt: skip
"""Bytes a second of partials that count, as for `Rates.merge`: their counters are added one by one,
and those that grow may have to be built anew."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What one core does in a second, as measured on a core of a 2-core virtual machine."""

    build: float = 9.5e6
    """URLs from Parquet into a filter that no cache holds, by `build_files`."""
    rows: float = 2.5e6
    """Keys from a DataFrame through the JVM into a filter: how shards are built."""
    shuffle: float = 5.0e7
    """Bytes of keys written to a shuffle and read again."""
    merge: float = 1.6e8
    """Bytes of partials unpacked, merged and packed again, if they are bits."""
    merges: dict[str, float] = field(default_factory=MERGES.copy)
    """The same of the kinds that count."""
    key_bytes: int = 57
    """Of one key in a shuffle: the mean URL of `bloomtide.stream`."""
    core_hour: float = 0.05
    """Price of a core for an hour, in dollars."""

    def of_merging(self, kind: str) -> float:
        """Bytes a second of partials of a kind."""
        return self.merges.get(kind, self.merge)


def forecast(plan: Plan, cores: int, rates: Rates) -> dict[str, Any]:
    """One row: bytes, shards, shuffle, hours, memory and price of a build."""
    keys = plan.capacity or 0
    by_merge = plan.bytes <= VALUE and plan.bytes * cores <= keys * rates.key_bytes
    shards = 1 if by_merge else max(math.ceil(plan.bytes / SHARD), cores)
    shuffled = plan.bytes * cores if by_merge else keys * rates.key_bytes
    seconds = keys / (rates.build if by_merge else rates.rows) / cores
    if by_merge:  # a tree: each core merges what it gets, log2 of them one after the other
        steps = max(1, math.ceil(math.log2(cores or 1)))
        seconds += plan.bytes * steps / rates.of_merging(plan.kind)
    else:
        seconds += shuffled / rates.shuffle / cores
    core_hours = seconds * cores / 3600
    return {
        "keys": keys,
        "way": "merge" if by_merge else "shards",
        "bytes": plan.bytes,
        "shards": shards,
        "shuffle_bytes": shuffled,
        "build_hours": seconds / 3600,
        "serving_bytes": plan.bytes,
        "core_hours_per_billion": core_hours / (keys / 10**9),
        "dollars_per_billion": core_hours * rates.core_hour / (keys / 10**9),
    }


def table(rows: list[dict[str, Any]], cores: int) -> Table:
    """The rows for people."""
    from rich.table import Table

    shown = Table(title=f"a build on {cores} cores", title_justify="left")
    for name in ("keys", "way", "memory", "shards", "shuffle", "time", "$ per 10^9 keys"):
        shown.add_column(name, justify="right")
    for row in rows:
        shown.add_row(
            show_count(row["keys"]),
            row["way"],
            show_bytes(row["bytes"]),
            f"{row['shards']:,}",
            show_bytes(row["shuffle_bytes"]),
            _time(row["build_hours"]),
            f"{row['dollars_per_billion']:.3f}",
        )
    return shown


def assumptions(rates: Rates, kind: str) -> str:
    """What the numbers rest on."""
    return (
        f"one core: {rates.build / 1e6:g} M keys/s, to shards {rates.rows / 1e6:g} M, "
        f"{rates.shuffle / 1e6:g} MB/s of shuffle, "
        f"{rates.of_merging(kind) / 1e6:g} MB/s of merging; keys of {rates.key_bytes} bytes; "
        f"${rates.core_hour:g} a core and hour"
    )


def _time(hours: float) -> str:
    return f"{hours:,.1f} h" if hours >= 1 else f"{hours * 60:,.1f} min"
