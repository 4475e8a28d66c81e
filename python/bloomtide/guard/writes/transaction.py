"""`OpenTransaction`: what one connection has written since its last commit or rollback.

A key is in the filter before its row is written, which is before its commit. That alone is not
enough: a build that starts after the write and reads before the commit would see neither. So the
keys stay listed here until the transaction has certainly ended, and every new filter gets them too.
A key that is listed too long costs a query; so the end may be noticed late, and the driver is asked
(`is_open`) instead of every commit being watched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bloomtide.guard.filter.keys import KeyFilter

Key = str | bytes | int


def is_open(driver: Any) -> bool | None:
    """Whether a driver's connection has an open transaction; None if it is broken or unknown."""
    try:
        if hasattr(driver, "in_transaction"):  # sqlite3, aiosqlite
            return bool(driver.in_transaction)
        if hasattr(driver, "info"):  # psycopg, psycopg2; 0 is idle, 4 is broken
            status = int(driver.info.transaction_status)
            return None if status > 3 else status > 0
        if hasattr(driver, "is_in_transaction"):  # asyncpg
            return None if driver.is_closed() else bool(driver.is_in_transaction())
    except Exception:  # noqa: BLE001 - each driver has its own error for a closed connection
        return None
    return None


class OpenTransaction:
    """The keys of one transaction; the same object serves the next one of its connection."""

    __slots__ = (
        "__weakref__",
        "_holds",
        "_store",
        "awaiting",
        "batch",
        "blind",
        "commits",
        "deleted",
        "driver",
        "inside",
        "keys",
        "sending",
        "unlisted",
    )

    most = 1_000_000
    """Keys listed for one transaction; no build that starts beside one with more is valid."""

    def __init__(self, store: KeyFilter, driver: Any = None) -> None:
        self._store = store
        self.driver = driver
        """The driver's connection, which knows whether a transaction is open."""
        self.reset()

    def reset(self) -> None:
        """Nothing is written yet."""
        self._holds = False
        self.keys: list[Key] = []
        self.deleted: list[tuple[Key, tuple[Any, ...]]] = []
        """Keys of rows that it deletes, with the values that the driver got."""
        self.inside: set[int] = set()
        """Generations of the store that have all of its keys."""
        self.awaiting: object = None
        """The statement under way whose keys only the database knows."""
        self.batch: object = None
        """The statement under way that is sent in several pieces."""
        self.blind = False
        """It has written keys that nobody saw."""
        self.unlisted = False
        """It has written more keys than are listed."""
        self.sending = False
        """A statement may be on its way that the driver does not show yet."""
        self.commits: Callable[[], bool] | None = None
        """Whether the commit that was begun has yet to come back, if that can be told."""

    def write(self, keys: Sequence[Key]) -> None:
        """Keys that it writes, or may have written."""
        self._store.write(self, keys)

    def list_keys(self, keys: Sequence[Key]) -> None:
        """For the store: remembers keys until the end."""
        self.keys.extend(keys)
        if len(self.keys) > self.most:
            self.unlisted = True  # first: whoever finds no keys must find this
            self.keys = []

    def see_nothing(self, reason: str) -> None:
        """It writes keys that cannot be seen."""
        self.blind = True
        self._store.distrust(reason)

    def is_over(self) -> bool:
        """Whether it has certainly ended, as seen from any thread.

        SQLite calls a transaction ended as soon as it begins to commit it, before others see it.
        """
        if self.sending or (self.commits is not None and self.commits()):
            return False
        return is_open(self.driver) is False

    def await_keys(self, statement: object, *, hold: bool) -> None:
        """A statement is about to be sent whose keys only the database knows.

        `hold`: everything passes until they are known, since the statement commits at once.
        """
        self.awaiting = statement
        if hold and not self._holds:
            self._holds = True
            self._store.hold(1)

    def got_keys(self) -> None:
        """They are known now, and were added; or trust has ended."""
        self.awaiting = None
        if self._holds:
            self._holds = False
            self._store.hold(-1)

    def broke_off(self) -> None:
        """The statement has failed whose keys only the database knows."""
        if self.awaiting is not None:
            self.see_nothing("a statement broke off whose keys only the database knows")
            self.got_keys()

    def end(self) -> None:
        """It has ended: it is committed or rolled back."""
        self.broke_off()
        self._store.ended(self)
        self.reset()

    def end_uncertain(self) -> None:
        """Its connection is gone: its commit may be carried out yet."""
        if self.blind:
            self._store.distrust("a connection broke that wrote keys nobody saw")
        self._store.keep(self)
        self.end()
