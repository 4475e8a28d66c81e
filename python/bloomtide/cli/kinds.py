"""The kinds of filter the command line can make, and which options each of them takes.

A later structure joins `new`, `plan` and its comparison by one line here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from bloomtide import (
    BloomFilter,
    CountFilter,
    CountingBloomFilter,
    DynamicCountFilter,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    ScalableBloomFilter,
    SpectralBloomFilter,
    TimeDecayingBloomFilter,
    UrlFilter,
)
from bloomtide.cli.console import CommandError
from bloomtide.cli.instants import show_when
from bloomtide.errors import ParameterError

Counting: TypeAlias = CountingBloomFilter | CountFilter | TimeDecayingBloomFilter
Filter: TypeAlias = BloomFilter | ScalableBloomFilter | UrlFilter | Counting


@dataclass(frozen=True)
class Kind:
    """One structure: its class and the sizing parameters that go with it."""

    cls: Any
    takes: frozenset[str]


_COUNTERS = frozenset({"layout", "policy", "cells", "hashes"})
_GROWING = _COUNTERS | {"total"}
_SPECTRAL = _GROWING | {"slack"}
_DYNAMIC = _GROWING | {"counter_bits", "shrink"}
_FADING = frozenset({"half_life", "decay", "epoch", "rounding", "storage"})

KINDS = {
    "bloom": Kind(BloomFilter, frozenset({"layout", "bits", "hashes"})),
    "scalable": Kind(ScalableBloomFilter, frozenset({"growth", "tightening"})),
    "counting": Kind(CountingBloomFilter, _COUNTERS | {"counter_bits"}),
    "sbf": Kind(SpectralBloomFilter, _SPECTRAL),
    "dcf": Kind(DynamicCountFilter, _DYNAMIC),
    "psbf": Kind(PartitionedSpectralBloomFilter, _SPECTRAL | {"partitions"}),
    "pdcf": Kind(PartitionedDynamicCountFilter, _DYNAMIC | {"partitions"}),
    "tbf": Kind(TimeDecayingBloomFilter, _COUNTERS | {"counter_bits"} | _FADING),
    "url": Kind(UrlFilter, frozenset({"max_layers", "layer_sizes"})),
}

EVERY_KIND_TAKES = frozenset({"capacity", "error_rate", "hash", "seed"})


def parameters(kind: str, **given: Any) -> dict[str, Any]:
    """The parameters that were given; refuses one that the kind does not have."""
    chosen = {name: value for name, value in given.items() if value is not None}
    for name in chosen:
        if name not in KINDS[kind].takes | EVERY_KIND_TAKES:
            owners = [other for other in KINDS if name in KINDS[other].takes]
            raise CommandError(
                f"--{name.replace('_', '-')} does not go with --kind {kind}",
                hint=f"it goes with --kind {' or '.join(owners)}",
            )
    return chosen


def at_instant(filter: Filter, file: Path, at: float | None) -> dict[str, float]:
    """The keyword that says when, for filters that keep time; refuses it for others."""
    if at is None:
        return {}
    if isinstance(filter, TimeDecayingBloomFilter):
        return {"at": at}
    raise CommandError(
        f"{file} holds a {filter.stats().kind} filter, which keeps no time",
        hint="leave out --at, or make a filter with --kind tbf --half-life 1h",
    )


@contextmanager
def by_date(filter: Filter, at: float | None) -> Iterator[None]:
    """Tells of an instant that a filter refuses by dates; the library tells it by seconds."""
    try:
        yield
    except ParameterError as problem:
        own = getattr(filter, "time", None)
        if at is None or own is None or problem.name != "at":
            raise
        raise CommandError(
            f"--at {show_when(at)} must be {problem.allowed}, {show_when(own)}", hint=problem.hint
        ) from None


def require_counting(filter: Filter, file: Path) -> Counting:
    """The filter, if it counts."""
    if isinstance(filter, CountingBloomFilter | CountFilter | TimeDecayingBloomFilter):
        return filter
    raise CommandError(
        f"{file} holds a {filter.stats().kind} filter, which does not count",
        hint="`bloomtide new FILE --kind counting` makes one that does",
    )
