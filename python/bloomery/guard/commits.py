"""What a dialect does, told when it has been done: statements, commits, rollbacks.

The methods of the dialect are wrapped, once for each dialect object, which belongs to one engine.
The events of SQLAlchemy would not do. That before a commit says nothing of its success, that of a
`Session` also comes when a savepoint is released, a bare connection has none, and what was prepared
elsewhere is committed without any event. And an engine with a single event pays for all of them, at
every connection: more than everything else here together.
"""

from __future__ import annotations

import threading
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from sqlalchemy.engine import Dialect

Info = dict[Any, Any]


def info_of(connection: Any) -> Info:
    """What is kept with a connection; nothing with one that is no member of a pool yet."""
    try:
        info = connection.info
    except NotImplementedError:
        return {}
    return info if isinstance(info, dict) else {}


class Watcher(Protocol):
    """Gets the `info` of the connection from the pool."""

    def executed(self, cursor: Any, statement: str, context: Any) -> None: ...
    def begins(self, info: Info) -> None: ...
    def rolls_back(self, info: Info) -> None: ...
    def commits(self, info: Info, *, written_elsewhere: bool) -> None: ...
    def committed(self, info: Info) -> None: ...
    def commit_failed(self, info: Info) -> None: ...


_lock = threading.Lock()
_watched: WeakKeyDictionary[Dialect, list[Watcher]] = WeakKeyDictionary()


def watch(dialect: Dialect, watcher: Watcher) -> None:
    """From now on the watcher is told."""
    with _lock:
        if dialect not in _watched:
            _watched[dialect] = []
            _wrap(dialect, _watched[dialect])
        _watched[dialect].append(watcher)


def unwatch(dialect: Dialect, watcher: Watcher) -> None:
    """Ends what `watch` began. The wrappers stay, for whoever has wrapped them in turn."""
    with _lock:
        _watched[dialect].remove(watcher)


def _wrap(dialect: Dialect, watchers: list[Watcher]) -> None:
    # A list is copied before each round: somebody may come or go meanwhile.
    begin, rollback, commit = dialect.do_begin, dialect.do_rollback, dialect.do_commit
    commit_twophase = dialect.do_commit_twophase

    def do_begin(connection: Any) -> None:
        info = info_of(connection)
        for watcher in [*watchers]:
            watcher.begins(info)
        begin(connection)

    def do_rollback(connection: Any) -> None:
        info = info_of(connection)
        for watcher in [*watchers]:
            watcher.rolls_back(info)
        rollback(connection)

    def surround(connection: Any, written_elsewhere: bool, work: Any) -> None:
        info, present = info_of(connection), [*watchers]
        for watcher in present:
            watcher.commits(info, written_elsewhere=written_elsewhere)
        try:
            work()
        except BaseException:
            for watcher in present:
                watcher.commit_failed(info)
            raise
        for watcher in present:
            watcher.committed(info)

    def do_commit(connection: Any) -> None:
        surround(connection, False, lambda: commit(connection))

    def do_commit_twophase(
        connection: Any, xid: Any, is_prepared: bool = True, recover: bool = False
    ) -> None:
        surround(
            connection, recover, lambda: commit_twophase(connection, xid, is_prepared, recover)
        )

    def and_tell(execute: Any) -> Any:
        def do_execute(cursor: Any, statement: str, *rest: Any, **words: Any) -> None:
            execute(cursor, statement, *rest, **words)
            context = words.get("context", rest[-1] if rest else None)
            for watcher in [*watchers]:
                watcher.executed(cursor, statement, context)

        return do_execute

    dialect.__dict__.update(
        do_begin=do_begin,
        do_rollback=do_rollback,
        do_commit=do_commit,
        do_commit_twophase=do_commit_twophase,
        do_execute=and_tell(dialect.do_execute),
        do_executemany=and_tell(dialect.do_executemany),
        do_execute_no_params=and_tell(dialect.do_execute_no_params),
    )
