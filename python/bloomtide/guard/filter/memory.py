"""`Memory`: the filters and numbers of a `KeyFilter` of one process alone.

`SharedFiles` (`files.py`) has the same methods for all processes of a machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import IntEnum
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from bloomtide._core import ScalableBloomFilter
from bloomtide.guard.writes.transaction import Key

Scan = Callable[[], Iterable[Sequence[Key]]]
"""Opens the reading of all keys, in batches; called once the new filter is there."""
Progress = Callable[[int, int | None], None]
"""Called after each batch with the keys read so far and the number expected, if known."""


class Word(IntEnum):
    """The numbers, by their place."""

    CURRENT = 0
    """Generation in use, which answers; 0: none, every key may exist."""
    BUILDING = 1
    """Generation that is being built; 0: none."""
    LATEST = 2
    """The largest number a generation ever had; a build takes the next one when it begins."""
    EPOCH = 3
    """Of the sections (`locks.py`)."""
    DOUBTS = 4
    """How often keys were written that nobody saw."""
    STALE = 5
    """Rows deleted whose keys are still inside."""
    BUILDS = 6
    """Generations that came into use."""
    BUILD_NANOSECONDS = 7
    """What the latest of them took."""
    BUILT_AT = 8
    """When the scan of the generation in use began, as below."""
    FRESH_UNTIL = 9
    """Nanoseconds of the monotonic clock, which all processes of a machine share; 0: for ever."""


class Numbers:
    """What the numbers say of other writers; the same for all processes."""

    words: Any

    @property
    def fresh_until(self) -> float | None:
        """Until when answers may be given, on the monotonic clock; None: for ever."""
        nanoseconds = self.words[Word.FRESH_UNTIL]
        return nanoseconds / 1e9 if nanoseconds else None

    @fresh_until.setter
    def fresh_until(self, moment: float) -> None:
        self.words[Word.FRESH_UNTIL] = max(int(moment * 1e9), 1)

    @property
    def built_at(self) -> float:
        """When the scan of the filter in use began, if somebody keeps it up; else 0."""
        return float(self.words[Word.BUILT_AT] / 1e9)

    @built_at.setter
    def built_at(self, moment: float) -> None:
        self.words[Word.BUILT_AT] = int(moment * 1e9)


class Without:
    """A filter without some of its keys."""

    def __init__(self, filter_: Any, gone: set[Key]) -> None:
        self._filter = filter_
        self._gone = gone

    def __contains__(self, key: Key) -> bool:
        return key in self._filter and key not in self._gone

    def contains_many(self, keys: Sequence[Key]) -> npt.NDArray[np.bool_]:
        there = np.fromiter((key not in self._gone for key in keys), np.bool_, len(keys))
        found: npt.NDArray[np.bool_] = self._filter.contains_many(keys) & there
        return found


class Memory(Numbers):
    """Filters that grow, and plain numbers."""

    room = 1.25
    """A filter is made for this many times the keys expected."""

    def __init__(self) -> None:
        self.words = [0] * len(Word)
        self.reason = ""
        """Why the keys are unknown; empty if they are not."""
        self.position: str | None = None
        """How far the changes of other writers are inside."""
        self._filters: dict[int, ScalableBloomFilter] = {}
        self._uncertain: set[Key] = set()
        self._lock = Lock()

    @contextmanager
    def lock(self) -> Iterator[list[int]]:
        """No other thread changes any number meanwhile."""
        with self._lock:
            yield self.words

    def make(self, number: int, capacity: int, error_rate: float) -> ScalableBloomFilter:
        """The empty filter of a new generation."""
        self._filters[number] = ScalableBloomFilter(capacity, error_rate)
        return self._filters[number]

    def filter(self, number: int) -> ScalableBloomFilter | None:
        """The filter of a generation, if it is there."""
        return self._filters.get(number)

    def remove(self, number: int) -> None:
        """Who is asking it at this moment can finish."""
        self._filters.pop(number, None)

    def keep_only(self, *numbers: int) -> None:
        """Nobody else removes any."""

    def building(self) -> AbstractContextManager[None]:
        """Held by the one process that builds."""
        return nullcontext()

    def is_building(self) -> bool:
        return True

    def settle(self, begin: Callable[[], None]) -> None:
        """Makes a new generation known; no other process commits anything."""
        begin()

    def hold_blind(self, blind: bool) -> None:
        """Says whether a transaction is open here whose keys nobody knows."""

    def is_blind(self) -> bool:
        """Whether such a transaction is open in any process."""
        return False

    def remember(self, keys: Iterable[Key]) -> None:
        """Keys that may be committed yet, as far as anybody knows; every generation gets them."""
        self._uncertain.update(keys)

    def remembered(self) -> list[Key]:
        return list(self._uncertain)

    def may_follow(self) -> bool:
        """Whether this process is the one that reads changes."""
        return True

    def after_fork(self) -> None:
        """In the child: the parent goes on adding keys that this copy will never see."""
        self._lock = Lock()
        self.words[Word.CURRENT] = self.words[Word.BUILDING] = 0

    def detach(self) -> None:
        self._filters = {}
