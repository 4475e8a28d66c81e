"""`HotFilter`: a filter that decays and a hot list, kept in step.

The filter answers for every key, in bounded memory; the list says which keys are hottest. Every
event goes to both, and both fade at the ends of the same epochs and believe the same times, so they
count alike. `TimeDecayingBloomFilter.with_hot_list(k)` makes one.

A file is the filter's snapshot followed by the list's, under a header of their own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from bloomtide._core import (
    BloomFilter,
    HotList,
    TimeDecayingBloomFilter,
    parse_instant,
    replace_file,
)
from bloomtide.durable.disk import storage_errors
from bloomtide.errors import (
    IncompatibleError,
    OverfullWarning,
    ParameterError,
    SnapshotError,
    with_added,
)
from bloomtide.format import errors_at, seal, unseal
from bloomtide.records import Estimate, HotItem

_KIND = "hot filter"

_ANY = BloomFilter(bits=64, hashes=1)
"""Refuses the words of a batch that any filter refuses."""


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

    # An error must leave both parts as they were. The list refuses all that the filter refuses but
    # instants far from the filter's own time and the words of a batch. So these are tried on the
    # filter with no key; then the list is changed, then the filter.

    def add(self, key: str | bytes | int, count: int = 1, at: Any = None) -> bool:
        """Adds `count` occurrences; True iff the key was certainly absent before."""
        if at is not None:
            instant = parse_instant(at)
            # A column is refused by the list.
            if isinstance(instant, float):
                self.filter.add_many((), None, instant)
        self.hot.add(key, count, at)
        return self.filter.add(key, count, at)

    def add_many(self, keys: Any, counts: Any = None, at: Any = None, **words: Any) -> Any:
        """Adds every key in order; what the filter's `add_many` answers."""
        if words:
            _ANY.contains_many((), **words)
        # Both parts must see the same rows, and an iterator can be read only once.
        counts = list(counts) if hasattr(counts, "__next__") else counts
        at = None if at is None else parse_instant(at)
        alone = counts is None and (at is None or isinstance(at, float))
        keys, error = _rows(keys)
        if error is not None and not alone:
            raise with_added(error, 0)
        self._require_near(at)
        answers = self._add_rows(keys, counts, at, words)
        if error is not None:
            raise with_added(error, len(keys))
        return answers

    def _add_rows(self, keys: Any, counts: Any, at: Any, words: dict[str, Any]) -> Any:
        nulls = {name: word for name, word in words.items() if name == "nulls"}
        try:
            self.hot.add_many(keys, counts, at, **nulls)
        except Exception as error:
            if getattr(error, "added", None):
                # A bad row stops both at the same place, so the rows before it are in both.
                with suppress(Exception):
                    self.filter.add_many(keys, counts, at, **words)
            raise
        return self.filter.add_many(keys, counts, at, **words)

    def _require_near(self, at: float | npt.NDArray[np.float64] | None) -> None:
        """Refuses the instants that the filter refuses."""
        if at is None or np.size(at) == 0:
            return
        try:
            # The first and the last are the farthest from any time.
            for instant in {float(np.min(at)), float(np.max(at))}:
                self.filter.add_many((), None, instant)
        except ParameterError:
            # Says which row it is.
            if not isinstance(at, float):
                self.filter.add_many([None] * len(at), None, at, nulls="skip")
            raise

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
        """The bounds of the list. They hold for what was added since the list was made."""
        return self.hot.estimate(key, at)

    def __contains__(self, key: str | bytes | int) -> bool:
        return key in self.filter

    def top(self, n: int | None = None, at: Any = None) -> list[HotItem]:
        """The hottest keys first."""
        return self.hot.top(n, at)

    def advance(self, now: Any = None) -> None:
        """Moves the time of both on."""
        if now is not None:
            # The list may refuse a time that the filter takes, since epochs are coarser.
            self.hot.copy().advance(now)
        self.filter.advance(now)
        self.hot.advance(now)

    def merge(self, other: HotFilter) -> None:
        """Takes the other's events in: both parts, or neither."""
        _require_own(other)
        merged = self.hot | other.hot
        try:
            self.filter.merge(other.filter)
        except OverfullWarning:
            # The user made it an error; the filter is merged.
            self.hot = merged
            raise
        self.hot = merged

    def copy(self) -> HotFilter:
        """A copy."""
        return HotFilter(self.filter.copy(), self.hot.copy())

    def __copy__(self) -> HotFilter:
        return self.copy()

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
    def from_bytes(cls, data: bytes, *, clock: Callable[[], Any] | None = None) -> Self:
        """Reads what `to_bytes` returned."""
        return cls._of_bytes(data, None, clock)

    @classmethod
    def _of_bytes(cls, data: bytes, path: str | None, clock: Callable[[], Any] | None) -> Self:
        added, body = unseal(data, _KIND, path)
        length = int.from_bytes(added, "little")
        with errors_at(path):
            filter = TimeDecayingBloomFilter.from_bytes(body[:length], clock=clock)
            hot = HotList.from_bytes(body[length:], clock=clock)
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
    def load(cls, path: str | os.PathLike[str], *, clock: Callable[[], Any] | None = None) -> Self:
        """Reads a file that `save` wrote."""
        with storage_errors(os.fspath(path), "read"):
            data = Path(path).read_bytes()
        return cls._of_bytes(data, os.fspath(path), clock)

    def __repr__(self) -> str:
        return f"<HotFilter {self.filter!r} {self.hot!r}>"


def _require_own(other: object) -> None:
    """Refuses what is no `HotFilter`, as the compiled classes do."""
    if isinstance(other, HotFilter):
        return
    got = type(other).__qualname__
    if type(other).__module__.partition(".")[0] != "bloomtide":
        raise TypeError(f"'{got}' object is not an instance of 'HotFilter'")
    raise IncompatibleError(
        f"`kind` differs: HotFilter here, {got} there",
        hint="make both filters with the same parameters and the same seed",
        field="kind", expected="HotFilter", got=got,
    )  # fmt: skip


def _rows(keys: Any) -> tuple[Any, BaseException | None]:
    """Keys that can be read twice, and what ended an iterator too early."""
    if hasattr(keys, "read_all") and hasattr(keys, "__arrow_c_stream__"):
        return keys.read_all(), None  # a reader of pyarrow
    again = ("__getitem__", "__arrow_c_stream__", "__arrow_c_array__")
    if not hasattr(keys, "__next__") and any(hasattr(keys, name) for name in again):
        return keys, None
    try:
        iterator = iter(keys)
    except TypeError:
        return keys, None  # the list says what it is
    rows: list[Any] = []
    try:
        rows.extend(iterator)
    except BaseException as error:  # noqa: BLE001 - raised again when the rows before it are in
        return rows, error
    return rows, None


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
