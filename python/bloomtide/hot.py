"""`HotFilter`: a filter that decays and a hot list, kept in step.

The filter answers for every key, in bounded memory; the list says which keys are hottest. Every
event goes to both, and both fade at the ends of the same epochs and believe the same times, so they
count alike. `TimeDecayingBloomFilter.with_hot_list(k)` makes one.

A file is the filter's snapshot followed by the list's, under a header of their own.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from bloomtide._core import HotList, TimeDecayingBloomFilter, replace_file
from bloomtide.durable.disk import storage_errors
from bloomtide.errors import IncompatibleError, SnapshotError
from bloomtide.format import errors_at, seal, unseal
from bloomtide.records import Estimate, HotItem

_KIND = "hot filter"


class HotFilter:
    """A filter whose counts decay, and the keys that are hottest in it."""

    def __init__(self, filter: TimeDecayingBloomFilter, hot: HotList) -> None:
        """Two that fade alike; the list starts empty, whatever the filter holds."""
        if differs := _difference(filter, hot):
            field, expected, got = differs
            raise IncompatibleError(
                f"the filter fades with {field}={expected}, the list with {field}={got}",
                hint="`filter.with_hot_list(k)` makes a list that fades alike",
                field=field, expected=expected, got=got,
            )  # fmt: skip
        self.filter = filter
        self.hot = hot

    def add(self, key: str | bytes | int, count: int = 1, at: Any = None) -> bool:
        """Adds `count` occurrences; True iff the key was certainly absent before."""
        new = self.filter.add(key, count, at)
        self.hot.add(key, count, at)
        return new

    def add_many(self, keys: Any, counts: Any = None, at: Any = None, **words: Any) -> Any:
        """Adds every key in order; what the filter's `add_many` answers."""
        # Both must see the same keys, and an iterator can be read only once.
        keys = keys if hasattr(keys, "__getitem__") else list(keys)
        nulls = {name: word for name, word in words.items() if name == "nulls"}
        try:
            answers = self.filter.add_many(keys, counts, at, **words)
        except Exception:
            # A bad row stops both at the same place, so the rows before it are in both.
            with suppress(Exception):
                self.hot.add_many(keys, counts, at, **nulls)
            raise
        self.hot.add_many(keys, counts, at, **nulls)
        return answers

    def count(self, key: str | bytes | int, at: Any = None) -> float:
        """The decayed count, by the filter."""
        return self.filter.count(key, at)

    def rate(self, key: str | bytes | int, per: Any = "1h", at: Any = None) -> float:
        """Events in `per` time, by the filter."""
        return self.filter.rate(key, per, at)

    def contains_many(
        self, keys: Any, at: Any = None, *, nulls: Literal["refuse", "skip"] = "refuse",
        threads: int = 1,
    ) -> npt.NDArray[np.bool_]:  # fmt: skip
        """`key in filter` for every key, at one instant or each at its own, by the filter."""
        return self.filter.contains_many(keys, at, nulls=nulls, threads=threads)

    def count_many(
        self, keys: Any, at: Any = None, *, nulls: Literal["refuse", "skip"] = "refuse",
        threads: int = 1,
    ) -> npt.NDArray[np.float64]:  # fmt: skip
        """`count` for every key, by the filter."""
        return self.filter.count_many(keys, at, nulls=nulls, threads=threads)

    def rate_many(
        self, keys: Any, per: Any = "1h", at: Any = None, *,
        nulls: Literal["refuse", "skip"] = "refuse", threads: int = 1,
    ) -> npt.NDArray[np.float64]:  # fmt: skip
        """`rate` for every key, by the filter."""
        return self.filter.rate_many(keys, per, at, nulls=nulls, threads=threads)

    def estimate(self, key: str | bytes | int, at: Any = None) -> Estimate:
        """The certain bounds of the list."""
        return self.hot.estimate(key, at)

    def __contains__(self, key: str | bytes | int) -> bool:
        return key in self.filter

    def top(self, n: int | None = None, at: Any = None) -> list[HotItem]:
        """The hottest keys first."""
        return self.hot.top(n, at)

    def advance(self, now: Any = None) -> None:
        """Moves the time of both on."""
        self.filter.advance(now)
        self.hot.advance(now)

    def merge(self, other: HotFilter) -> None:
        """Takes the other's events in: both parts, or neither."""
        merged = self.hot | other.hot
        self.filter.merge(other.filter)
        self.hot = merged

    def copy(self) -> HotFilter:
        """A copy."""
        return HotFilter(self.filter.copy(), self.hot.copy())

    def clear(self) -> None:
        """Forgets every key."""
        self.filter.clear()
        self.hot.clear()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HotFilter):
            return NotImplemented
        return self.filter == other.filter and self.hot == other.hot

    __hash__ = None  # type: ignore[assignment]

    def to_bytes(self) -> bytes:
        """Both snapshots, one after the other."""
        filter = self.filter.to_bytes()
        return seal(_KIND, len(filter).to_bytes(8, "little"), filter, self.hot.to_bytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Reads what `to_bytes` returned."""
        return cls._of_bytes(data, None)

    @classmethod
    def _of_bytes(cls, data: bytes, path: str | None) -> Self:
        added, body = unseal(data, _KIND, path)
        length = int.from_bytes(added, "little")
        with errors_at(path):
            filter = TimeDecayingBloomFilter.from_bytes(body[:length])
            hot = HotList.from_bytes(body[length:])
            if differs := _difference(filter, hot):
                field, expected, got = differs
                raise SnapshotError(
                    f"its filter fades with {field}={expected}, its list with {field}={got}",
                    hint="restore it from a copy or build it again", path=None, offset=None,
                )  # fmt: skip
        return cls(filter, hot)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Replaces the file by both snapshots, atomically and durably."""
        replace_file(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads a file that `save` wrote."""
        with storage_errors(os.fspath(path), "read"):
            data = Path(path).read_bytes()
        return cls._of_bytes(data, os.fspath(path))

    def __repr__(self) -> str:
        return f"<HotFilter {self.filter!r} {self.hot!r}>"


def _difference(filter: TimeDecayingBloomFilter, hot: HotList) -> tuple[str, Any, Any] | None:
    """The parameter in which they fade unlike, and its value in both."""
    for field in ("epoch", "origin"):
        expected, got = getattr(filter, field), getattr(hot, field)
        if expected != got:
            return field, expected, got
    # Machines round the logarithm differently.
    if math.isclose(_half_life(filter), math.inf if hot.half_life is None else hot.half_life):
        return None
    return "half_life", filter.half_life, hot.half_life


def _half_life(filter: TimeDecayingBloomFilter) -> float:
    if filter.decay in (0.0, 1.0):
        return math.inf if filter.decay else 0.0
    return filter.half_life or filter.epoch * math.log(2) / -math.log(filter.decay)
