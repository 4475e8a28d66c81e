"""`RecentFilter`: seen within the last hours or days? A ring of filters, one per piece of time.

Time is cut into pieces of `within / generations`. Each piece has a filter of its own, made when its
first key comes, and the last `generations` pieces are asked beside the present one. So

1. a key is remembered for at least `within` after it was last added,
2. and for at most `within * (1 + 1 / generations)`, as far as no filter errs;
3. a key that was not added within that time is called seen with probability `error_rate` at most:
   each filter gets an equal share of the error. A piece of time that brings more keys than expected
   makes its filter grow (`ScalableBloomFilter`) and not lie.

Time is the latest instant given that is believed (`StreamTime`), or that of the clock. An event is
judged by its own time: it is new if it was not seen within `within` before or after that. A
late one is kept in its own piece of time, while that is remembered: for `lateness` longer than a
question about now needs it. Instants are kept to the microsecond.

Use `TimeDecayingBloomFilter` for how often, `BloomFilter` for seen ever.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from itertools import chain, pairwise
from math import ceil, prod
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bloomtide._core import (
    BloomFilter,
    ScalableBloomFilter,
    StreamTime,
    digest,
    parse_duration,
    parse_instant,
    replace_file,
)
from bloomtide.errors import (
    BloomtideError,
    InvariantError,
    ParameterError,
    SnapshotError,
    StorageError,
    nothing_added,
    require,
)
from bloomtide.format import seal, unseal
from bloomtide.plain import plain
from bloomtide.records import Stats

_KIND = "recent"
_MICRO = 1_000_000
_DAY = 86_400 * _MICRO
_MOST_AHEAD = 128

_ANY_KEY = BloomFilter(bits=64, hashes=1)
"""A full filter. Asked about a batch before anything changes, it refuses what is no key, with its
row, and calls every key seen but no null."""
_ANY_KEY.add_many(range(2000))


class RecentFilter:
    """Remembers each key for `within` of time after it was added."""

    def __init__(
        self,
        capacity: int,
        error_rate: float,
        *,
        within: Any = "7d",
        generations: int = 8,
        lateness: Any = 0,
        clock: Callable[[], Any] | None = None,
    ) -> None:
        """`capacity`: distinct keys expected in `within` of time; `lateness`: how late events may
        be that are judged by all that came within `within` of their own time.
        """
        generations = plain(generations)
        whole = type(generations) is int
        require(
            "generations", generations, "a whole number from 1 to 1024",
            whole and 1 <= generations <= 1024,
        )  # fmt: skip
        require("capacity", capacity, "a whole number, at least 1", capacity is not None)
        ScalableBloomFilter.plan(capacity, error_rate)
        require(
            "clock", clock, "a function that answers an instant", clock is None or callable(clock)
        )
        self.capacity = int(capacity)
        self.error_rate = float(error_rate)
        self.within = parse_duration(within, "within")
        self.generations = generations
        # One microsecond more than asked for: instants are cut to whole ones.
        self._span = ceil((ceil(self.within * _MICRO) + 1) / generations)
        self.lateness = 0.0 if lateness == 0 else parse_duration(lateness, "lateness")
        self._late_pieces = ceil(self.lateness * _MICRO / self._span)
        self._clock = clock or time.time
        self._filters: dict[int, ScalableBloomFilter] = {}
        self._begin(None)

    # --- time ---------------------------------------------------------------------------------

    def _begin(self, kept: Any) -> None:
        """Starts the time, or goes on with what was kept of it."""
        self._time = StreamTime(2 * self._span, kept)
        self._now: int | None = self._time.now
        """The stream's time as of the last event that went in."""
        self._earliest: int | None = self._time.earliest
        """The earliest time that it may turn out to be: what would be remembered then is kept."""
        self._allowed = -1
        """The latest instant that needs no look at the clock."""

    @property
    def time(self) -> float | None:
        """The latest instant that is believed, in seconds since 1970; None before the first."""
        now = self._time.presumed
        return None if now is None else now / _MICRO

    def _instant(self, at: Any) -> int:
        instant = parse_instant(self._clock() if at is None else at)
        require("at", at, "one instant", np.ndim(instant) == 0)
        return int(instant * _MICRO // 1)

    def _arrive(self, at: Any, events: int = 1) -> int:
        """Lets the time follow some events of one instant; the piece of time they belong to."""
        instant = self._instant(at)
        if at is None:
            # A clock that was set back says nothing about when the event was.
            instant = self._time.note_now(instant)
        else:
            self._look_at_clock(instant)
            instant = self._time.note(instant, events)
        self._move(self._time.now, self._time.earliest)
        return self._piece(instant)

    def _look_at_clock(self, latest: int) -> None:
        """Before an event that may be ahead of the clock."""
        if latest > self._allowed:
            now = self._instant(None)
            self._time.clock_is_at(now)
            self._allowed = now

    def _piece(self, instant: int) -> int:
        """The number of the piece of time that an instant belongs to.

        Wrong times could be in any number of pieces to come: more than `_MOST_AHEAD` of them are
        not kept, and an event of another one counts as of now.
        """
        number = instant // self._span
        present = instant if self._now is None else self._now // self._span
        ahead = sum(other > present for other in self._filters)
        if number > present and number not in self._filters and ahead >= _MOST_AHEAD:
            return present
        return number

    def _oldest(self) -> int | None:
        """The number of the oldest piece that is remembered; None before the first event."""
        if self._earliest is None:
            return None
        return self._earliest // self._span - self.generations - self._late_pieces

    def _move(self, now: int | None, earliest: int | None) -> None:
        """Moves the time on, and drops the pieces that are too old then."""
        self._now, self._earliest = now, earliest
        if (oldest := self._oldest()) is not None:
            for number in [number for number in self._filters if number < oldest]:
                del self._filters[number]

    def advance(self, now: Any = None) -> None:
        """Moves the time on, to the clock's if none is given, and forgets what is too old."""
        instant = self._instant(now)
        if now is not None:
            clock = self._instant(None)
            require(
                "now", now, "not later than the clock by more than a day",
                instant <= clock + _DAY, hint="to work with a time of your own, give its `clock`",
            )  # fmt: skip
        self._time.advance(instant)
        self._move(self._time.now, self._time.earliest)

    def _around(self, number: int) -> Iterator[tuple[int, ScalableBloomFilter]]:
        """The pieces within `within` of one of them, before and after it."""
        for other, part in self._filters.items():
            if abs(other - number) <= self.generations:
                yield other, part

    def _asked(self, at: Any) -> Iterator[ScalableBloomFilter]:
        """The pieces to be asked about an instant, or about now."""
        now, instant = self._now, self._instant(at)
        if at is None and now is not None:
            instant = max(instant, now)
        return (part for _, part in self._around(instant // self._span))

    def _new_part(self) -> ScalableBloomFilter:
        expected = ceil(self.capacity / self.generations)
        asked = self.generations + 1 + min(self.generations, self._late_pieces)
        share = max(self.error_rate / asked, 1e-15)
        return ScalableBloomFilter(expected, share)

    def _require_own(self, part: ScalableBloomFilter) -> None:
        """Refuses a filter of other goals than those of this one's pieces."""
        own = self._new_part()
        for name in ("capacity", "error_rate", "growth", "tightening", "hash", "seed"):
            if getattr(part, name) != getattr(own, name):
                raise ValueError(f"a piece has the {name} {getattr(part, name)}")

    def _part(self, number: int) -> ScalableBloomFilter | None:
        """The filter of a piece of time; None if that is forgotten already."""
        oldest = self._oldest()
        if oldest is None or number < oldest:
            return None
        if number not in self._filters:
            self._filters[number] = self._new_part()
        return self._filters[number]

    # --- verbs --------------------------------------------------------------------------------

    def add(self, key: str | bytes | int, at: Any = None, *, refresh: bool = True) -> bool:
        """Adds the key; True iff it was certainly not seen within the time.

        With `refresh=False` a key that is remembered keeps the time of its first sight, so it is
        new again after `within`, however often it is asked for meanwhile.
        """
        digest(key)  # refuses what is no key before anything changes
        number = self._arrive(at)
        seen = any(key in part for other, part in self._around(number) if other != number)
        if seen and not refresh:
            return False
        part = self._part(number)
        return (part is None or part.add(key)) and not seen

    def add_many(
        self, keys: Any, at: Any = None, *, refresh: bool = True, **words: Any
    ) -> npt.NDArray[np.bool_]:
        """Adds every key in order; what `add` answers for each. `at` is one instant or one a key.

        A bad row is refused before anything changes.
        """
        keys = _again(keys)
        try:
            answers = np.zeros(len(_ANY_KEY.contains_many(keys, **words)), dtype=np.bool_)
        except BloomtideError as error:
            nothing_added(error)
            raise
        instants: Any = None if at is None else parse_instant(at)
        if np.ndim(instants) == 0:  # None, or one instant for all
            if len(answers):
                number = self._arrive(instants, len(answers))
                answers[:] = self._add_run(keys, number, refresh, words)
            return answers
        require("at", len(instants), "one instant, or one for each key", len(instants) == len(keys))
        if len(answers) == 0:
            return answers
        own = np.floor(instants * _MICRO).astype(np.int64)
        self._look_at_clock(int(own.max()))
        own, after, earliest = self._time.note_many(own)
        # Neighbours of one piece of time, at one piece of time, go together.
        pieces = (np.diff(times // self._span) != 0 for times in (own, after, earliest))
        edges = chain(
            [0], (np.flatnonzero(np.logical_or.reduce(list(pieces))) + 1).tolist(), [len(own)]
        )
        for first, end in pairwise(edges):
            self._move(int(after[end - 1]), int(earliest[end - 1]))
            number = self._piece(int(own[first]))
            answers[first:end] = self._add_run(keys[first:end], number, refresh, words)
        return answers

    def _add_run(
        self, keys: Any, number: int, refresh: bool, words: dict[str, Any]
    ) -> npt.NDArray[np.bool_]:
        """Adds keys of one piece of time."""
        seen = np.zeros(len(keys), dtype=np.bool_)
        for other, part in self._around(number):
            if other != number:
                seen |= part.contains_many(keys, **words)
        if not refresh and seen.all():
            return ~seen
        target = self._part(number)
        if target is None:
            return _ANY_KEY.contains_many(keys, **words) & ~seen
        if refresh or not seen.any():
            return target.add_many(keys, **words) & ~seen
        answers = np.zeros(len(keys), dtype=np.bool_)
        rows = np.flatnonzero(~seen)
        answers[rows] = target.add_many(_rows_of(keys, rows), **words)
        return answers

    def contains(self, key: str | bytes | int, at: Any = None) -> bool:
        """Whether the key was seen within the time before or after `at`, or before now. Changes
        nothing.
        """
        digest(key)
        return any(key in part for part in self._asked(at))

    def __contains__(self, key: str | bytes | int) -> bool:
        return self.contains(key)

    def contains_many(self, keys: Any, at: Any = None, **words: Any) -> npt.NDArray[np.bool_]:
        """What `contains` answers for each key, at one instant or each at its own."""
        keys = _again(keys)
        seen = np.zeros(len(_ANY_KEY.contains_many(keys, **words)), dtype=np.bool_)
        instants: Any = None if at is None else parse_instant(at)
        if np.ndim(instants) == 0:
            for part in self._asked(instants):
                seen |= part.contains_many(keys, **words)
            return seen
        require("at", len(instants), "one instant, or one for each key", len(instants) == len(keys))
        pieces = np.floor(instants * _MICRO).astype(np.int64) // self._span
        for number in np.unique(pieces).tolist():
            rows = np.flatnonzero(pieces == number)
            asked = _rows_of(keys, rows)
            for _, part in self._around(number):
                seen[rows] |= part.contains_many(asked, **words)
        return seen

    def clear(self) -> None:
        """Forgets every key, and keeps its time."""
        self._filters.clear()

    def stats(self) -> Stats:
        """What all pieces of time are like together; `layers` has each of them, oldest first."""
        layers = tuple(self._filters[number].stats() for number in sorted(self._filters))
        cells = sum(layer.cells for layer in layers)
        return Stats(
            kind="recent",
            items=sum(layer.items for layer in layers),
            capacity=self.capacity,
            error_rate=self.error_rate,
            predicted_error=1 - prod(1 - layer.predicted_error for layer in layers),
            fill=sum(layer.fill * layer.cells for layer in layers) / cells if cells else 0.0,
            cells=cells,
            hashes=max((layer.hashes for layer in layers), default=0),
            counter_bits=1,
            bytes=sum(layer.bytes for layer in layers),
            rebuilds=sum(layer.rebuilds for layer in layers),
            layers=layers,
            late=self._time.late,
            clock_jumps=self._time.clock_jumps,
            ahead=self._time.ahead,
            aside=self._time.aside,
        )

    def validate(self) -> None:
        """Raises `InvariantError` if a filter is damaged or belongs to no remembered time."""
        for part in self._filters.values():
            part.validate()
        oldest = self._oldest()
        if self._filters and (oldest is None or min(self._filters) < oldest):
            raise InvariantError(
                "a filter belongs to a time that is not remembered", invariant="generations"
            )

    def copy(self) -> Self:
        """An independent filter with the same content and the same clock."""
        return self.from_bytes(self.to_bytes(), clock=self._clock)

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Self:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        # A clock stays where it is, as that of every filter.
        return type(self).from_bytes, (self.to_bytes(),)

    # --- files --------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The header with the parameters, the snapshot of each filter, and a checksum."""
        parts = {number: self._filters[number].to_bytes() for number in sorted(self._filters)}
        about = {
            "capacity": self.capacity,
            "error_rate": self.error_rate,
            "within": self.within,
            "generations": self.generations,
            "lateness": self.lateness,
            "time": self._time.kept,
            "parts": [[number, len(data)] for number, data in parts.items()],
        }
        return seal(_KIND, json.dumps(about).encode(), *parts.values())

    @classmethod
    def from_bytes(cls, data: bytes, *, clock: Callable[[], Any] | None = None) -> Self:
        """Reads what `to_bytes` returned, and refuses anything else."""
        return cls._of_bytes(data, None, clock)

    @classmethod
    def _of_bytes(cls, data: bytes, path: object, clock: Callable[[], Any] | None) -> Self:
        added, body = unseal(data, _KIND, path)
        try:
            return cls._read(json.loads(added), body, clock)
        except (
            InvariantError,
            LookupError,
            OverflowError,
            ParameterError,
            TypeError,
            ValueError,
        ) as error:
            if isinstance(error, SnapshotError):
                raise
            raise SnapshotError(
                f"its parameters make no filter: {error}",
                hint="restore it from a copy or build it again",
                path=None if path is None else str(path), offset=None,
            ) from error  # fmt: skip

    @classmethod
    def _read(cls, about: Any, body: memoryview, clock: Callable[[], Any] | None) -> Self:
        """Reads what passed its checksum; it may still be made up."""
        made = cls(
            about["capacity"],
            about["error_rate"],
            within=about["within"],
            generations=about["generations"],
            lateness=about["lateness"],
            clock=clock,
        )
        made._begin(tuple(about["time"]))
        offset = 0
        for number, length in about["parts"]:
            # Oldest first, so none comes twice.
            if made._filters and number <= max(made._filters):
                raise ValueError(f"piece {number} of the time stands behind {max(made._filters)}")
            part = ScalableBloomFilter.from_bytes(body[offset : offset + length])
            made._require_own(part)
            made._filters[number] = part
            offset += length
        if offset != len(body):
            raise ValueError(f"{len(body) - offset} bytes too many")
        made.validate()
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Replaces the file, atomically and durably."""
        replace_file(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, clock: Callable[[], Any] | None = None) -> Self:
        """Reads a file that `save` wrote."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise StorageError(
                f"cannot read {os.fspath(path)}: {error.strerror}",
                path=os.fspath(path),
                operation="read",
            ) from error
        return cls._of_bytes(data, os.fspath(path), clock)

    def __repr__(self) -> str:
        return (
            f"<RecentFilter capacity={self.capacity} error_rate={self.error_rate}"
            f" within={self.within}s generations={self.generations}>"
        )


def _again(keys: Any) -> Any:
    """Keys that can be read twice. An error of the caller's iterator tells that none went in."""
    if not hasattr(keys, "__iter__") or (hasattr(keys, "__len__") and hasattr(keys, "__getitem__")):
        return keys
    try:
        return list(keys)
    except BaseException as error:
        nothing_added(error)
        raise


def _rows_of(keys: Any, rows: npt.NDArray[np.intp]) -> Any:
    """Some rows of a batch, as a batch of the same kind."""
    if isinstance(keys, (list, tuple)):
        return [keys[row] for row in rows]
    # NumPy, pandas and pyarrow say `take`, polars says `gather`.
    return (keys.take if hasattr(keys, "take") else keys.gather)(rows)
