"""`Pending`: what one open transaction has written.

A key is added to the filter when its row is written, which is before its commit. That alone is not
enough: a build that starts after the write and reads before the commit would see neither. So the
keys of a transaction stay listed here until its end is known, and every new filter gets them too.

Invariants, all under the lock of the keys they belong to:

1. From the first write to the end of the transaction it is in the set `open` of its `HeldKeys`.
2. `keys` has every key it wrote, unless `unlisted` or `blind` is set.
3. Removals are applied once, after the commit has succeeded, and only to the filter that was in
   use when the row was deleted: only of that one it is certain that the key is inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

Key = str | bytes | int

_LISTED = 1_000_000
"""Keys remembered for one transaction; no build that starts beside one with more is valid."""


class Keys(Protocol):
    """Where a transaction's keys go: `HeldKeys`, or a store of the same shape."""

    @property
    def generation(self) -> int: ...
    def write(self, pending: Pending, keys: Sequence[Key]) -> None: ...
    def remove_many(self, keys: Iterable[Key], generation: int | None = None) -> None: ...
    def distrust(self, reason: str) -> None: ...
    def committing(self, pending: Pending) -> None: ...
    def close(self, pending: Pending, *, uncertain: bool = False) -> None: ...


class Pending:
    """The keys written and the rows deleted by one transaction that has not ended."""

    __slots__ = (
        "__weakref__",
        "_held",
        "_marks",
        "_removals",
        "blind",
        "keys",
        "removable",
        "unlisted",
    )

    def __init__(self, held: Keys) -> None:
        self._held = held
        self._removals: list[tuple[int, Key]] = []
        self._marks: list[tuple[str, int]] = []
        self.keys: list[Key] = []
        self.blind = False
        self.unlisted = False
        self.removable = True

    def add_many(self, keys: Sequence[Key]) -> None:
        """Keys that this transaction writes, or may have written."""
        self._held.write(self, keys)

    def list(self, keys: Sequence[Key]) -> None:
        """Remembers the keys; called by the `Keys` under their lock."""
        if self.unlisted:
            return
        self.keys.extend(keys)
        if len(self.keys) > _LISTED:
            self.keys, self.unlisted = [], True

    def remove_many(self, keys: Iterable[Key]) -> None:
        """Keys of rows that this transaction certainly deletes."""
        if self.removable:
            generation = self._held.generation
            self._removals.extend((generation, key) for key in keys)

    def see_nothing(self, reason: str) -> None:
        """It writes keys that cannot be seen."""
        self.blind = True
        self._held.distrust(reason)

    def forget_removals(self) -> None:
        """Parts of it may be rolled back unseen, so nothing that it deletes is taken out."""
        self.removable = False
        self._removals.clear()

    def savepoint(self, name: str) -> None:
        self._marks.append((name, len(self._removals)))

    def rollback_to(self, name: str) -> None:
        """Drops the removals since the savepoint. Keys stay: too many of them do no harm."""
        while self._marks:
            mark, length = self._marks.pop()
            if mark == name:
                del self._removals[length:]
                return
        self.forget_removals()

    def committing(self) -> None:
        """The commit is about to be sent."""
        self._held.committing(self)

    def committed(self) -> None:
        """The commit has succeeded."""
        by_generation: dict[int, list[Key]] = {}
        for generation, key in self._removals:
            by_generation.setdefault(generation, []).append(key)
        self._held.close(self)
        for generation, keys in by_generation.items():
            self._held.remove_many(keys, generation)

    def rolled_back(self) -> None:
        """It has ended without a commit."""
        self._held.close(self)

    def uncertain(self) -> None:
        """The connection broke while it was committing: nobody knows how it ended, or when."""
        if self.blind:
            self._held.distrust("a commit broke off that wrote keys nobody saw")
        self._held.close(self, uncertain=True)
