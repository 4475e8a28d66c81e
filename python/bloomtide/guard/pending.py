"""`Pending`: what one open transaction has written; then the next one of its connection.

A key is added to the filter when its row is written, which is before its commit. That alone is not
enough: a build that starts after the write and reads before the commit would see neither. So the
keys of a transaction stay listed here until its end is known, and every new filter gets them too.

Invariants; the order in which a writer and a build do things takes the place of a lock (`held.py`):

1. It is in the set `pendings` of its `HeldKeys` from the beginning, as long as anybody has it.
2. `keys` has every key that the open transaction wrote, unless `unlisted` or `blind` is set. When
   it has ended, all is as it was in the beginning. Unless `more` is set, its keys are all there is
   to forget, and whoever ends it may do so by himself.
3. Removals are applied once, after the commit has succeeded, and only to the filter that was in
   use when the row was deleted: only of that one it is certain that the key is inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol
from weakref import WeakSet

Key = str | bytes | int


class Keys(Protocol):
    """Where a transaction's keys go: `HeldKeys`, or a store of the same shape."""

    @property
    def generation(self) -> int: ...
    def write(self, pending: Pending, keys: Sequence[Key]) -> None: ...
    def remove_many(self, keys: Iterable[Key], generation: int | None = None) -> None: ...
    def count_stale(self, rows: int) -> None: ...
    def distrust(self, reason: str) -> None: ...
    def hold(self) -> AbstractContextManager[None]: ...
    def keep(self, pending: Pending) -> None: ...


class _Deleted:
    """The rows that a transaction deletes."""

    __slots__ = ("certain", "keys", "marks", "stale")

    def __init__(self) -> None:
        self.keys: list[tuple[int, Key]] = []
        """Those to take out, each with the filter in use when its row was deleted."""
        self.marks: list[tuple[str, int]] = []
        """Savepoints, and how many keys there were."""
        self.certain = True
        self.stale = 0


class Pending:
    """The keys written and the rows deleted by one transaction that has not ended.

    Whoever has many transactions one after another may use it for all of them.
    """

    __slots__ = (
        "__weakref__",
        "_deleted",
        "_held",
        "_hold",
        "awaiting",
        "blind",
        "keys",
        "more",
        "unlisted",
    )

    most = 1_000_000
    """Keys remembered for one transaction; no build that starts beside one with more is valid."""

    def __init__(self, held: Keys) -> None:
        self._held = held
        self._hold: AbstractContextManager[None] | None = None
        """Open while `awaiting` where each statement is committed at once."""
        self.reset()

    def reset(self) -> None:
        """Nothing is written yet."""
        self.more = False
        self.keys: list[Key] = []
        self.awaiting: object = None
        """The statement that was sent last, if only the database knows its keys so far."""
        self.blind = False
        self.unlisted = False
        self._deleted: _Deleted | None = None

    def add_many(self, keys: Sequence[Key]) -> None:
        """Keys that this transaction writes, or may have written."""
        self._held.write(self, keys)

    def unlist(self) -> None:
        """There are too many keys; called by the `Keys` that have listed them."""
        self.more = True
        self.unlisted = True  # first: whoever finds no keys must find this
        self.keys = []

    def _deletes(self) -> _Deleted:
        if self._deleted is None:
            self.more = True
            self._deleted = _Deleted()
        return self._deleted

    def remove_many(self, keys: Iterable[Key]) -> None:
        """Keys of rows that this transaction certainly deletes."""
        deleted = self._deletes()
        if deleted.certain:
            generation = self._held.generation
            deleted.keys.extend((generation, key) for key in keys)

    def lose(self, rows: int) -> None:
        """So many rows lose keys that are not known, so these will stay."""
        self._deletes().stale += max(rows, 0)

    def see_nothing(self, reason: str) -> None:
        """It writes keys that cannot be seen."""
        self.more = self.blind = True
        self._held.distrust(reason)

    def forget_removals(self) -> None:
        """Parts of it may be rolled back unseen, so nothing that it deletes is taken out."""
        deleted = self._deletes()
        deleted.certain = False
        deleted.keys.clear()

    def savepoint(self, name: str) -> None:
        deleted = self._deletes()
        deleted.marks.append((name, len(deleted.keys)))

    def rollback_to(self, name: str) -> None:
        """Drops the removals since the savepoint. Keys stay: too many of them do no harm."""
        deleted = self._deletes()
        while deleted.marks:
            mark, length = deleted.marks.pop()
            if mark == name:
                del deleted.keys[length:]
                return
        self.forget_removals()

    def committing(self) -> None:
        """The commit is about to be sent."""
        if self.awaiting is not None:
            self.see_nothing("a statement broke off whose keys only the database knows")

    def landed(self) -> None:
        """What was sent since `committing` is done, and the transaction goes on."""

    def committed(self) -> None:
        """The commit has succeeded."""
        deleted = self._deleted
        self.close()
        if deleted is not None:
            self._held.count_stale(deleted.stale)
            by_generation: dict[int, list[Key]] = {}
            for generation, key in deleted.keys:
                by_generation.setdefault(generation, []).append(key)
            for generation, keys in by_generation.items():
                self._held.remove_many(keys, generation)

    def rolled_back(self) -> None:
        """It has ended without a commit."""
        self.close()

    def uncertain(self) -> None:
        """Its commit failed: it may be lost, still under way, or left open on its connection."""
        if self.blind:
            self._held.distrust("a commit broke off that wrote keys nobody saw")
        self._held.keep(self)
        self.close()

    def await_keys(self, statement: object, *, hold: bool) -> None:
        """A statement is about to be sent whose keys only the database knows."""
        self.more = True
        self.awaiting = statement
        if hold and self._hold is None:
            self._hold = self._held.hold()
            self._hold.__enter__()

    def got_keys(self) -> None:
        """They are known now, and were added; or trust has ended."""
        self.awaiting = None
        if self._hold is not None:
            self._hold.__exit__(None, None, None)
            self._hold = None

    def close(self) -> None:
        """It has ended, and what comes next begins with nothing."""
        if self._hold is not None:
            if self.awaiting is not None:
                self._held.distrust("a statement broke off whose keys only the database knows")
            self.got_keys()
        self.reset()


def disowned(pendings: Iterable[Pending]) -> WeakSet[Pending]:
    """Those of a forked process: what they have written is up to the one that it came from, but
    connections that were inherited have them still."""
    mine = WeakSet(pendings)
    for pending in mine:
        pending.reset()
    return mine
