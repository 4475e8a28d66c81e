"""`KeyFilter`: the keys of a column, in a filter that is replaced as a whole. Knows no SQL.

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

A deleted key is not taken out of the filter. It is listed as gone, when the database was asked
after the commit and had no row of it, and no open transaction had written it: `removable` before
the question, `remove_many` after it. Whoever writes the key meanwhile, or later, takes it off.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from bloomtide._core import ScalableBloomFilter
from bloomtide.errors import require
from bloomtide.guard.stats import FilterStats, State
from bloomtide.guard.writes.transaction import Key, OpenTransaction

Scan = Callable[[], Iterable[Sequence[Key]]]
"""Opens the reading of all keys, in batches; called once the new filter is there."""
Progress = Callable[[int, int | None], None]
"""Called after each batch with the keys read so far and the number expected, if known."""

ATTEMPTS = 3
"""Builds that are tried before giving up, if unseen writes spoil each."""
_ROOM = 1.25
"""A filter is made for this much more than the keys expected."""
_STALE = 0.25
"""Deleted rows, as a share of the keys, that make a rebuild worth its while."""
_FEW = 32
"""Below this many keys, a call for each is quicker than a batch."""


def add_to(filter_: Any, keys: Sequence[Key]) -> None:
    """Adds keys to a filter in the quicker way."""
    if len(keys) < _FEW:
        for key in keys:
            filter_.add(key)
    else:
        filter_.add_many(keys)


def reason_to_rebuild(stats: FilterStats) -> str:
    """Why a filter in use should be read again; empty if it need not."""
    if stats.predicted_error > stats.error_rate:
        return "the predicted error is above the target"
    if stats.stale > _STALE * max(stats.items, 1.0):
        return "many keys are inside whose rows are gone"
    return ""


class _Without:
    """A filter without some of its keys."""

    def __init__(self, filter_: ScalableBloomFilter, gone: set[Key]) -> None:
        self._filter = filter_
        self._gone = gone

    def __contains__(self, key: Key) -> bool:
        return key in self._filter and key not in self._gone

    def contains_many(self, keys: Sequence[Key]) -> npt.NDArray[np.bool_]:
        there = np.fromiter((key not in self._gone for key in keys), np.bool_, len(keys))
        return self._filter.contains_many(keys) & there


class KeyFilter:
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
        self._filter: ScalableBloomFilter | None = None
        self._next: ScalableBloomFilter | None = None
        self._live: tuple[ScalableBloomFilter, ...] = ()
        """Those that get every key: the one in use and the one that is being built."""
        self._trusted: ScalableBloomFilter | _Without | None = None
        """The filter that is asked; None lets everything pass. All that a question looks at."""
        self._gone: set[Key] = set()
        """Keys in the filter that certainly have no row."""
        self._candidates: set[Key] = set()
        """Keys of deleted rows for which the database is being asked."""
        self.transactions: WeakSet[OpenTransaction] = WeakSet()
        """All that somebody has. One that is forgotten belonged to a connection that is gone."""
        self._uncertain: set[Key] = set()
        """Keys of transactions that broke off; every new filter gets them."""
        self._doubts = 0
        self._holds = 0
        self._reason = "not built yet"
        self._stale = 0
        self.fresh_until: float | None = None
        """Until when answers may be given, on the monotonic clock; None: for ever."""
        self.built_at = 0.0
        """When the scan of the filter in use began."""
        self.position: str | None = None
        """How far the changes of other writers are inside."""
        self._rebuilds = 0
        self._rebuild_seconds = 0.0

    def _make(self, expected: int | None) -> ScalableBloomFilter:
        wanted = max(self.capacity or 1024, int((expected or 0) * _ROOM))
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
        return self._trusted is not None and self.is_fresh

    @property
    def is_fresh(self) -> bool:
        """Whether other writers, if any are followed, were followed in time."""
        return self.fresh_until is None or time.monotonic() < self.fresh_until

    @property
    def state(self) -> State:
        if self._filter is not None:
            return State.READY if self.is_fresh else State.DEGRADED
        if self._next is not None:
            return State.BUILDING
        return State.DEGRADED if self._rebuilds else State.UNKNOWN

    # --- writes -------------------------------------------------------------------------------

    def _publish(self) -> None:
        """Whatever has changed becomes known, to each other thread at one moment."""
        self._live = tuple(each for each in (self._filter, self._next) if each is not None)
        if self._holds or self._filter is None:
            self._trusted = None
        elif self.removals == "commit":
            self._trusted = _Without(self._filter, self._gone)
        else:
            self._trusted = self._filter

    def write(self, transaction: OpenTransaction, keys: Sequence[Key]) -> None:
        """Adds keys that an open transaction writes."""
        transaction.list_keys(keys)  # first, see above
        if self.removals == "commit":
            with self._lock:
                self._gone.difference_update(keys)
                self._candidates.difference_update(keys)
        for each in self._live:
            add_to(each, keys)

    def add_many(self, keys: Sequence[Key]) -> None:
        """Adds keys that are committed already."""
        with self._lock:
            self._gone.difference_update(keys)
            self._candidates.difference_update(keys)
        for each in self._live:
            each.add_many(keys)

    def removable(self, keys: Iterable[Key]) -> list[Key]:
        """Those that no open transaction has written; ask the database for them, see above."""
        with self._lock:
            written = self._uncertain.union(*(each.keys for each in self.transactions))
            if any(each.blind or each.unlisted for each in self.transactions):
                return []
            found = [key for key in keys if key not in written]
            self._candidates.update(found)
            return found

    def remove_many(self, keys: Iterable[Key], *, asked: Iterable[Key]) -> None:
        """Of those `asked` for, the database had no row of these `keys`."""
        with self._lock:
            gone = self._candidates.intersection(keys)
            self._gone.update(key for key in gone if any(key in each for each in self._live))
            self._candidates.difference_update(asked)

    def count_stale(self, rows: int) -> None:
        """So many rows were deleted, and their keys stay inside."""
        with self._lock:
            self._stale += max(rows, 0)

    def distrust(self, reason: str) -> None:
        """Keys were written that nobody saw: everything passes until a rebuild."""
        with self._lock:
            self._distrust(reason)

    def _distrust(self, reason: str) -> None:
        self._doubts += 1
        self._filter = None
        self._reason = reason
        self._forget_gone()
        self._publish()

    def _forget_gone(self) -> None:
        self._gone = set()
        self._candidates.clear()

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

    @property
    def rebuilding(self) -> bool:
        return self._next is not None

    def may_follow(self) -> bool:
        """Whether to read the changes of others: nobody else does it for these keys."""
        return True

    # --- transactions -------------------------------------------------------------------------

    def begin(self, driver: Any = None) -> OpenTransaction:
        """For the writes of one connection. Whoever drops it has rolled back."""
        transaction = OpenTransaction(self, driver)
        with self._lock:
            self.transactions.add(transaction)
        return transaction

    def keep(self, transaction: OpenTransaction) -> None:
        """Nobody knows how the transaction ends: its keys go into every new filter."""
        with self._lock:
            self._uncertain.update(transaction.keys)
            if transaction.unlisted:
                self._distrust("a transaction of very many keys broke off")

    def ended(self, transaction: OpenTransaction) -> None:
        """The transaction is committed or rolled back; nothing is left to do here."""

    def after_fork(self) -> None:
        """In a new process: the parent goes on adding keys that this copy will never see."""
        self._lock, self._one_build = threading.Lock(), threading.Lock()
        self.transactions = WeakSet(self.transactions)
        for transaction in self.transactions:
            transaction.reset()  # what it has written is up to the parent
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
            for _ in range(ATTEMPTS):
                done = self._build(scan, expected, progress)
                if done is not None:
                    return done
        return False

    def _build(self, scan: Scan, expected: int | None, progress: Progress | None) -> bool | None:
        """One attempt; None if it was spoilt, False if another one would be at once."""
        begun = time.monotonic()
        with self._lock:
            unread = sum(len(each.keys) for each in self.transactions)
        made = self._make((expected or 0) + unread)
        with self._lock:
            doubts, stale = self._doubts, self._stale
            self._next = made
            self._publish()  # before the look at who is open, see above
            for transaction in self.transactions:
                made.add_many(transaction.keys.copy())
                if (transaction.blind or transaction.unlisted) and not transaction.is_over():
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
            self._forget_gone()
            self._reason = ""
            self._stale -= stale
            self._rebuilds += 1
            self._rebuild_seconds = time.monotonic() - begun
            self._publish()
        return True

    def due(self) -> str:
        """Why a rebuild is worth its while now; empty if it is not."""
        return self._reason if self._filter is None else reason_to_rebuild(self.stats())

    def stats(self) -> FilterStats:
        """What the filter in use is like."""
        with self._lock:
            filter_ = self._filter
            stats = None if filter_ is None else filter_.stats()
            late = "" if self.is_fresh else "other writers could not be followed for too long"
            return FilterStats(
                state=self.state,
                reason=late or ("" if stats else self._reason),
                rebuilding=self._next is not None,
                items=stats.items if stats else 0.0,
                capacity=stats.capacity if stats else self.capacity,
                error_rate=self.error_rate,
                predicted_error=stats.predicted_error if stats else 1.0,
                saturation=stats.fill if stats else 0.0,
                bytes=stats.bytes if stats else 0,
                removed=len(self._gone),
                stale=self._stale,
                unseen=self._doubts,
                rebuilds=self._rebuilds,
                rebuild_seconds=self._rebuild_seconds,
            )
