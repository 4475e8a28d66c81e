"""`KeyFilter`: the keys of a column, in a filter that is replaced as a whole. Knows no SQL.

The rule that never breaks: the generation in use holds every committed key. Its filter is this
process's own (`memory.py`) or a mapped file of all processes of the machine (`files.py`). Each
rebuild makes a filter of the next number, a *generation*; one number brings it into use.

1. A writer lists its keys, and adds them to every generation that is in use or being built. A build
   shows its new generation, then adds what open transactions have listed: the scan may be too early
   for them, and their writes came too early for the new filter.
2. With other processes, a writer looks again just before its commit (`committing`). From then until
   the commit has returned it is in a section, and a build that began meanwhile waits for that
   before it scans (`locks.py`).
3. Who cannot name its keys calls `distrust` when it writes, and stays `blind` until it has ended.
   A build of any process that meets one of these is thrown away.
4. A process asks a new generation only after adding the keys that its own open transactions wrote,
   so that a transaction is never told that what it wrote itself is absent.

A deleted key stays in the filter. It is listed as gone if the database, asked after the commit, has
no row of it, and no open transaction had written it: `removable` before the question, `remove_many`
after it. Whoever writes the key meanwhile, or later, takes it off the list, and out of every look
that is under way: an answer counts only if nobody wrote the key since its question.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal
from weakref import WeakKeyDictionary, WeakSet

import numpy as np
import numpy.typing as npt

from bloomtide import system
from bloomtide._core import BloomFilter
from bloomtide.errors import require
from bloomtide.guard.filter.files import SharedFiles
from bloomtide.guard.filter.memory import Memory, Progress, Scan, Without, Word
from bloomtide.guard.stats import FilterStats, State
from bloomtide.guard.writes.transaction import Key, OpenTransaction

_ATTEMPTS = 3
"""Builds that are tried before giving up, if unseen writes spoil each."""
_STALE = 0.25
"""Deleted rows, as a share of the keys, that make a rebuild worth its while."""
_FEW = 32
"""Below this many keys, a call for each is quicker than a batch."""
_GLANCE = 0.02
"""Seconds between two looks whether a commit has ended that was followed by nothing."""
_CURRENT = int(Word.CURRENT)

_View = tuple[int, Any]
_LOOK_AGAIN: _View = (-1, None)
"""No generation has this number, so the next question looks."""
_filters: WeakSet[KeyFilter] = WeakSet()


class KeyFilter:
    """The set of keys of one column, and whether it can be trusted. Safe to use from any thread."""

    def __init__(
        self,
        error_rate: float = 0.01,
        *,
        capacity: int | None = None,
        removals: Literal["never", "commit"] = "never",
        shared: str | os.PathLike[str] | None = None,
        subject: Mapping[str, Any] | None = None,
    ) -> None:
        """`shared` is a directory for all processes; one of another `subject` is refused."""
        require(
            "removals",
            removals,
            '"never" or "commit"',
            removals in ("never", "commit"),
            hint='leave it out for "never"',
        )
        require(
            "capacity",
            capacity,
            "at least 1",
            capacity is None or capacity >= 1,
            hint="leave it out: the filter grows",
        )
        BloomFilter.plan(capacity or 1024, error_rate)  # refuses a bad error rate now
        self.error_rate = error_rate
        self.capacity = capacity
        self.removals = removals
        self.shared = shared is not None
        self.place: Memory | SharedFiles = (
            Memory() if shared is None
            else SharedFiles(shared, {**(subject or {}), "error_rate": error_rate})
        )  # fmt: skip
        self._words: Any = self.place.words
        self.detached = False
        self._closed = False
        """Nobody asks any more; it may still serve transactions that are open."""
        self._orphan = False
        """It was forked, and nobody here hears of what the other processes write."""
        self._may_join = self.shared
        self.transactions: WeakSet[OpenTransaction] = WeakSet()
        """All that somebody has. One that is forgotten belonged to a connection that is gone."""
        self._begin_process()
        _filters.add(self)

    def _begin_process(self) -> None:
        """What belongs to this process alone; after a fork, too."""
        self._lock = threading.RLock()
        self._one_build = threading.Lock()
        self._view = _LOOK_AGAIN
        """The trusted generation as this process knows it; None lets everything pass."""
        self._holds = 0
        self._looks: list[set[Key]] = []
        """Keys of deleted rows for which the database is being asked, for each who asks."""
        self._forget_gone()
        self.transactions = WeakSet(self.transactions)
        for transaction in self.transactions:
            transaction.reset()  # what it has written is up to the parent
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
        trusted = self._look()[1]
        if trusted is None:
            return np.ones(len(keys), dtype=np.bool_)
        return np.asarray(trusted.contains_many(keys))

    def _look(self) -> _View:
        """The trusted generation, ready to be asked by this process."""
        with self._lock:
            while self._words[_CURRENT] != self._view[0]:
                number = self._words[_CURRENT]
                trusted: Any = None
                asked = number and not (self._orphan or self._closed or self._holds)
                if asked and (not self.shared or self._catch_up(number)):
                    trusted = self.place.filter(number)
                    if trusted is not None and self.removals == "commit":
                        trusted = Without(trusted, self._gone)
                self._view = (number, trusted)
                self.place.keep_only(number, *self._live())
            return self._view

    def _catch_up(self, number: int) -> bool:
        """Adds what open transactions of this process wrote; False if that is not known."""
        return all(self._bring(transaction, number) for transaction in self.transactions)

    @property
    def trusted(self) -> bool:
        """Whether `may_exist` can answer False now."""
        return self._look()[1] is not None and self.is_fresh

    @property
    def is_fresh(self) -> bool:
        """Whether other writers, if any are followed, were followed in time."""
        until = self._words[Word.FRESH_UNTIL]
        return not until or time.monotonic_ns() < until

    @property
    def state(self) -> State:
        if self._closed:
            return State.UNKNOWN
        if self._words[Word.CURRENT]:
            return State.DEGRADED if self._orphan or not self.is_fresh else State.READY
        if self.rebuilding:
            return State.BUILDING
        return State.DEGRADED if self._words[Word.BUILDS] else State.UNKNOWN

    def hold(self, more: int) -> None:
        """Everything passes while there are holds: keys become visible that nobody knows yet."""
        with self._lock:
            self._holds += more
            self._view = _LOOK_AGAIN

    # --- writes -------------------------------------------------------------------------------

    def _live(self) -> set[int]:
        """The generations that get every key."""
        # In this order: a generation becomes current before it is no longer being built.
        building = self._words[Word.BUILDING]
        return {building, self._words[Word.CURRENT]} - {0}

    def _add(self, number: int, keys: Sequence[Key]) -> None:
        live = self.place.filter(number)
        if live is None:
            if number in self._live():
                self.distrust("the shared filter could not be opened")
        elif len(keys) < _FEW:
            for key in keys:
                live.add(key)
        else:
            live.add_many(keys)

    def add_many(self, keys: Sequence[Key]) -> None:
        """Adds keys that are committed already."""
        with self._lock:
            self._take_off(keys)
            for number in self._live():
                self._add(number, keys)

    def write(self, transaction: OpenTransaction, keys: Sequence[Key]) -> None:
        """Adds keys that an open transaction writes."""
        with self._lock:
            first = not transaction.keys and not transaction.unlisted
            transaction.list_keys(keys)
            self._take_off(keys)
            live = self._live()
            if first:
                transaction.inside = live
            # It may be blind, or have too many keys, only until somebody notices that it has ended.
            alone = transaction.blind or transaction.unlisted
            for number in live:
                if alone or number in transaction.inside:
                    self._add(number, keys)
                else:
                    self._bring(transaction, number)

    def _bring(self, transaction: OpenTransaction, number: int) -> bool:
        """Makes sure that a generation has the keys of a transaction; False if it cannot."""
        if transaction.blind:
            return transaction.is_over()
        if number not in transaction.inside:
            if transaction.unlisted:
                return transaction.is_over()
            self._add(number, transaction.keys)
            transaction.inside.add(number)
        return True

    def count_stale(self, rows: int) -> None:
        """So many rows were deleted, and their keys stay inside."""
        if rows > 0 and not self.detached:
            with self.place.lock() as words:
                words[Word.STALE] += rows

    def distrust(self, reason: str) -> None:
        """Keys were written that nobody saw: everything passes, everywhere, until a rebuild."""
        with self._lock:
            if self.detached:
                return
            self._tell_blind()  # first: a build that does not see this sees the doubt
            with self.place.lock() as words:
                words[Word.DOUBTS] += 1
                words[Word.CURRENT] = 0
                self.place.reason = reason
            self._forget_gone()

    def _tell_blind(self, ended: OpenTransaction | None = None) -> None:
        """No process builds while a transaction is open whose keys nobody knows."""
        blind = [each for each in self.transactions if each.blind and each is not ended]
        if not self.detached:
            self.place.hold_blind(not all(each.is_over() for each in blind))

    # --- removals, of one process alone -------------------------------------------------------

    def _forget_gone(self) -> None:
        self._gone: set[Key] = set()
        """Keys in the filter that certainly have no row."""
        for asked in self._looks:
            asked.clear()

    def _take_off(self, keys: Sequence[Key]) -> None:
        if self.removals == "commit":
            self._gone.difference_update(keys)
            for asked in self._looks:
                asked.difference_update(keys)

    def removable(self, keys: Iterable[Key]) -> set[Key]:
        """Those that no open transaction has written; ask the database for them, see above."""
        with self._lock:
            if any(each.blind or each.unlisted for each in self.transactions):
                return set()
            written = {key for each in self.transactions for key in each.keys}
            written.update(self.place.remembered())
            asked = {key for key in keys if key not in written}
            self._looks.append(asked)
            return asked

    def remove_many(self, keys: Iterable[Key], asked: set[Key]) -> None:
        """Of those `asked` for by `removable`, the database had no row of these `keys`."""
        with self._lock:
            live = [self.place.filter(number) for number in self._live()]
            gone = asked.intersection(keys)
            self._gone.update(key for key in gone if any(f and key in f for f in live))
            self._looks = [each for each in self._looks if each is not asked]

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
        if not isinstance(self.place, SharedFiles):
            return
        with self._lock:
            if self.detached:
                return
            if transaction not in self._sections:
                self._sections[transaction] = self.place.sections.enter()
            known = all(self._bring(transaction, number) for number in self._live())
            self._committed.set()
            if self._closer is None:
                work, name = self._close_sections, "bloomtide sections"
                self._closer = threading.Thread(target=work, name=name, daemon=True)
                self._closer.start()
        if transaction.blind or not known:
            self.distrust("a transaction commits whose keys are not known")

    def _close_sections(self) -> None:
        """Notices the end of commits whose connections are used no more."""
        while self._committed.wait() and not self.detached:
            time.sleep(_GLANCE)
            # In one go: a moment later it may be the section of the connection's next commit.
            with self._lock:
                over = [each for each in self._sections if each.is_over()]
                sides = [self._sections.pop(each) for each in over]
                if over:
                    self._tell_blind()
                if not self._sections:
                    self._committed.clear()
            for side in sides:
                self._leave(side)

    def landed(self, transaction: OpenTransaction) -> None:
        """What was sent since `committing` is done."""
        if self._sections or transaction.blind:
            with self._lock:
                side = self._sections.pop(transaction, None)
                self._tell_blind()
            if side is not None:
                self._leave(side)

    def _leave(self, side: int) -> None:
        if isinstance(self.place, SharedFiles):
            self.place.sections.leave(side)

    def keep(self, transaction: OpenTransaction) -> None:
        """Nobody knows how the transaction ends: its keys go into every new filter."""
        if not self.detached:
            self.place.remember(transaction.keys)
            self.add_many(transaction.keys)
            if transaction.unlisted:
                self.distrust("a transaction of very many keys broke off")

    def ended(self, transaction: OpenTransaction) -> None:
        """The transaction is committed or rolled back."""
        self.landed(transaction)
        if transaction.blind or transaction.unlisted:
            with self._lock:
                self._view = _LOOK_AGAIN
                self._tell_blind(transaction)

    # --- building -----------------------------------------------------------------------------

    @property
    def rebuilding(self) -> bool:
        """Whether some process is building; one that died while it did is not."""
        return bool(self._words[Word.BUILDING]) and self.place.is_building()

    def may_join(self) -> bool:
        """Whether another process has built already; only before the first build here."""
        first, self._may_join = self._may_join, False
        return first and bool(self._words[Word.CURRENT])

    def rebuild(
        self, scan: Scan, *, expected: int | None = None, progress: Progress | None = None
    ) -> bool:
        """Reads all keys into the next generation and brings it into use; False if unseen writes
        spoil it. If the scan fails, all stays as it was.

        One builds at a time. Who had to wait for another one takes what that has built, if it had
        nothing before or if that build began later than this call.
        """
        had_none, latest = not self._words[Word.CURRENT], self._words[Word.LATEST]
        with self._one_build, self.place.building():
            current = self._words[Word.CURRENT]
            if current > latest or (had_none and current):
                return True
            for _ in range(_ATTEMPTS):
                done = self._build(scan, expected, progress)
                if done is not None:
                    return done
            return False

    def _build(self, scan: Scan, expected: int | None, progress: Progress | None) -> bool | None:
        """One attempt; None if it was spoilt, False if another one would be at once."""
        started, place, read = time.monotonic_ns(), self.place, 0
        with place.lock() as words:
            words[Word.LATEST] += 1
            number, doubts, stale = words[Word.LATEST], words[Word.DOUBTS], words[Word.STALE]
            self._abandon(words[Word.BUILDING])  # of a builder that died
        try:
            wanted = max(self.capacity or 1024, int((expected or 0) * place.room))
            made = place.make(number, wanted, self.error_rate)
            place.settle(lambda: self._show(number))
            with self._lock:
                self._tell_blind()
                if not self._catch_up(number) or place.is_blind():
                    place.reason = "a transaction is open whose keys are not known"
                    return False
            made.add_many(place.remembered())
            for batch in scan():
                made.add_many(batch)
                read += len(batch)
                if progress is not None:
                    progress(read, expected)
            with self._lock, place.lock() as words:
                if self.detached:
                    return False
                if words[Word.DOUBTS] != doubts:
                    return None
                former, words[Word.CURRENT] = words[Word.CURRENT], number
                words[Word.BUILDING] = 0
                words[Word.STALE] -= stale
                words[Word.BUILDS] += 1
                words[Word.BUILD_NANOSECONDS] = time.monotonic_ns() - started
                place.reason = ""
                self._forget_gone()
            place.remove(former)
            return True
        finally:
            with place.lock() as words:
                if words[Word.CURRENT] != number:
                    self._abandon(number)

    def _show(self, number: int) -> None:
        """Makes a generation known to all writers."""
        with self.place.lock() as words:
            words[Word.BUILDING] = number
            words[Word.EPOCH] += 1

    def _abandon(self, number: int) -> None:
        """Forgets a generation that is not in use, with the lock of the numbers held."""
        if number:
            self.place.remove(number)
            if self.place.words[Word.BUILDING] == number:
                self.place.words[Word.BUILDING] = 0

    def refuse_orphan(self) -> None:
        """Raises in a process that would never hear of what its parent writes."""
        hint = "make it in each process, after the fork, or give it a `shared` directory"
        require("guard", "made before a fork", "of this process", not self._orphan, hint=hint)

    def due(self) -> str:
        """Why a rebuild is worth its while now; empty if it is not."""
        if self._orphan:
            return ""
        if not self._words[_CURRENT]:
            return self._why()
        stats = self.stats()
        if stats.predicted_error > stats.error_rate:
            return "the predicted error is above the target"
        if stats.stale > _STALE * max(stats.items, 1.0):
            return "many keys are inside whose rows are gone"
        return ""

    def _why(self) -> str:
        """Why nothing is called absent; empty if something may be."""
        if self._orphan:
            return "the guard was made before a fork: make it in each process"
        if not self.is_fresh:
            return "other writers could not be followed for too long"
        if self._closed:
            return "the guard is closed"
        return "" if self._words[_CURRENT] else self.place.reason or "not built yet"

    def stats(self) -> FilterStats:
        """What the filter in use is like."""
        words = self._words
        with self._lock:
            number = words[Word.CURRENT]
            current = self.place.filter(number) if number else None
        stats = None if current is None else current.stats()
        return FilterStats(
            state=self.state,
            reason=self._why(),
            rebuilding=self.rebuilding,
            items=stats.items if stats else 0.0,
            capacity=stats.capacity if stats else self.capacity,
            error_rate=self.error_rate,
            predicted_error=stats.predicted_error if stats else 1.0,
            saturation=stats.fill if stats else 0.0,
            bytes=stats.bytes if stats else 0,
            removed=len(self._gone),
            stale=words[Word.STALE],
            unseen=words[Word.DOUBTS],
            rebuilds=words[Word.BUILDS],
            rebuild_seconds=words[Word.BUILD_NANOSECONDS] / 1e9,
        )

    # --- coming and going ---------------------------------------------------------------------

    def after_fork(self) -> None:
        """In the child. A filter of its own would not see what the parent writes; and threads do
        not survive a fork, so nobody would notice that the answers of a shared one get old."""
        if not self.detached:
            self._orphan = not self.shared or self.place.fresh_until is not None
            self.place.after_fork()
            self._begin_process()

    def close(self, end: Callable[[], None] = lambda: None) -> None:
        """Everything passes from now on. Calls `end`, after which nobody tells it of writes, and
        lets go of all; with other processes only when transactions have ended that are open now,
        since a build of theirs has to know of them."""
        with self._lock:
            self._closed, self._view = True, _LOOK_AGAIN
            written = [
                each for each in self.transactions if each.keys or each.blind or each.unlisted
            ]
            left = WeakKeyDictionary((each, each.keys) for each in written if not each.is_over())

        def is_left(transaction: OpenTransaction, keys: list[Key]) -> bool:
            """Whether it is still the same one."""
            same = transaction.keys is keys or transaction.unlisted
            return same and not transaction.is_over()

        def leave() -> None:
            while self.shared and any(is_left(*each) for each in list(left.items())):
                time.sleep(_GLANCE)
            end()
            self.detach()

        if isinstance(self.place, SharedFiles) and left:
            self.place.follow_no_more()
            threading.Thread(target=leave, name="bloomtide closing", daemon=True).start()
        else:
            leave()

    def detach(self) -> None:
        """Lets go of all at once."""
        with self._lock:
            self.detached = self._closed = True
            self._committed.set()  # ends the thread
            self._view = (0, None)
            self._words = [0] * len(Word)
        self.place.detach()


def _fork_all() -> None:
    for each in list(_filters):
        each.after_fork()


system.after_fork_in_child(_fork_all)
