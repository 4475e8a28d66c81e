"""Choices that only an experiment of a paper makes, given to a constructor or `plan` as `paper=`.

    BloomFilter(1_000_000, 0.01, paper={"derivation": "double"})
    UrlFilter(1_000_000, paper={"bind": "xor"})

What they chose is in the plan, in the file and in the filter's `derivation` or `bind`.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias, TypedDict

Derivation: TypeAlias = Literal["enhanced", "double", "slices"]
Bind: TypeAlias = Literal["salted_xor", "ordered", "xor"]


class PaperOptions(TypedDict, total=False):
    """What `paper` may hold."""

    derivation: Derivation
    """How positions come from a digest: `"enhanced"` unless given. Every filter but `UrlFilter`."""
    bind: Bind
    """How segments of a URL become one digest: `"salted_xor"` unless given. `UrlFilter` only."""


class PartitionModel(Protocol):
    """What `partitions=` accepts beside a number: a model of `bloomtide.partitions`."""

    def choose(self, cells: int) -> int:
        """The number of partitions, from 1 to `cells`."""
        ...
