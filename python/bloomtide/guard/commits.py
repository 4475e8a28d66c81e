"""What an engine does, told before or when it has been done: statements, commits, rollbacks.

Statements are told by the execution context of the dialect, and all else by methods of the dialect
that are wrapped, once for each dialect object, which belongs to one engine.

The events of SQLAlchemy would not do. That before a commit says nothing of its success, that of a
`Session` also comes when a savepoint is released, a bare connection has none, and what was prepared
elsewhere is committed without any event; a statement that somebody else sends in its event is told
to nobody after him. And an engine with a single event pays for all of them, at every connection:
more than everything else here together.

Between two statements a program waits for its database, and what it needs next has left the
processor's caches. So each step here is one short function, and looks at as little as it can.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Protocol

from sqlalchemy.engine import Dialect

Info = dict[Any, Any]


_kept = attrgetter("_connection_record.info")
"""The `info` of a connection from the pool, where it lies. Its own attribute makes a dictionary at
each checkout; but that one is promised, so whoever fails here asks `info_of`."""
NOT_KEPT = (AttributeError, KeyError)


def info_of(connection: Any) -> Info:
    """What is kept with a connection; nothing with one that is no member of a pool yet."""
    try:
        info = connection.info
    except NotImplementedError:
        return {}
    return info if isinstance(info, dict) else {}


class Transaction(Protocol):
    """What one connection has under way, for one watcher; the same object for one after another."""

    keys: list[Any]
    """What it has written so far, to be forgotten when it ends; all that most of them have."""
    more: bool
    """There is more to its end, so it has to be told."""

    def see_nothing(self, reason: str) -> None:
        """It writes what the watcher cannot know; then there is more to its end."""

    def rolled_back(self) -> None: ...
    def committing(self) -> None: ...
    def committed(self) -> None: ...
    def uncertain(self) -> None:
        """The commit has failed."""


class Watcher(Protocol):
    """Who is told."""

    def executes(self, context: Any) -> bool:
        """A statement is about to be sent; whether to tell when it has been carried out."""

    def executed(self, context: Any) -> None: ...
    def transaction(self, info: Info, begins: bool) -> Transaction:
        """What is under way on the connection with this `info`.

        Unless it `begins` now, it may have written before the watcher came.
        """


Known = tuple[tuple[Watcher, ...], tuple[Transaction, ...]]
_NOBODY: Known = ((), ())


class Told:
    """Those who are told of one dialect, and its methods as they tell it.

    The `info` of a connection has the watchers that it knows of, and the transaction of each.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.watchers: tuple[Watcher, ...] = ()
        """Replaced as a whole: somebody may come or go while all are told."""
        self._begin = unless_empty(dialect.do_begin)
        self._rollback = dialect.do_rollback
        self._commit = dialect.do_commit
        self._commit_twophase = dialect.do_commit_twophase
        for name, telling in (
            ("do_begin", self._do_begin),
            ("do_rollback", self._do_rollback),
            ("do_commit", self._do_commit),
            ("do_commit_twophase", self._do_commit_twophase),
            ("execution_ctx_cls", _telling(self, dialect.execution_ctx_cls)),
        ):
            setattr(dialect, name, telling)

    def watch(self, watcher: Watcher) -> None:
        """From now on the watcher is told."""
        with _lock:
            self.watchers = (*self.watchers, watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """Ends what `watch` began. The methods stay, for whoever has wrapped them in turn."""
        with _lock:
            self.watchers = tuple(each for each in self.watchers if each is not watcher)

    def meet(self, info: Info, *, begins: bool = False) -> tuple[Transaction, ...]:
        """Watchers have come or gone since the connection was used last."""
        watchers = self.watchers
        transactions = tuple(watcher.transaction(info, begins) for watcher in watchers)
        info[self] = watchers, transactions
        return transactions

    def _known(self, connection: Any) -> Known:
        known: Known = info_of(connection).setdefault(self, _NOBODY)
        return known

    def _do_begin(self, connection: Any) -> None:
        try:
            watchers, transactions = _kept(connection)[self]
        except NOT_KEPT:
            watchers, transactions = self._known(connection)
        if watchers is not self.watchers:
            transactions = self.meet(info_of(connection), begins=True)
        for transaction in transactions:
            if transaction.more:
                transaction.rolled_back()
            elif transaction.keys:
                transaction.keys = []
        if self._begin is not None:
            self._begin(connection)

    def _do_rollback(self, connection: Any) -> None:
        try:
            transactions = _kept(connection)[self][1]
        except NOT_KEPT:
            transactions = self._known(connection)[1]
        for transaction in transactions:
            if transaction.more:
                transaction.rolled_back()
            elif transaction.keys:
                transaction.keys = []
        self._rollback(connection)

    def _do_commit_twophase(
        self, connection: Any, xid: Any, is_prepared: bool = True, recover: bool = False
    ) -> None:
        if recover:
            for transaction in self.meet(info_of(connection)):
                transaction.see_nothing("a transaction is committed that was prepared elsewhere")
        self._do_commit(connection, lambda it: self._commit_twophase(it, xid, is_prepared, recover))

    def _do_commit(self, connection: Any, commit: Callable[[Any], None] | None = None) -> None:
        try:
            watchers, transactions = _kept(connection)[self]
        except NOT_KEPT:
            watchers, transactions = self._known(connection)
        if watchers is not self.watchers:
            transactions = self.meet(info_of(connection))
        for transaction in transactions:
            if transaction.more:
                transaction.committing()
        try:
            (commit or self._commit)(connection)
        except BaseException:
            for transaction in transactions:
                if transaction.more or transaction.keys:
                    transaction.uncertain()
            raise
        for transaction in transactions:
            if transaction.more:
                transaction.committed()
            else:
                transaction.keys = []


def _telling(told: Told, kind: Any) -> Any:
    """An execution context that tells what it does."""
    pre_exec, post_exec = unless_empty(kind.pre_exec), unless_empty(kind.post_exec)

    class Telling(kind):  # type: ignore[misc]
        waiting: tuple[Watcher, ...] = ()
        """Those to tell when it has been carried out."""

        def pre_exec(self) -> None:
            for watcher in told.watchers:
                if watcher.executes(self):
                    self.waiting += (watcher,)
            if pre_exec is not None:
                pre_exec(self)

        def post_exec(self) -> None:
            if post_exec is not None:
                post_exec(self)
            for watcher in self.waiting:
                watcher.executed(self)

    return Telling


def _bare() -> None: ...


def _documented() -> None:
    """Nothing but this."""


_EMPTY = (_bare.__code__.co_code, _documented.__code__.co_code)


def unless_empty(function: Callable[..., None]) -> Callable[..., None] | None:
    """The function; None if its body is empty, so that nobody need call it.

    As a rule a dialect has nothing to do before and after a statement, nor when a transaction
    begins. Then what is told there costs no call more than SQLAlchemy makes by itself.
    """
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return None if getattr(code, "co_code", None) in _EMPTY else function


_TOLD = "_bloomtide_told"
"""An attribute of the dialect, so that it ends with the dialect that it refers to."""
_lock = threading.Lock()


def told_by(dialect: Dialect) -> Told:
    """Those who are told of the dialect, nobody at first."""
    with _lock:
        if not hasattr(dialect, _TOLD):
            setattr(dialect, _TOLD, Told(dialect))
        told: Told = getattr(dialect, _TOLD)
        return told
