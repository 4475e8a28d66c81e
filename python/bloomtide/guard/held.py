"""`HeldKeys`: the keys a guard holds, in a filter that is replaced as a whole. Knows no SQL.

The rule that never breaks: while the state is READY, the filter holds every committed key. Whoever
writes a row says so before it is committed; `rebuild` keeps the rule while a new filter is read:

1. The new filter exists before the first key is read. From then on every added key goes to both.
2. Then it gets the keys of all transactions that are open: the scan may be too early for them, and
   their writes came too early for the new filter. A writer lists its keys, then looks which filters
   there are; a build shows its filter, then looks who has listed what. So one of them sees the
   other, and a writer needs no lock.
3. Who cannot name the keys it writes calls `distrust`, and stays `blind` until it has ended. A
   build that meets one of these is thrown away.

So a filter that is put to use misses nothing, and one that may miss something is not asked.

Removals need counters and certainty: see `pending.py`. `shared.py` has the same for many processes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Literal
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from bloomtide._core import CountingBloomFilter, ScalableBloomFilter
from bloomtide.errors import AbsentKeyError, require
from bloomtide.guard.pending import Key, Pending, disowned
from bloomtide.guard.state import HeldStats, State

Filter = ScalableBloomFilter | CountingBloomFilter
Scan = Callable[[], Iterable[Sequence[Key]]]
"""Opens the reading of all keys, in batches; called once the new filter is there."""
Progress = Callable[[int, int | None], None]
"""Called after each batch with the keys read so far and the number expected, if known."""

_ATTEMPTS = 3
"""Builds that are tried before giving up, if unseen writes spoil each."""
_ROOM = 1.25
"""A filter is made for this much more than the keys expected."""
_STALE = 0.25
"""Deleted rows, as a share of the keys, that make a rebuild worth its while."""
_FEW = 32
"""Below this many keys, a call for each is quicker than a batch."""


class HeldKeys:
    """The set of keys of one column, and whether it can be trusted. Safe to use from any thread."""

    shared = False

    def __init__(
        self,
        error_rate: float = 0.01,
        *,
        capacity: int | None = None,
        removals: Literal["never", "commit"] = "never",
    ) -> None:
        require("removals", removals, '"never" or "commit"', removals in ("never", "commit"))
        require("capacity", capacity, "at least 1", capacity is None or capacity >= 1)
        self.error_rate = error_rate
        self.capacity = capacity
        self.removals = removals
        self._make(None)  # refuses a bad error rate now, not at the first build
        self._lock = threading.Lock()
        self._one_build = threading.Lock()
        self._filter: Filter | None = None
        self._next: Filter | None = None
        self._live: tuple[Filter, ...] = ()
        """Those that get every key: the one in use and the one that is being built."""
        self._trusted: Filter | None = None
        """The filter that is asked; None lets everything pass. All that a question looks at."""
        self.pendings: WeakSet[Pending] = WeakSet()
        """All that somebody has. One that is forgotten belonged to a connection that is gone."""
        self._uncertain: set[Key] = set()
        """Keys of commits that failed, as far as anybody knows; every new filter gets them."""
        self._doubts = 0
        self._holds = 0
        self._generation = 0
        self._reason = "not built yet"
        self._removed = 0
        self._stale = 0
        self._paused = ""
        self.fresh_until = inf
        """Until when answers may be given, on the monotonic clock; see `follow.py`."""
        self.built_at = 0.0
        self.position: str | None = None
        """How far the changes of others are inside; see `others.py`."""
        self._rebuilds = 0
        self._rebuild_seconds = 0.0

    def _make(self, expected: int | None) -> Filter:
        wanted = max(self.capacity or 1024, int((expected or 0) * _ROOM))
        if self.removals == "commit":
            return CountingBloomFilter(wanted, self.error_rate)
        return ScalableBloomFilter(wanted, self.error_rate)

    # --- questions ----------------------------------------------------------------------------

    def may_exist(self, key: Key) -> bool:
        """False only if the key is certainly not committed."""
        trusted = self._trusted
        return trusted is None or key in trusted

    def may_exist_many(self, keys: Sequence[Key]) -> npt.NDArray[np.bool_]:
        """What `may_exist` answers for each key."""
        trusted = self._trusted
        if trusted is None:
            return np.ones(len(keys), dtype=np.bool_)
        return trusted.contains_many(keys)

    @property
    def trusted(self) -> bool:
        """Whether `may_exist` can answer False now."""
        return self._trusted is not None

    @property
    def state(self) -> State:
        if self._filter is not None:
            return State.DEGRADED if self._paused else State.READY
        if self._next is not None:
            return State.BUILDING
        return State.DEGRADED if self._rebuilds else State.UNKNOWN

    @property
    def generation(self) -> int:
        """The number of the filter in use."""
        return self._generation

    # --- writes -------------------------------------------------------------------------------

    def _publish(self) -> None:
        """Whatever has changed becomes known, to each other thread at one moment."""
        self._live = tuple(each for each in (self._filter, self._next) if each is not None)
        self._trusted = None if self._holds or self._paused else self._filter

    def write(self, pending: Pending, keys: Sequence[Key]) -> None:
        """Adds keys that an open transaction writes."""
        pending.keys.extend(keys)  # first, see above
        if len(pending.keys) > pending.most:
            pending.unlist()
        for each in self._live:
            if len(keys) < _FEW:
                for key in keys:
                    each.add(key)
            else:
                each.add_many(keys)

    def write_one(self, pending: Pending, key: Key) -> None:
        """As `write`, for most statements write one row."""
        keys = pending.keys
        keys.append(key)  # first, see above
        if len(keys) > pending.most:
            pending.unlist()
        for each in self._live:
            each.add(key)

    def add_many(self, keys: Sequence[Key]) -> None:
        """Adds keys that are committed already."""
        for each in self._live:
            each.add_many(keys)

    def remove_many(self, keys: Iterable[Key], generation: int | None = None) -> None:
        """Takes keys out whose rows are gone for good; each was added once for its row.

        Only a filter that counts can do that, and only the one of that `generation`: a newer one
        may have been read when the rows were gone already. Otherwise the keys stay, as stale ones.
        """
        with self._lock:
            current = generation is None or generation == self._generation
            for key in keys:
                if not (current and isinstance(self._filter, CountingBloomFilter)):
                    self._stale += 1
                    continue
                try:
                    self._filter.remove(key)
                    self._removed += 1
                except AbsentKeyError:
                    self._distrust("a row was deleted whose key the filter did not hold")

    def count_stale(self, rows: int) -> None:
        """So many rows were deleted, and their keys stay inside."""
        with self._lock:
            self._stale += rows

    def distrust(self, reason: str) -> None:
        """Keys were written that nobody saw: everything passes until a rebuild."""
        with self._lock:
            self._distrust(reason)

    def _distrust(self, reason: str) -> None:
        self._doubts += 1
        self._filter = None
        self._reason = reason
        self._publish()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Everything passes meanwhile: keys become visible that are known only afterwards."""
        with self._lock:
            self._holds += 1
            self._publish()
        try:
            yield
        finally:
            with self._lock:
                self._holds -= 1
                self._publish()

    def pause(self, reason: str) -> None:
        """Everything passes until `resume`: what is inside may be out of date."""
        with self._lock:
            self._paused = reason
            self._publish()

    def resume(self) -> None:
        with self._lock:
            self._paused = ""
            self._publish()

    @property
    def rebuilding(self) -> bool:
        return self._next is not None

    def may_follow(self) -> bool:
        """Whether to read the changes of others: nobody else does it for these keys."""
        return True

    # --- transactions -------------------------------------------------------------------------

    def begin(self) -> Pending:
        """For the writes of one transaction at a time. Whoever drops it has rolled back."""
        pending = Pending(self)
        with self._lock:
            self.pendings.add(pending)
        return pending

    def keep(self, pending: Pending) -> None:
        """Nobody knows how the transaction ends: its keys go into every new filter."""
        with self._lock:
            self._uncertain.update(pending.keys)
            if pending.unlisted:
                self._distrust("a commit of very many keys failed")

    def after_fork(self) -> None:
        """In a new process: the parent goes on adding keys that this copy will never see."""
        self._lock, self._one_build = threading.Lock(), threading.Lock()
        self.pendings = disowned(self.pendings)
        self._next = None
        self._holds = 0
        self._distrust("this process was forked from the one that built the filter")

    def detach(self) -> None:
        """Nobody keeps it up any more."""
        self.distrust("the guard is closed")

    # --- building -----------------------------------------------------------------------------

    def may_join(self) -> bool:
        """Whether another process has built already."""
        return False

    def rebuild(
        self, scan: Scan, *, expected: int | None = None, progress: Progress | None = None
    ) -> bool:
        """Reads all keys into a second filter and puts it to use; False if unseen writes spoil it.

        Meanwhile the filter in use goes on answering. If the scan fails, all stays as it was.
        """
        with self._one_build:
            for _ in range(_ATTEMPTS):
                done = self._build(scan, expected, progress)
                if done is not None:
                    return done
        return False

    def _build(self, scan: Scan, expected: int | None, progress: Progress | None) -> bool | None:
        """One attempt; None if it was spoilt, False if another one would be at once."""
        begun = time.monotonic()
        with self._lock:
            unread = sum(len(pending.keys) for pending in self.pendings)
        made = self._make((expected or 0) + unread)
        with self._lock:
            doubts = self._doubts
            stale = self._stale
            self._next = made
            self._publish()  # before the look at who is open, see above
            for pending in self.pendings:
                made.add_many(pending.keys.copy())
                if pending.blind or pending.unlisted:
                    self._next = None
                    self._publish()
                    self._reason = "a transaction is open whose keys are not known"
                    return False
            made.add_many(list(self._uncertain))
        read = 0
        try:
            for batch in scan():
                made.add_many(batch)
                read += len(batch)
                if progress is not None:
                    progress(read, expected)
        except BaseException:
            with self._lock:
                self._next = None
                self._publish()
            raise
        with self._lock:
            self._next = None
            if self._doubts != doubts:
                self._publish()
                return None
            self._filter = made
            self._generation += 1
            self._reason = ""
            self._removed = 0
            self._stale -= stale
            self._rebuilds += 1
            self._rebuild_seconds = time.monotonic() - begun
            self._publish()
        return True

    def due(self) -> str:
        """Why a rebuild is worth its while now; empty if it is not."""
        filter_ = self._filter
        if filter_ is None:
            return self._reason
        stats = filter_.stats()
        if stats.predicted_error > self.error_rate:
            return "the predicted error is above the target"
        if self._stale > _STALE * max(stats.items, 1.0):
            return "many keys are inside whose rows are gone"
        return ""

    def stats(self) -> HeldStats:
        """What the filter in use is like."""
        with self._lock:
            filter_ = self._filter
            stats = None if filter_ is None else filter_.stats()
            return HeldStats(
                state=self.state,
                reason=self._paused or ("" if stats else self._reason),
                rebuilding=self._next is not None,
                items=stats.items if stats else 0.0,
                capacity=stats.capacity if stats else self.capacity,
                error_rate=self.error_rate,
                predicted_error=stats.predicted_error if stats else 1.0,
                saturation=stats.fill if stats else 0.0,
                bytes=stats.bytes if stats else 0,
                removed=self._removed,
                stale=self._stale,
                unseen=self._doubts,
                rebuilds=self._rebuilds,
                rebuild_seconds=self._rebuild_seconds,
            )
