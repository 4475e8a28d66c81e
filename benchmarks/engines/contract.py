"""What a library must offer to take part: the same few functions, or None where it lacks one.

Each library's file writes out its own loops. A loop shared by all would be unfair: CPython
specialises the call inside a loop for the type it saw first, and the next library would pay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

Filter: TypeAlias = Any
"""A library's own object; only its engine file knows its type."""
OneByOne: TypeAlias = Callable[[Filter, list[str]], None]
"""A Python loop with one call of the library for each key."""
Batch: TypeAlias = Callable[[Filter, Any, int], object]
"""All keys in one call (filter, keys, threads)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """A set that may err: add and query."""

    name: str
    package: str
    """The distribution whose version is reported."""
    build: Callable[[int, float], Filter]
    """(capacity, error_rate) -> an empty filter."""
    add_each: OneByOne
    query_each: OneByOne
    bits: Callable[[Filter], int]
    """Memory of the cells, in bits."""
    add_list: Batch | None = None
    query_list: Batch | None = None
    add_arrow: Batch | None = None
    query_arrow: Batch | None = None
    fill: Callable[[Filter, int], None] | None = None
    """Adds the integers below a number, as fast as the library can; None when that takes hours."""
    slow: bool = False
    """Microseconds a key: one round is enough."""
    lacks: str = ""
    """What it cannot do, in plain words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """Counters that may err: add and count."""

    name: str
    package: str
    build: Callable[[int, float], Filter]
    """(distinct keys, error_rate) -> empty counters."""
    add_each: OneByOne
    count_each: OneByOne
    count: Callable[[Filter, str], int]
    """One key's count, for checking the answers."""
    bits: Callable[[Filter], int]
    ceiling: int | None = None
    """The largest count a cell can hold; None when it is out of reach."""
    add_list: Batch | None = None
    count_list: Batch | None = None
    add_arrow: Batch | None = None
    count_arrow: Batch | None = None
    sized_by_memory: bool = False
    """Whether it got a number of bits instead of an error rate, so that its error may be any."""
    lacks: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hot:
    """A list of the most frequent keys."""

    name: str
    package: str
    build: Callable[[int], Filter]
    """(keys in the list) -> an empty list with at least as many places."""
    add_each: OneByOne
    top: Callable[[Filter, int], list[str]]
    """The hottest keys, for checking the answers."""
    add_list: Batch | None = None
    add_arrow: Batch | None = None
    lacks: str = ""


@dataclass(frozen=True, slots=True)
class Missing:
    """A library that is not installed here, so it was not measured."""

    name: str
    reason: str
