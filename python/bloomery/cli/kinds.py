"""The kinds of filter the command line can make, and which options each of them takes.

A later structure joins `new`, `plan` and its comparison by one line here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from bloomery import BloomFilter, CountingBloomFilter, ScalableBloomFilter
from bloomery.cli.console import CommandError

Filter: TypeAlias = BloomFilter | ScalableBloomFilter | CountingBloomFilter


@dataclass(frozen=True)
class Kind:
    """One structure: its class and the sizing parameters that go with it."""

    cls: type[BloomFilter] | type[ScalableBloomFilter] | type[CountingBloomFilter]
    takes: frozenset[str]


KINDS = {
    "bloom": Kind(BloomFilter, frozenset({"layout", "bits", "hashes", "derivation"})),
    "scalable": Kind(ScalableBloomFilter, frozenset({"growth", "tightening", "derivation"})),
    "counting": Kind(
        CountingBloomFilter,
        frozenset({"layout", "counter_bits", "policy", "bits", "hashes", "derivation"}),
    ),
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
