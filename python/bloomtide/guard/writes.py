"""`Writes`: what is written through an engine, told to the keys that a guard holds.

| moment | what happens |
|---|---|
| before a statement runs | the keys it writes are added; if they cannot be seen, trust ends |
| after it ran | keys that only the database knew are added; deleted rows are noted |
| around the commit | before: last doubts; after its success: deleted keys are taken out |
| rollback, also to a savepoint | what was noted of deleted rows is dropped; keys stay |
| the connection goes back, or begins anew | whatever is left has been rolled back |
| a commit of what began before the guard was made | it may have written anything: trust ends |

A `Pending` lies in the `info` of each connection from the pool that has begun a transaction since
the guard was made, so it ends with that connection.

Not seen: a cursor taken from the driver's own connection (`raw_connection()`, COPY of psycopg), a
statement that a listener rewrites as it is sent, functions and triggers that write on their own,
and everybody who does not use this engine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from sqlalchemy import Column, Connection, Engine, event

from bloomtide.errors import KeyTypeError
from bloomtide.guard.commits import NOT_KEPT, Info, info_of, told_by
from bloomtide.guard.held import HeldKeys
from bloomtide.guard.pending import Key, Pending
from bloomtide.guard.returned import returned_rows
from bloomtide.guard.shared import SharedKeys
from bloomtide.guard.statements import NOTHING, Effect, Names, Statements
from bloomtide.guard.values import Normal, Unseen

OWN = "bloomtide_own"
"""An option of connections that a guard uses for itself."""

_kept = attrgetter("_dbapi_connection._connection_record.info")
"""What is kept with the connection of a statement; where that fails, the long way is gone."""
_UNUSUAL = (*NOT_KEPT, Unseen, KeyTypeError)
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
        self._shared = held if isinstance(held, SharedKeys) else None
        self._alone = held if isinstance(held, HeldKeys) else None
        self._statements = Statements(columns, normal)
        self._table = columns[0].table.name
        primary = list(columns[0].table.primary_key.columns)
        self._primary = [primary.index(c) if c in primary else None for c in columns]
        self._listeners: list[tuple[str, Callable[..., None]]] = [("invalidate", self._invalidate)]
        if held.shared or held.removals == "commit":
            # Else an error changes nothing, and a dialect with an event is slower.
            self._listeners.append(("handle_error", self._failed))
        if any(place is not None for place in self._primary):
            self._listeners.append(("after_execute", self._after))
        for name, listener in self._listeners:
            event.listen(engine, name, listener)
        self._told = told_by(engine.dialect)
        self._told.watch(self)

    def close(self) -> None:
        """Listens no more. What is written from now on is not seen."""
        for name, listener in self._listeners:
            event.remove(self._engine, name, listener)
        self._listeners.clear()
        self._told.unwatch(self)

    # --- statements ---------------------------------------------------------------------------

    def _pending(self, connection: Connection) -> Pending:
        try:
            info = connection.connection.info
        except NotImplementedError:  # it is no member of a pool yet
            info = {}
        pending: Pending | None = info.get(self)
        if pending is None:
            self._told.meet(info)
            pending = self.transaction(info, False)
        return pending

    def executes(self, context: Any) -> bool:
        """A statement is about to be sent; whether to tell when it has been carried out."""
        last, effect = self._statements.last  # as a rule it is that one again
        if context.compiled is not last or last is None:
            effect = self._statements.read(context.compiled, context.statement)
        if self._alone is not None:
            if effect is NOTHING:
                return False
            if effect.sole is not None and len(given := context.compiled_parameters) == 1:
                try:
                    key = effect.sole(given[0])
                    pending: Pending = _kept(context)[self]
                except _UNUSUAL:
                    key = None
                if key is not None:
                    self._alone.write_one(pending, key)
                    return False
        connection: Connection = context.root_connection
        if effect.rows:
            self._add(connection, context, effect)
        elif effect.unseen:
            if connection.get_execution_options().get(OWN):
                return False
            self._pending(connection).see_nothing(effect.unseen)
        elif effect.transaction:
            self._pending(connection).forget_removals()
        elif effect.savepoint:
            self._pending(connection).savepoint(effect.savepoint)
        elif effect.back_to:
            self._pending(connection).rollback_to(effect.back_to)
        if self._shared is None:
            return effect.loses
        if self._may_commit(connection, effect, context.statement):
            self._shared.committing(self._pending(connection))
        return True

    def _may_commit(self, connection: Connection, effect: Effect, statement: str) -> bool:
        """Whether what this connection wrote may be committed by the statement itself."""
        if effect.unseen:
            return True
        if effect.rows:
            return _commits_at_once(connection)
        # SQLite commits when it releases a savepoint that nothing was begun before, MySQL before it
        # makes a table; so whatever is not known to leave a transaction open may end it.
        pending = info_of(connection.connection).get(self)
        return pending is not None and pending.more and not _COMMITS_NOTHING.match(statement)

    def executed(self, context: Any) -> None:
        """A statement has been carried out."""
        effect = self._statements.read(context.compiled, context.statement)
        if effect.loses:
            self._lose(context.root_connection, context.cursor.rowcount, context, effect)
        if self._shared is not None:
            pending: Pending | None = info_of(context.root_connection.connection).get(self)
            if pending is not None:
                pending.landed()

    def _add(self, connection: Connection, context: Any, effect: Effect) -> None:
        pending = self._pending(connection)
        keys: list[Key] = []
        generated = effect.generated
        given: Mapping[str, Any]
        try:
            for given in context.compiled_parameters:
                for row in effect.rows:
                    key = None if row.key is None else row.key(given)
                    if key is not None:
                        keys.append(key)
                    elif self._may_generate(row.names, given):
                        generated = True
        except KeyError:
            pending.see_nothing(f"an INSERT into `{self._table}` is not understood")
            return
        except (Unseen, KeyTypeError):
            pending.see_nothing(f"a value was written to `{self._table}` whose key is not known")
            return
        if keys:
            self._held.write(pending, keys)
        if generated:
            pending.await_keys(context, hold=_commits_at_once(connection))

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
        context: Any = result.context
        pending: Pending | None = info_of(connection.connection).get(self)
        if pending is not None and pending.awaiting is context:
            rows = returned_rows(
                result, self._columns, self._normal.kinds, self._statements.is_ours
            )
            if rows is None:
                self._fetch(pending, context, self._statements.read(result.context.compiled, ""))
            else:
                self._take(pending, rows)

    def _take(self, pending: Pending, rows: Sequence[Sequence[Any]]) -> None:
        """Adds the keys of rows that the statement has given back: all that it has written."""
        keys = [self._normal.stored(row) for row in rows if None not in row]
        if None in keys:
            pending.see_nothing("the database made a key that is not understood")
        pending.add_many([key for key in keys if key is not None])
        pending.got_keys()

    def _fetch(self, pending: Pending, context: Any, effect: Effect) -> None:
        """Adds the keys that the database has made."""
        keys: list[Key] = []
        many = len(effect.rows) > 1
        made = context.inserted_primary_key_rows or ()
        for number, given in enumerate(context.compiled_parameters):
            row = made[number] if number < len(made) and not many else None
            for each in effect.rows:
                values: list[Any] = []
                for place, name in enumerate(each.names):
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

    def _lose(self, connection: Connection, rows: int, context: Any, effect: Effect) -> None:
        if not rows:
            return
        pending = self._pending(connection)
        given = context.compiled_parameters
        if effect.old and rows == len(given) and self._held.removals == "commit":
            try:
                old = [effect.old(each) for each in given]
            except (Unseen, KeyTypeError):
                old = [None]
            known = [key for key in old if key is not None]
            if len(known) == rows:
                pending.remove_many(known)
                return
        pending.lose(rows)

    # --- transactions -------------------------------------------------------------------------

    def transaction(self, info: Info, begins: bool) -> Pending:
        """What is under way on a connection; who comes late may have missed anything."""
        pending: Pending | None = info.get(self)
        if pending is None:
            pending = info[self] = self._held.begin()
            if not begins:
                pending.see_nothing("a transaction was open when the guard was made")
        return pending

    def _invalidate(self, dbapi_connection: Any, record: Any, exception: Any) -> None:
        pending: Pending | None = record.info.get(self)
        if pending is not None:
            pending.rolled_back()

    def _failed(self, context: Any) -> None:
        """After an error PostgreSQL answers a commit with a rollback, and no driver says so."""
        connection: Connection | None = context.connection
        if connection is not None and not connection.invalidated and not connection.closed:
            pending: Pending | None = info_of(connection.connection).get(self)
            if pending is not None and (pending.more or pending.keys):
                pending.forget_removals()
                pending.landed()


def _commits_at_once(connection: Connection) -> bool:
    """Whether each statement is committed by itself. If in doubt, yes."""
    if connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT":
        return True
    driver: Any = connection.connection.dbapi_connection
    if connection.dialect.name == "sqlite":
        return getattr(driver, "isolation_level", None) is None
    return bool(getattr(driver, "autocommit", True))
