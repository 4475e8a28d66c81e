"""`SharedKeys`: the keys a guard holds, for all processes of a machine; else as `HeldKeys`.

A directory (`shared_files.py`) has the filter as a memory-mapped file, so that what one process
adds all others see at once, and a page of numbers (`control.py`) that says which file it is. Each
rebuild makes a file of the next number, a *generation*; one number on the page brings it into use
everywhere.

The rule that never breaks: the trusted generation holds every committed key.

1. A writer adds its keys to every generation that is in use or being built when it writes, and
   looks again just before its commit (`committing`). From then until the commit has returned it is
   in a section, and a build that began meanwhile waits for that before it scans (`sections.py`).
2. Who cannot name its keys distrusts for everybody when it writes, and again before its commit.
3. A process asks a new generation only after adding the keys that its own open transactions wrote,
   so that a transaction is never told that what it wrote itself is absent.
4. Filters live as long as somebody is attached. The first process to come trusts nothing it finds:
   the machine may have crashed, or somebody may have written while nobody was looking.

A process that dies, by `kill -9` or otherwise, leaves bits of keys that it never committed, and no
lock. One that dies between a commit and its knowledge of the key (`hold`) leaves the guard passing
everything until it is rebuilt.

Mapped filters cannot count and do not grow: keys are never removed, and a filter that became too
small is `due` for a rebuild.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np
import numpy.typing as npt

from bloomtide._core import BloomFilter
from bloomtide.errors import SnapshotError, StorageError, require
from bloomtide.guard.control import Word
from bloomtide.guard.held import Progress, Scan
from bloomtide.guard.pending import Key, Pending, disowned
from bloomtide.guard.shared_files import SharedFiles
from bloomtide.guard.shared_progress import SharedProgress
from bloomtide.guard.state import HeldStats, State

_ATTEMPTS = 3
"""Builds that are tried before giving up, if unseen writes spoil each."""
_ROOM = 2
"""A filter is made for this many times the keys expected, since it cannot grow."""
_STALE = 0.25
"""Deleted rows, as a share of the keys, that make a rebuild worth its while."""
_PATIENCE = 60.0
"""Seconds that a build waits for commits that are under way."""
_FEW = 32
"""Below this many keys, a call for each is quicker than a batch."""
_TRUSTED = int(Word.TRUSTED)

_View = tuple[int, BloomFilter | None]
_LOOK_AGAIN: _View = (-1, None)
"""No generation has this number, so the next question looks."""


class _SharedPending(Pending):
    """Tells the others when its commit is under way."""

    __slots__ = ("_keys",)

    def __init__(self, keys: SharedKeys) -> None:
        super().__init__(keys)
        self._keys = keys

    def committing(self) -> None:
        super().committing()
        self._keys.committing(self)

    def landed(self) -> None:
        self._keys.landed(self)

    def close(self) -> None:
        known = not (self.blind or self.unlisted)
        super().close()
        self._keys.ended(self, known)


class SharedKeys(SharedProgress):
    """The set of keys of one column, shared by processes. Safe to use from any thread."""

    shared = True
    removals = "never"

    def __init__(
        self,
        directory: str | os.PathLike[str],
        error_rate: float = 0.01,
        *,
        capacity: int | None = None,
        subject: Mapping[str, Any] | None = None,
    ) -> None:
        """`subject` says whose keys these are; a directory of others is refused."""
        require("capacity", capacity, "at least 1", capacity is None or capacity >= 1)
        BloomFilter.plan(capacity or 1024, error_rate)
        self.error_rate = error_rate
        self.capacity = capacity
        self.files = SharedFiles(directory, {**(subject or {}), "error_rate": error_rate})
        self._words: Any = self.files.control.words
        self.detached = False
        self._paused = ""
        self._may_join = True
        self.pendings: WeakSet[Pending] = WeakSet()
        """All that somebody has. One that is forgotten belonged to a connection that is gone."""
        self._begin_process()
        self.files.on_fork = self._begin_process

    def _begin_process(self) -> None:
        """What belongs to this process alone; after a fork, too."""
        self._lock = threading.RLock()
        self._one_build = threading.Lock()
        self._view = _LOOK_AGAIN
        """The trusted generation as this process knows it; None lets everything pass."""
        self.pendings = disowned(self.pendings)
        self._inside: WeakKeyDictionary[Pending, set[int]] = WeakKeyDictionary()
        """For an open transaction, the generations that have all keys it wrote."""
        self._sections: dict[Pending, int] = {}
        """Transactions that are committing."""
        self._holds = [0, 0]

    # --- questions ----------------------------------------------------------------------------

    def may_exist(self, key: Key) -> bool:
        """False only if the key is certainly not committed."""
        view = self._view
        if self._words[_TRUSTED] != view[0]:
            view = self._look()
        trusted = view[1]
        return trusted is None or key in trusted

    def may_exist_many(self, keys: Sequence[Key]) -> npt.NDArray[np.bool_]:
        """What `may_exist` answers for each key."""
        view = self._view
        if self._words[_TRUSTED] != view[0]:
            view = self._look()
        if view[1] is None:
            return np.ones(len(keys), dtype=np.bool_)
        return view[1].contains_many(keys)

    def _look(self) -> _View:
        """The trusted generation, ready to be asked by this process."""
        with self._lock:
            while self._words[_TRUSTED] != self._view[0]:
                number = self._words[_TRUSTED]
                trusted = None
                if number and not self._paused and self._catch_up(number):
                    trusted = self._filter(number)
                self._view = (number, trusted)
                self.files.keep_only(number, *self._live())
            return self._view

    def _catch_up(self, number: int) -> bool:
        """Adds what open transactions of this process wrote; False if that is not known."""
        return all(self._bring(pending, number) for pending in self.pendings)

    def _filter(self, number: int) -> BloomFilter | None:
        """The filter of a generation; None if it is gone or cannot be opened."""
        try:
            return self.files.filter(number)
        except (StorageError, SnapshotError):
            return None

    @property
    def trusted(self) -> bool:
        """Whether `may_exist` can answer False now."""
        return self._look()[1] is not None

    @property
    def state(self) -> State:
        if self._words[Word.CURRENT]:
            return State.DEGRADED if self._paused else State.READY
        if self.rebuilding:
            return State.BUILDING
        return State.DEGRADED if self._words[Word.BUILDS] else State.UNKNOWN

    @property
    def generation(self) -> int:
        """The number of the filter in use."""
        return int(self._words[Word.CURRENT])

    # --- writes -------------------------------------------------------------------------------

    def _live(self) -> set[int]:
        """The generations that get every key."""
        # In this order: a generation becomes current before it is no longer being built.
        building = self._words[Word.BUILDING]
        return {building, self._words[Word.CURRENT]} - {0}

    def _add(self, number: int, keys: Sequence[Key]) -> None:
        live = self._filter(number)
        if live is not None:
            if len(keys) < _FEW:
                for key in keys:
                    live.add(key)
            else:
                live.add_many(keys)
        elif number in self._live():
            self.distrust("the shared filter could not be opened")

    def add_many(self, keys: Sequence[Key]) -> None:
        """Adds keys that are committed."""
        with self._lock:
            for number in self._live():
                self._add(number, keys)

    def write(self, pending: Pending, keys: Sequence[Key]) -> None:
        """Adds keys that an open transaction writes."""
        with self._lock:
            pending.more = True  # others have to know of its end
            first = not pending.keys and not pending.unlisted
            pending.keys.extend(keys)
            if len(pending.keys) > pending.most:
                pending.unlist()
            live = self._live()
            inside = live if first else self._inside.get(pending, set())
            self._inside[pending] = inside
            for number in live & inside:
                self._add(number, keys)
            for number in live - inside:
                self._bring(pending, number)

    def _bring(self, pending: Pending, number: int) -> bool:
        """Makes sure that a generation has the keys of a transaction; False if it cannot."""
        if pending.blind:
            return False
        inside = self._inside.setdefault(pending, set())
        if number not in inside:
            if pending.unlisted:
                return False
            self._add(number, pending.keys)
            inside.add(number)
        return True

    def remove_many(self, keys: Iterable[Key], generation: int | None = None) -> None:
        """Nothing can be taken out; the keys of deleted rows are counted."""
        self.count_stale(sum(1 for _ in keys))

    def count_stale(self, rows: int) -> None:
        """So many rows were deleted, and their keys stay inside."""
        if rows and not self.detached:
            with self.files.control.lock() as words:
                words[Word.STALE] += rows

    def distrust(self, reason: str) -> None:
        """Keys were written that nobody saw: everything passes, everywhere, until a rebuild."""
        if self.detached:
            return
        control = self.files.control
        with control.lock() as words:
            words[Word.DOUBTS] += 1
            words[Word.CURRENT] = 0
            self._publish()
            control.reason = reason

    def _publish(self) -> None:
        """With the lock of the page held."""
        words = self._words
        on_hold = words[Word.HOLDS_EVEN] + words[Word.HOLDS_ODD]
        words[_TRUSTED] = 0 if on_hold else words[Word.CURRENT]

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Everything passes meanwhile: keys become visible that are known only afterwards."""
        if self.detached:
            yield
            return
        side = self.files.sections.enter()
        self._count_hold(side, 1)
        try:
            yield
        finally:
            if not self.detached:
                self._count_hold(side, -1)
                self.files.sections.leave(side)

    def _count_hold(self, side: int, step: int) -> None:
        with self.files.control.lock() as words:
            self._holds[side] += step
            words[Word.HOLDS_EVEN + side] += step
            self._publish()

    def pause(self, reason: str) -> None:
        """This process lets everything pass until `resume`."""
        with self._lock:
            self._paused, self._view = reason, _LOOK_AGAIN

    def resume(self) -> None:
        with self._lock:
            self._paused, self._view = "", _LOOK_AGAIN

    # --- transactions -------------------------------------------------------------------------

    def begin(self) -> Pending:
        """For the writes of one transaction at a time. Whoever drops it has rolled back."""
        pending = _SharedPending(self)
        with self._lock:
            self.pendings.add(pending)
        return pending

    def committing(self, pending: Pending) -> None:
        """The commit is about to be sent: the last look at which generations there are."""
        with self._lock:
            pending.more = True
            if self.detached:
                return
            if pending not in self._sections:
                self._sections[pending] = self.files.sections.enter()
            known = all(self._bring(pending, number) for number in self._live())
        if pending.blind or not known:
            self.distrust("a transaction commits whose keys are not known")

    def landed(self, pending: Pending) -> None:
        """What was sent since `committing` is done, and the transaction goes on."""
        with self._lock:
            side = self._sections.pop(pending, None)
        if side is not None and not self.detached:
            self.files.sections.leave(side)

    def keep(self, pending: Pending) -> None:
        """Nobody knows how the transaction ends: its keys go into every new filter."""
        if not self.detached:
            self.files.remember(pending.keys)
            self.add_many(pending.keys)
            if pending.unlisted:
                self.distrust("a commit of very many keys failed")

    def ended(self, pending: Pending, known: bool) -> None:
        """The transaction has ended; `known` says whether its keys were."""
        with self._lock:
            if not known:
                self._view = _LOOK_AGAIN
            self._inside.pop(pending, None)
        self.landed(pending)

    # --- building -----------------------------------------------------------------------------

    def may_join(self) -> bool:
        """Whether another process has built already; only before the first build here."""
        first, self._may_join = self._may_join, False
        return first and bool(self._words[Word.CURRENT])

    def rebuild(
        self, scan: Scan, *, expected: int | None = None, progress: Progress | None = None
    ) -> bool:
        """Reads all keys into the next generation and brings it into use in all processes; False
        if unseen writes spoil it.

        One process builds at a time. Who had to wait for another one takes what that has built, if
        it had nothing before or if that build began later than this call.
        """
        had_none, latest = not self._words[Word.CURRENT], self._words[Word.LATEST]
        with self._one_build:
            lock = self.files.build_lock()
            try:
                lock.take()
                current = self._words[Word.CURRENT]
                if current > latest or (had_none and current):
                    return True
                for _ in range(_ATTEMPTS):
                    done = self._build(scan, expected, progress)
                    if done is not None:
                        return done
                return False
            finally:
                lock.close()

    def _build(self, scan: Scan, expected: int | None, progress: Progress | None) -> bool | None:
        """One attempt; None if it was spoilt, False if another one would be at once."""
        started = time.monotonic_ns()
        with self.files.control.lock() as words:
            words[Word.LATEST] += 1
            number, doubts, stale = words[Word.LATEST], words[Word.DOUBTS], words[Word.STALE]
            self._abandon(words[Word.BUILDING])  # of a builder that died
        wanted = max(self.capacity or 1024, (expected or 0) * _ROOM)
        read = 0
        try:
            made = self.files.make(number, wanted, self.error_rate)
            self._settle(number)
            with self._lock:
                if not self._catch_up(number):
                    self.files.control.reason = "a transaction is open whose keys are not known"
                    return False
            made.add_many(self.files.remembered())
            for batch in scan():
                made.add_many(batch)
                read += len(batch)
                if progress is not None:
                    progress(read, expected)
            with self.files.control.lock() as words:
                if words[Word.DOUBTS] != doubts:
                    return None
                former, words[Word.CURRENT] = words[Word.CURRENT], number
                self._publish()
                words[Word.BUILDING] = 0
                words[Word.STALE] -= stale
                words[Word.BUILDS] += 1
                words[Word.BUILD_NANOSECONDS] = time.monotonic_ns() - started
                self.files.control.reason = ""
            self.files.remove(former)
            return True
        finally:
            with self.files.control.lock() as words:
                if words[Word.CURRENT] != number:
                    self._abandon(number)

    def _settle(self, number: int) -> None:
        """Makes a generation known to all writers, and waits for commits that do not know it."""

        def begin_epoch() -> None:
            with self.files.control.lock() as words:
                words[Word.BUILDING] = number
                words[Word.EPOCH] += 1

        side = self.files.sections.settle(begin_epoch, _PATIENCE)
        with self.files.control.lock() as words:
            # All others of the old epoch are over; what they still hold, the dead have left.
            words[Word.HOLDS_EVEN + side] = self._holds[side]
            self._publish()

    def _abandon(self, number: int) -> None:
        """Forgets a generation that is not in use, with the lock of the page held."""
        if number:
            self.files.remove(number)
            if self._words[Word.BUILDING] == number:
                self._words[Word.BUILDING] = 0

    def due(self) -> str:
        """Why a rebuild is worth its while now; empty if it is not."""
        number = self._words[Word.CURRENT]
        if not number:
            return self._why()
        words, sections = self._words, self.files.sections
        # Once more afterwards: a hold ends before its section.
        if not words[_TRUSTED] and not sections.is_busy() and not words[_TRUSTED]:
            return "a process died while it wrote"
        stats = self.stats()
        if stats.predicted_error > self.error_rate:
            return "the predicted error is above the target"
        if stats.stale > _STALE * max(stats.items, 1.0):
            return "many keys are inside whose rows are gone"
        return ""

    def _why(self) -> str:
        """Why there is no filter in use."""
        if self.detached:
            return "the guard is closed"
        return self.files.control.reason or "not built yet"

    def stats(self) -> HeldStats:
        """What the filter in use is like."""
        words = self._words
        with self._lock:
            number = words[Word.CURRENT]
            current = self._filter(number) if number else None
        stats = None if current is None else current.stats()
        reason = self._paused or ("" if stats else self._why())
        return HeldStats(
            state=self.state,
            reason=reason,
            rebuilding=self.rebuilding,
            items=stats.items if stats else 0.0,
            capacity=stats.capacity if stats else self.capacity,
            error_rate=self.error_rate,
            predicted_error=stats.predicted_error if stats else 1.0,
            saturation=stats.fill if stats else 0.0,
            bytes=stats.bytes if stats else 0,
            removed=0,
            stale=words[Word.STALE],
            unseen=words[Word.DOUBTS],
            rebuilds=words[Word.BUILDS],
            rebuild_seconds=words[Word.BUILD_NANOSECONDS] / 1e9,
        )

    # --- coming and going ---------------------------------------------------------------------

    def after_fork(self) -> None:
        """In the child: the files have seen to it (`shared_files.py`), but threads do not survive
        a fork, and nobody here would notice that the answers get old."""
        if self.fresh_until != inf:
            self._paused = "the guard was made before a fork: make it in each process"

    def detach(self) -> None:
        """Lets go of the directory; from then on everything passes."""
        with self._lock:
            self.detached = True
            self._view = (0, None)
            self._words = (0,) * len(Word)
        self.files.detach()
