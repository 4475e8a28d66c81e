"""What every connection of the process writes, as seen by Django's execute wrappers.

A wrapper is called before a statement is sent, so its keys are in the filter before any commit can
show them. The keys of a transaction stay listed until its end is known
(`guard/writes/transaction.py`): a build that starts beside it gets them too. The end comes by
`commit`, `rollback` or `close` of the connection, or when the driver says that no transaction is
open.

A commit that fails may have reached the database all the same: then its keys stay for ever. A
transaction that was open before the guard was made may have written anything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol
from weakref import WeakSet

from django.db import DataError, IntegrityError, ProgrammingError, connections
from django.db.backends.signals import connection_created

from bloomtide.guard.key_parts import Unseen
from bloomtide.guard.writes.sql import TEMPORARY_TRIGGERS, Effect, Reader, Special
from bloomtide.guard.writes.tokens import Parameter
from bloomtide.guard.writes.transaction import Key, OpenTransaction, is_open
from bloomtide.integrations.django.columns import KeyColumn

_MARK = "_bloomtide_watch"
_REFUSED = (IntegrityError, DataError, ProgrammingError)
"""The database has said no. After any other error nobody knows what it has done."""


class Watcher(Protocol):
    """Who wants to know: a guard."""

    column: KeyColumn
    reader: Reader

    def concerns(self, connection: Any) -> bool:
        """Whether it is a connection to the guarded database."""

    def begin(self, driver: Any) -> OpenTransaction:
        """For the writes of one connection."""

    def committing(self, transaction: OpenTransaction) -> None:
        """A commit is about to be sent."""

    def landed(self, transaction: OpenTransaction) -> None:
        """What was sent since `committing` is done, and the transaction goes on."""

    def connected(self, connection: Any) -> None:
        """A connection was opened."""

    def deleted(self, rows: int) -> None:
        """So many rows were deleted, unless that is rolled back."""


_watchers: WeakSet[Watcher] = WeakSet()
_watches: WeakSet[ConnectionWatch] = WeakSet()
_changing = threading.Lock()
_watching = False


def is_watching() -> bool:
    """Whether the app is installed, so that all connections are watched."""
    return _watching


def start() -> None:
    """Watch every connection from now on; called when Django has loaded its apps."""
    global _watching
    connection_created.connect(_created, dispatch_uid="bloomtide")
    for connection in connections.all(initialized_only=True):
        _created(connection=connection)
    _watching = True


def add(watcher: Watcher) -> None:
    """It hears of all writes from now on."""
    with _changing:
        _watchers.add(watcher)
        watches = list(_watches)
    for watch in watches:
        watch.come_late(watcher)


def remove(watcher: Watcher) -> None:
    """It hears of none any more."""
    with _changing:
        _watchers.discard(watcher)


def _created(connection: Any, **_: object) -> None:
    for watcher in list(_watchers):
        if watcher.concerns(connection):
            watcher.connected(connection)
    # The signal comes again when a connection is opened again; the wrapper object is the same.
    if not hasattr(connection, _MARK):
        watch = ConnectionWatch(connection)
        setattr(connection, _MARK, watch)
        with _changing:
            _watches.add(watch)


class ConnectionWatch:
    """One connection: its open transaction, for each guard that it concerns."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._open: dict[Watcher, OpenTransaction] = {}
        self._sending = False
        """A statement is under way, of which guards that come later do not hear."""
        self._may_have_triggers: bool = connection.vendor == "sqlite"
        """Of its own, which no build on another connection sees."""
        self._changing = threading.RLock()
        # First, not last: `with connection.execute_wrapper(...)` ends by removing the last one.
        connection.execute_wrappers.insert(0, self)
        for name in ("commit", "rollback", "close"):
            setattr(connection, name, self._ending(name, getattr(connection, name)))

    def __call__(
        self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any
    ) -> Any:
        # In this order: whoever comes too late to be told sees that something is under way.
        self._sending = True
        try:
            if not _watchers and not self._open:
                return execute(sql, params, many, context)
            return self._watched(execute, sql, params, many, context)
        finally:
            with self._changing:
                self._sending = False
            self._end_unless_open("end_uncertain")  # what guards that came meanwhile have begun

    def _watched(
        self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any
    ) -> Any:
        if many:
            params = list(params)  # it may be an iterator, and is read twice
        deleting = self._see(sql, params, many)
        if self._open and (not self._is_open() or self._ends(sql)):
            self._committing()  # the statement is its own transaction, or the end of one
        try:
            answer = execute(sql, params, many, context)
        except BaseException as error:
            self._end_unless_open("end" if isinstance(error, _REFUSED) else "end_uncertain")
            raise
        self._end_unless_open("end")
        for watcher in deleting:
            watcher.deleted(max(0, context["cursor"].rowcount))
        return answer

    def come_late(self, watcher: Watcher) -> None:
        """It was made just now, by any thread: an open transaction may have written before."""
        with self._changing:
            if (self._sending or self._is_open()) and watcher.concerns(self._connection):
                transaction = self._begin(watcher)
                transaction.sending = self._sending
                transaction.see_nothing("a transaction was open when the guard was made")

    def _begin(self, watcher: Watcher) -> OpenTransaction:
        with self._changing:
            if watcher not in self._open:
                self._open[watcher] = watcher.begin(self._connection.connection)
            return self._open[watcher]

    def _see(self, sql: Any, params: Any, many: bool) -> list[Watcher]:
        """Tells the guards what it writes; those whose rows it deletes come back."""
        deleting = []
        with _changing:
            watchers = [each for each in _watchers if each.concerns(self._connection)]
        text = self._text(sql) if watchers else ""
        triggered = bool(watchers) and self._may_trigger(text)
        for watcher in watchers:
            found = watcher.reader.read(text)
            if found.loses:
                deleting.append(watcher)
            self._may_have_triggers |= found.makes_trigger
            keys, unseen = written(watcher.column, found, params, many)
            if triggered:
                unseen = unseen or "a temporary trigger may write keys"
            if unseen:
                self._begin(watcher).sending = True
                self._begin(watcher).see_nothing(unseen)
            elif keys:
                self._begin(watcher).write(keys)
        return deleting

    def _may_trigger(self, text: str) -> bool:
        """Whether it is no query, and this connection has temporary triggers."""
        if not self._may_have_triggers or text.lstrip()[:6].upper() == "SELECT":
            return False
        found = self._connection.connection.execute(TEMPORARY_TRIGGERS).fetchone()
        self._may_have_triggers = found is not None
        return self._may_have_triggers

    def _text(self, sql: Any) -> str:
        """psycopg also takes statements that are put together from parts."""
        if isinstance(sql, bytes):
            return sql.decode()
        return sql if isinstance(sql, str) else str(sql.as_string(self._connection.connection))

    def _ends(self, sql: Any) -> bool:
        """COMMIT by hand, and the like."""
        return any(each.reader.read(self._text(sql)).ends_transaction for each in self._open)

    def _is_open(self) -> bool:
        """Whether the driver knows of an open transaction. A broken connection has none."""
        return is_open(self._connection.connection) is True

    def _ending(self, name: str, original: Callable[[], None]) -> Callable[[], None]:
        failed = "end_uncertain" if name == "commit" else "end"

        def ending() -> None:
            if name == "commit":
                self._committing()
            try:
                original()
            except BaseException as error:
                # A lock may make a commit fail, and the transaction goes on.
                self._end_unless_open("end" if isinstance(error, _REFUSED) else failed)
                raise
            self._end("end")

        return ending

    def _end_unless_open(self, how: str) -> None:
        if not self._open:
            return
        if self._is_open():
            for watcher, transaction in list(self._open.items()):
                transaction.sending = False
                watcher.landed(transaction)
        else:
            self._end(how)

    def _end(self, how: str) -> None:
        with self._changing:
            ended, self._open = self._open, {}
        for transaction in ended.values():
            getattr(transaction, how)()

    def _committing(self) -> None:
        for watcher, transaction in list(self._open.items()):
            transaction.sending = True  # SQLite's driver says "no transaction" before it has ended
            watcher.committing(transaction)


def written(column: KeyColumn, found: Effect, params: Any, many: bool) -> tuple[Sequence[Key], str]:
    """The keys that a statement writes, and why they are not known if they are not."""
    keys: list[Key] = []
    try:
        for given in params if many else [params]:
            for (value,) in found.rows:
                if value is Special.FILLED and column.is_filled:
                    return (), "the database fills in the key"
                if not isinstance(value, Parameter):
                    continue
                parameter = given[value.place]
                for each in parameter if value.is_list else [parameter]:
                    key = column.written(each)
                    if key is not None:
                        keys.append(key)
    except (Unseen, IndexError, KeyError, TypeError):
        return (), "a key of another type than its column"
    return keys, found.unseen
