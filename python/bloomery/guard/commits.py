"""When a commit has really succeeded. SQLAlchemy has an event before it, and none after it.

The methods of the dialect that commit are wrapped, once for each dialect object, which belongs to
one engine. Nothing else would do: the event before a commit says nothing of its success, that of a
`Session` also comes when a savepoint is released, a bare connection has none, and what was prepared
elsewhere is committed without any event.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy.engine import Dialect

Around = Callable[[Any, bool], AbstractContextManager[None]]
"""Surrounds a commit. Gets a connection with its `info`, and whether another one has written."""

_lock = threading.Lock()
_watched: WeakKeyDictionary[Dialect, tuple[Around, ...]] = WeakKeyDictionary()


def watch(dialect: Dialect, around: Around) -> None:
    """From now on every commit happens inside of `around`."""
    with _lock:
        before = _watched.get(dialect)
        if before is None:
            _wrap(dialect)
        _watched[dialect] = (*(before or ()), around)


def unwatch(dialect: Dialect, around: Around) -> None:
    """Ends what `watch` began. The wrapper stays, for whoever has wrapped it in turn."""
    with _lock:
        _watched[dialect] = tuple(each for each in _watched[dialect] if each != around)


def _wrap(dialect: Dialect) -> None:
    commit, commit_twophase = dialect.do_commit, dialect.do_commit_twophase

    def do_commit(connection: Any) -> None:
        with ExitStack() as stack:
            for around in _watched[dialect]:
                stack.enter_context(around(connection, False))
            commit(connection)

    def do_commit_twophase(
        connection: Any, xid: Any, is_prepared: bool = True, recover: bool = False
    ) -> None:
        with ExitStack() as stack:
            for around in _watched[dialect]:
                stack.enter_context(around(connection, recover))
            commit_twophase(connection, xid, is_prepared, recover)

    dialect.__dict__.update(do_commit=do_commit, do_commit_twophase=do_commit_twophase)
