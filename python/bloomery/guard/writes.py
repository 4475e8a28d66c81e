"""`Writes`: what is written through an engine, told to the keys that a guard holds.

| moment | what happens |
|---|---|
| before a statement runs | the keys it writes are added; if they cannot be seen, trust ends |
| after it ran | keys that only the database knew are added; deleted rows are noted |
| around the commit | before: last doubts; after its success: deleted keys are taken out |
| rollback, also to a savepoint | what was noted of deleted rows is dropped; keys stay |
| the connection goes back, or begins anew | whatever is left has been rolled back |

A `Pending` lies in the `info` of the connection from the pool, so it ends with that connection.

Not seen: a cursor taken from the driver's own connection (`raw_connection()`, COPY of psycopg),
functions and triggers that write on their own, and everybody who does not use this engine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Column, Connection, Engine, event

from bloomery.errors import KeyTypeError
from bloomery.guard import commits
from bloomery.guard.held import HeldKeys
from bloomery.guard.pending import Key, Pending
from bloomery.guard.shared import SharedKeys
from bloomery.guard.statements import Effect, Names, Statements
from bloomery.guard.values import Normal, Unseen

OWN = "bloomery_own"
"""An option of connections on which a guard installs what it needs itself."""

_COMMITS_NOTHING = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH|VALUES|SAVEPOINT)\b", re.I)


class Writes:
    """Listens to one engine for the key columns of one table, until it is closed."""

    def __init__(
        self,
        engine: Engine,
        columns: Sequence[Column[Any]],
        normal: Normal,
        held: HeldKeys | SharedKeys,
    ) -> None:
        self._engine = engine
        self._columns = tuple(columns)
        self._normal = normal
        self._held = held
        self._statements = Statements(columns)
        self._table = columns[0].table.name
        primary = list(columns[0].table.primary_key.columns)
        self._primary = [primary.index(c) if c in primary else None for c in columns]
        self._listeners: list[tuple[str, Callable[..., None]]] = [
            ("before_cursor_execute", self._before),
            ("after_execute", self._after),
            ("begin", self._drop),
            ("rollback", self._drop),
            ("handle_error", self._failed),
            ("checkin", self._checkin),
            ("invalidate", self._invalidate),
        ]
        if held.shared:
            self._listeners.append(("after_cursor_execute", self._sent))
        for name, listener in self._listeners:
            event.listen(engine, name, listener)
        commits.watch(engine.dialect, self._commit)

    def close(self) -> None:
        """Listens no more. What is written from now on is not seen."""
        for name, listener in self._listeners:
            event.remove(self._engine, name, listener)
        self._listeners.clear()
        commits.unwatch(self._engine.dialect, self._commit)

    # --- statements ---------------------------------------------------------------------------

    def _pending(self, connection: Connection) -> Pending:
        info = connection.info
        pending: Pending | None = info.get(self)
        if pending is None:
            pending = info[self] = self._held.begin()
        return pending

    def _before(
        self,
        connection: Connection,
        cursor: Any,
        statement: str,
        parameters: Any,
        context: Any,
        executemany: bool,
    ) -> None:
        effect = self._statements.read(context.compiled, statement)
        if effect.rows:
            self._add(connection, context, statement, effect)
        elif effect.unseen:
            if connection.get_execution_options().get(OWN):
                return
            self._pending(connection).see_nothing(effect.unseen)
        elif effect.transaction:
            self._pending(connection).forget_removals()
        elif effect.savepoint:
            self._pending(connection).savepoint(effect.savepoint)
        elif effect.back_to:
            self._pending(connection).rollback_to(effect.back_to)
        if self._held.shared and self._may_commit(connection, effect, statement):
            self._held.committing(self._pending(connection))

    def _may_commit(self, connection: Connection, effect: Effect, statement: str) -> bool:
        """Whether what this connection wrote may be committed by the statement itself."""
        if effect.unseen:
            return True
        if effect.rows:
            return _commits_at_once(connection)
        # SQLite commits when it releases a savepoint that nothing was begun before, MySQL before it
        # makes a table; so whatever is not known to leave a transaction open may end it.
        return self in connection.info and not _COMMITS_NOTHING.match(statement)

    def _sent(self, connection: Connection, *about_the_statement: Any) -> None:
        pending: Pending | None = connection.info.get(self)
        if pending is not None:
            pending.landed()

    def _add(self, connection: Connection, context: Any, statement: str, effect: Effect) -> None:
        pending = self._pending(connection)
        # Rows sent in several pieces are one execution, which knows all of them from the start.
        if pending.context is context:
            return
        keys: list[Key] = []
        generated = effect.generated
        try:
            for given in context.compiled_parameters:
                for names in effect.rows:
                    key = self._key(names, given)
                    if key is not None:
                        keys.append(key)
                    elif self._may_generate(names, given):
                        generated = True
        except KeyError:
            # It may be a statement of its own that asks the database for a default first.
            if statement == context.statement:
                pending.see_nothing(f"an INSERT into `{self._table}` is not understood")
            return
        except (Unseen, KeyTypeError):
            pending.see_nothing(f"a value was written to `{self._table}` whose key is not known")
            return
        pending.context = context
        if keys:
            pending.add_many(keys)
        if generated:
            pending.await_keys(hold=_commits_at_once(connection))

    def _key(self, names: Names, given: Mapping[str, Any]) -> Key | None:
        if None in names:
            return None
        if len(names) == 1:
            return self._normal.key(given[names[0]])  # type: ignore[index]
        return self._normal.key([given[name] for name in names])  # type: ignore[index]

    def _may_generate(self, names: Names, given: Mapping[str, Any]) -> bool:
        """Whether the row has a key that the database makes: of a primary key left open or NULL."""
        missing = [place for place, name in enumerate(names) if name is None or given[name] is None]
        return all(self._primary[place] is not None for place in missing)

    def _after(
        self,
        connection: Connection,
        clause: Any,
        multiparams: Any,
        params: Any,
        execution_options: Any,
        result: Any,
    ) -> None:
        context = result.context
        compiled = context.compiled
        if not (context.isinsert or context.isupdate or context.isdelete):
            return
        effect = self._statements.read(compiled, "")
        if effect.loses:
            self._lose(connection, result, effect)
        elif effect.rows:
            pending = self._pending(connection)
            if pending.awaiting:
                self._fetch(pending, context, effect)
            elif pending.context is not context and not pending.blind:
                pending.see_nothing(f"a write to `{self._table}` is not understood")

    def _fetch(self, pending: Pending, context: Any, effect: Effect) -> None:
        """Adds the keys that the database has made."""
        keys: list[Key] = []
        many = len(effect.rows) > 1
        made = context.inserted_primary_key_rows or ()
        for number, given in enumerate(context.compiled_parameters):
            row = made[number] if number < len(made) and not many else None
            for names in effect.rows:
                values: list[Any] = []
                for place, name in enumerate(names):
                    value = None if name is None else given[name]
                    index = self._primary[place]
                    if value is None and index is not None:
                        value = None if row is None else row[index]
                        if value is None:
                            pending.see_nothing("the database made a key and did not tell it")
                            pending.got_keys()
                            return
                    values.append(value)
                try:
                    key = self._normal.key(values if len(values) > 1 else values[0])
                except (Unseen, KeyTypeError):
                    pending.see_nothing("the database made a key that is not understood")
                    pending.got_keys()
                    return
                if key is not None:
                    keys.append(key)
        if keys:
            pending.add_many(keys)
        pending.got_keys()

    def _lose(self, connection: Connection, result: Any, effect: Effect) -> None:
        rows = result.rowcount
        if not rows:
            return
        pending = self._pending(connection)
        given = result.context.compiled_parameters
        if effect.old and rows == len(given) and self._held.removals == "commit":
            try:
                old = [self._key(effect.old, each) for each in given]
            except (Unseen, KeyTypeError):
                old = [None]
            known = [key for key in old if key is not None]
            if len(known) == rows:
                pending.remove_many(known)
                return
        pending.lose(rows)

    # --- transactions -------------------------------------------------------------------------

    def _drop(self, connection: Connection) -> None:
        if not connection.invalidated:
            self._end(connection.info)

    def _checkin(self, dbapi_connection: Any, record: Any) -> None:
        self._end(record.info)

    def _invalidate(self, dbapi_connection: Any, record: Any, exception: Any) -> None:
        self._end(record.info)

    def _failed(self, context: Any) -> None:
        """After an error PostgreSQL answers a commit with a rollback, and no driver says so."""
        connection: Connection | None = context.connection
        if connection is not None and not connection.invalidated and not connection.closed:
            pending: Pending | None = connection.info.get(self)
            if pending is not None:
                pending.forget_removals()
                pending.landed()

    def _end(self, info: dict[Any, Any]) -> None:
        pending: Pending | None = info.pop(self, None)
        if pending is not None:
            pending.rolled_back()

    @contextmanager
    def _commit(self, connection: Any, written_elsewhere: bool) -> Iterator[None]:
        info = connection.info
        pending: Pending | None = info.get(self)
        if written_elsewhere:
            pending = pending or info.setdefault(self, self._held.begin())
            pending.see_nothing("a transaction is committed that was prepared elsewhere")
        if pending is None:
            yield
            return
        pending.committing()
        try:
            yield
        except BaseException:
            del info[self]
            pending.uncertain()
            raise
        del info[self]
        pending.committed()


def _commits_at_once(connection: Connection) -> bool:
    """Whether each statement is committed by itself. If in doubt, yes."""
    if connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT":
        return True
    driver: Any = connection.connection.dbapi_connection
    if connection.dialect.name == "sqlite":
        return getattr(driver, "isolation_level", None) is None
    return bool(getattr(driver, "autocommit", True))
