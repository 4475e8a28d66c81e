"""`SharedKeyFilter`: a `KeyFilter` for all processes of a machine.

A directory (`shared_files.py`) has the filter as a memory-mapped file, so that what one process
adds all others see at once, and a page of numbers (`shared_page.py`) that says which file it is.
Each rebuild makes a file of the next number, a *generation*; one number on the page brings it into
use everywhere.

The rule that never breaks: the generation in use holds every committed key.

1. A writer adds its keys to every generation that is in use or being built when it writes, and
   looks again just before its commit (`committing`). From then until the commit has returned it is
   in a section, and a build that began meanwhile waits for that before it scans (`locks.py`).
2. Who cannot name its keys distrusts for everybody when it writes, and again before its commit.
3. A process asks a new generation only after adding the keys that its own open transactions wrote,
   so that a transaction is never told that what it wrote itself is absent.
4. Filters live as long as somebody is attached. The first process to come trusts nothing it finds:
   the machine may have crashed, or somebody may have written while nobody was looking.

A process that dies, by `kill -9` or otherwise, leaves bits of keys that it never committed, and no
lock. Mapped filters do not grow: one that became too small is `due` for a rebuild.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np
import numpy.typing as npt

from bloomtide._core import BloomFilter
from bloomtide.errors import SnapshotError, StorageError, require
from bloomtide.guard.filter.local import ATTEMPTS, Progress, Scan, add_to, reason_to_rebuild
from bloomtide.guard.filter.shared_files import SharedFiles
from bloomtide.guard.filter.shared_page import Word
from bloomtide.guard.stats import FilterStats, State
from bloomtide.guard.writes.transaction import Key, OpenTransaction

_ROOM = 2
"""A filter is made for this many times the keys expected, since it cannot grow."""
_PATIENCE = 60.0
"""Seconds that a build waits for commits that are under way."""
_GLANCE = 0.02
"""Seconds between two looks whether a commit has ended that was followed by nothing."""
_CURRENT = int(Word.CURRENT)

_View = tuple[int, BloomFilter | None]
_LOOK_AGAIN: _View = (-1, None)
"""No generation has this number, so the next question looks."""


class SharedKeyFilter:
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
        self._orphan = False
        """It was forked from a process whose threads followed other writers."""
        self._may_join = True
        self.transactions: WeakSet[OpenTransaction] = WeakSet()
        """All that somebody has. One that is forgotten belonged to a connection that is gone."""
        self._begin_process()
        self.files.on_fork = self._begin_process

    def _begin_process(self) -> None:
        """What belongs to this process alone; after a fork, too."""
        self._lock = threading.RLock()
        self._one_build = threading.Lock()
        self._view = _LOOK_AGAIN
        """The trusted generation as this process knows it; None lets everything pass."""
        self.transactions = WeakSet(self.transactions)
        for transaction in self.transactions:
            transaction.reset()  # what it has written is up to the parent
        self._inside: WeakKeyDictionary[OpenTransaction, set[int]] = WeakKeyDictionary()
        """For an open transaction, the generations that have all keys it wrote."""
        self._sections: dict[OpenTransaction, int] = {}
        """Transactions that are committing."""
        self._committed = threading.Event()
        self._closer: threading.Thread | None = None

    # --- questions ----------------------------------------------------------------------------

    def may_exist(self, key: Key) -> bool:
        """False only if the key is certainly not committed."""
        view = self._view
        if self._words[_CURRENT] != view[0]:
            view = self._look()
        trusted = view[1]
        return trusted is None or key in trusted

    def may_exist_many(self, keys: Sequence[Key]) -> npt.NDArray[np.bool_]:
        """What `may_exist` answers for each key."""
        view = self._view
        if self._words[_CURRENT] != view[0]:
            view = self._look()
        if view[1] is None:
            return np.ones(len(keys), dtype=np.bool_)
        return view[1].contains_many(keys)

    def _look(self) -> _View:
        """The trusted generation, ready to be asked by this process."""
        with self._lock:
            while self._words[_CURRENT] != self._view[0]:
                number = self._words[_CURRENT]
                trusted = None
                if number and not self._orphan and self._catch_up(number):
                    trusted = self._filter(number)
                self._view = (number, trusted)
                self.files.keep_only(number, *self._live())
            return self._view

    def _catch_up(self, number: int) -> bool:
        """Adds what open transactions of this process wrote; False if that is not known."""
        return all(self._bring(transaction, number) for transaction in self.transactions)

    def _filter(self, number: int) -> BloomFilter | None:
        """The filter of a generation; None if it is gone or cannot be opened."""
        try:
            return self.files.filter(number)
        except (StorageError, SnapshotError):
            return None

    @property
    def trusted(self) -> bool:
        """Whether `may_exist` can answer False now."""
        return self._look()[1] is not None and self.is_fresh

    @property
    def state(self) -> State:
        if self._words[Word.CURRENT]:
            return State.DEGRADED if self._orphan or not self.is_fresh else State.READY
        if self.rebuilding:
            return State.BUILDING
        return State.DEGRADED if self._words[Word.BUILDS] else State.UNKNOWN

    # --- writes -------------------------------------------------------------------------------

    def _live(self) -> set[int]:
        """The generations that get every key."""
        # In this order: a generation becomes current before it is no longer being built.
        building = self._words[Word.BUILDING]
        return {building, self._words[Word.CURRENT]} - {0}

    def _add(self, number: int, keys: Sequence[Key]) -> None:
        live = self._filter(number)
        if live is not None:
            add_to(live, keys)
        elif number in self._live():
            self.distrust("the shared filter could not be opened")

    def add_many(self, keys: Sequence[Key]) -> None:
        """Adds keys that are committed."""
        with self._lock:
            for number in self._live():
                self._add(number, keys)

    def write(self, transaction: OpenTransaction, keys: Sequence[Key]) -> None:
        """Adds keys that an open transaction writes."""
        with self._lock:
            first = not transaction.keys and not transaction.unlisted
            transaction.list_keys(keys)
            live = self._live()
            inside = live if first else self._inside.get(transaction, set())
            self._inside[transaction] = inside
            for number in live & inside:
                self._add(number, keys)
            for number in live - inside:
                self._bring(transaction, number)

    def _bring(self, transaction: OpenTransaction, number: int) -> bool:
        """Makes sure that a generation has the keys of a transaction; False if it cannot."""
        if transaction.blind:
            return transaction.is_over()
        inside = self._inside.setdefault(transaction, set())
        if number not in inside:
            if transaction.unlisted:
                return transaction.is_over()
            self._add(number, transaction.keys)
            inside.add(number)
        return True

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
            control.reason = reason

    # --- how far other writers are followed, the same for all processes -----------------------

    @property
    def fresh_until(self) -> float | None:
        """Until when answers may be given, on the monotonic clock, which all processes share."""
        nanoseconds = self._words[Word.FRESH_UNTIL]
        return nanoseconds / 1e9 if nanoseconds else None

    @fresh_until.setter
    def fresh_until(self, moment: float) -> None:
        if not self.detached:
            self._words[Word.FRESH_UNTIL] = max(int(moment * 1e9), 1)

    @property
    def is_fresh(self) -> bool:
        """Whether other writers, if any are followed, were followed in time."""
        return not self._words[Word.FRESH_UNTIL] or (
            time.monotonic_ns() < self._words[Word.FRESH_UNTIL]
        )

    @property
    def built_at(self) -> float:
        """When the scan of the filter in use began, if somebody keeps it up; else 0."""
        return float(self._words[Word.BUILT_AT] / 1e9)

    @built_at.setter
    def built_at(self, moment: float) -> None:
        if not self.detached:
            self._words[Word.BUILT_AT] = int(moment * 1e9)

    @property
    def position(self) -> str | None:
        """How far the changes of others are inside."""
        return self.files.read_position()

    @position.setter
    def position(self, text: str | None) -> None:
        if not self.detached:
            self.files.write_position(text)

    @property
    def rebuilding(self) -> bool:
        """Whether some process is building; one that died while it did is not."""
        return bool(self._words[Word.BUILDING]) and self.files.is_building()

    def may_follow(self) -> bool:
        """Whether this is the process that reads the changes of others."""
        return not self.detached and self.files.may_follow()

    # --- transactions -------------------------------------------------------------------------

    def begin(self, driver: Any = None) -> OpenTransaction:
        """For the writes of one connection. Whoever drops it has rolled back."""
        transaction = OpenTransaction(self, driver)
        with self._lock:
            self.transactions.add(transaction)
        return transaction

    def committing(self, transaction: OpenTransaction) -> None:
        """A commit is about to be sent: the last look at which generations there are."""
        transaction.broke_off()
        with self._lock:
            if self.detached:
                return
            if transaction not in self._sections:
                self._sections[transaction] = self.files.sections.enter()
            known = all(self._bring(transaction, number) for number in self._live())
            self._committed.set()
            if self._closer is None:
                self._closer = threading.Thread(
                    target=self._close_sections, name="bloomtide sections", daemon=True
                )
                self._closer.start()
        if transaction.blind or not known:
            self.distrust("a transaction commits whose keys are not known")

    def _close_sections(self) -> None:
        """Notices the end of commits whose connections are used no more."""
        while self._committed.wait() and not self.detached:
            time.sleep(_GLANCE)
            with self._lock:
                over = [each for each in self._sections if each.is_over()]
                if not self._sections:
                    self._committed.clear()
            for transaction in over:
                self.landed(transaction)

    def landed(self, transaction: OpenTransaction) -> None:
        """What was sent since `committing` is done."""
        with self._lock:
            side = self._sections.pop(transaction, None)
        if side is not None and not self.detached:
            self.files.sections.leave(side)

    def keep(self, transaction: OpenTransaction) -> None:
        """Nobody knows how the transaction ends: its keys go into every new filter."""
        if not self.detached:
            self.files.remember(transaction.keys)
            self.add_many(transaction.keys)
            if transaction.unlisted:
                self.distrust("a transaction of very many keys broke off")

    def ended(self, transaction: OpenTransaction) -> None:
        """The transaction is committed or rolled back."""
        with self._lock:
            if transaction.blind or transaction.unlisted:
                self._view = _LOOK_AGAIN
            self._inside.pop(transaction, None)
        self.landed(transaction)

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
                for _ in range(ATTEMPTS):
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

        self.files.sections.settle(begin_epoch, _PATIENCE)

    def _abandon(self, number: int) -> None:
        """Forgets a generation that is not in use, with the lock of the page held."""
        if number:
            self.files.remove(number)
            if self._words[Word.BUILDING] == number:
                self._words[Word.BUILDING] = 0

    def due(self) -> str:
        """Why a rebuild is worth its while now; empty if it is not."""
        return reason_to_rebuild(self.stats()) if self._words[Word.CURRENT] else self._why()

    def _why(self) -> str:
        """Why there is no filter in use."""
        if self.detached:
            return "the guard is closed"
        return self.files.control.reason or "not built yet"

    def stats(self) -> FilterStats:
        """What the filter in use is like."""
        words = self._words
        with self._lock:
            number = words[Word.CURRENT]
            current = self._filter(number) if number else None
        stats = None if current is None else current.stats()
        late = "" if self.is_fresh else "other writers could not be followed for too long"
        orphan = "the guard was made before a fork: make it in each process" if self._orphan else ""
        return FilterStats(
            state=self.state,
            reason=orphan or late or ("" if stats else self._why()),
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
        self._orphan = self.fresh_until is not None

    def detach(self) -> None:
        """Lets go of the directory; from then on everything passes."""
        with self._lock:
            self.detached = True
            self._committed.set()  # ends the thread
            self._view = (0, None)
            self._words = (0,) * len(Word)
        self.files.detach()
