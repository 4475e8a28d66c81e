"""`EngineWrites`: adds what is written through an engine of SQLAlchemy to the keys of a guard.

| moment | event | what happens |
|---|---|---|
| a statement is about to be sent | `do_execute` and its like | its keys are added, or trust ends |
| it failed | `handle_error` | keys that only the database knows may be there: trust ends |
| it has made keys | `after_execute` | they are added |
| the connection goes back to its pool | `checkin` | its transaction has ended |
| the connection broke | `invalidate` | its commit may be carried out: its keys stay |
| a commit | `commit` | only with `shared`, or if it began before the guard was made |

These are events of the dialect and of the pool, but for the last: an engine with events of its own
sends all of them, at every connection.

Not seen: a cursor taken from the driver's own connection (`raw_connection()`, COPY of psycopg),
functions that write, whatever calls them, and everybody who does not use this engine.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

from sqlalchemy import Column, Connection, Engine, event
from sqlalchemy.engine.interfaces import ExecuteStyle

from bloomtide.errors import KeyTypeError
from bloomtide.guard.filter.keys import KeyFilter
from bloomtide.guard.key_parts import Unseen
from bloomtide.guard.values import KeyMaker
from bloomtide.guard.writes.removals import Removals
from bloomtide.guard.writes.sql import NOTHING, TEMPORARY_TRIGGERS, Effect, Reader, Row, Target
from bloomtide.guard.writes.tokens import Parameter
from bloomtide.guard.writes.transaction import Key, OpenTransaction, is_open

OWN = "bloomtide_own"
"""An option of connections that a guard uses for itself."""
_UNKNOWN = (Unseen, KeyTypeError, KeyError, IndexError, TypeError)
"""Of values and sets of parameters of which no key can be made."""


class EngineWrites:
    """Listens to one engine for the key columns of one table, until it is closed."""

    def __init__(
        self, engine: Engine, columns: Sequence[Column[Any]], keys: KeyMaker, store: KeyFilter
    ) -> None:
        self._engine = engine
        self._columns = tuple(columns)
        self._keys = keys
        self._store = store
        self._removals = (
            Removals(engine, columns, keys, store) if store.removals == "commit" else None
        )
        table = columns[0].table
        self._primary = [column in list(table.primary_key.columns) for column in columns]
        """Of which columns the database makes the values that are left open."""
        self.read_for(target_of(engine, columns))
        self._suspects: WeakSet[OpenTransaction] = WeakSet()
        """Of connections of SQLite that may have temporary triggers, which nobody else sees."""
        self._listeners: list[tuple[str, Callable[..., Any]]] = [
            ("handle_error", self._failed),
            ("checkout", self._checked_out),
            ("checkin", self._checked_in),
            ("invalidate", self._broken),
            ("detach", self._left_pool),
        ]
        if any(self._primary):
            self._listeners.append(("after_execute", self._made_keys))
        if store.shared or _may_be_in_use(engine):
            self._listeners += [
                ("commit", self._committing),
                ("commit_twophase", self._committing),
            ]
        if _sends_itself(engine):
            self._listeners.append(("before_cursor_execute", self._before_cursor_execute))
        else:
            self._listeners += [
                ("do_execute", self._do_execute),
                ("do_executemany", self._do_execute),
                ("do_execute_no_params", self._do_execute_no_params),
            ]
        for name, listener in self._listeners:
            event.listen(engine, name, listener)

    def close(self) -> None:
        """Listens no more. What is written from now on is not seen."""
        for name, listener in self._listeners:
            event.remove(self._engine, name, listener)
        self._listeners.clear()

    def ask_in(self, schema: str | None) -> None:
        """Deleted keys are looked for in the table of this schema."""
        if self._removals is not None:
            self._removals.ask_in(schema)

    def read_for(self, target: Target) -> None:
        """From now on statements are read for these names."""
        before = getattr(self, "target", target)
        self.target = target
        self._reader = Reader(target, self._keys.accepts)
        if not target.reaches <= before.reaches:
            for transaction in list(self._store.transactions):
                if not transaction.is_over():  # it may have written through the new names
                    transaction.see_nothing("a name of the table was not known")

    # --- statements ---------------------------------------------------------------------------

    def _do_execute_no_params(self, cursor: Any, statement: str, context: Any) -> None:
        self._do_execute(cursor, statement, (), context)

    def _before_cursor_execute(
        self, connection: Connection, cursor: Any, statement: str, parameters: Any, context: Any,
        many: bool,
    ) -> None:  # fmt: skip
        self._do_execute(cursor, statement, parameters, context)

    def _do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any) -> None:
        """A statement is about to be sent."""
        style = context.execute_style
        in_pieces = style is ExecuteStyle.INSERTMANYVALUES
        if in_pieces:
            # Sent with a statement of many rows each; this is the one they are made of.
            statement, parameters = context.statement, context.parameters
        reader = self._reader
        effect = reader.known.get(statement) or reader.read(statement)
        if self._suspects:
            self._look_for_triggers(context.root_connection, statement)
        if effect is NOTHING:
            if self._store.shared:
                self._came_back(context.root_connection)
            return
        connection: Connection = context.root_connection
        if effect.unseen and connection.get_execution_options().get(OWN):
            return
        transaction = self._transaction(connection)
        if effect.makes_trigger:
            self._suspects.add(transaction)
        if in_pieces:
            if transaction.batch is context:
                return  # another piece of it
            transaction.batch = context
        if (transaction.keys or transaction.blind or transaction.deleted) and (
            is_open(transaction.driver) is False
        ):
            self._ended(transaction, connection.connection.dbapi_connection)
        transaction.commits = None
        self._store.landed(transaction)  # the commit before, if there was one
        sets = [parameters] if style is ExecuteStyle.EXECUTE else parameters
        self._carry_out(connection, transaction, effect, sets, context)
        if self._store.shared and self._may_commit(connection, transaction, effect):
            transaction.sending = True
            self._tell_when_done(connection)
            self._store.committing(transaction)

    def _came_back(self, connection: Connection) -> None:
        """A connection that is used again has ended the commit that it had begun."""
        try:
            transaction: OpenTransaction | None = connection.connection.info.get(self)
        except NotImplementedError:
            return  # it is no member of a pool yet
        if transaction is not None and transaction.commits is not None:
            transaction.commits = None
            self._store.landed(transaction)

    def _look_for_triggers(self, connection: Connection, statement: str) -> None:
        """Trust ends if this connection has temporary triggers and writes anything."""
        transaction: Any = connection.connection.info.get(self)
        if transaction not in self._suspects or connection.get_execution_options().get(OWN):
            return
        cursor: Any = connection.connection.cursor()
        try:
            cursor.execute(TEMPORARY_TRIGGERS)
            found = cursor.fetchone() is not None
        finally:
            cursor.close()
        if not found:
            self._suspects.discard(transaction)  # what it made is in the catalogue of all
        elif statement.lstrip()[:6].upper() != "SELECT":
            self._see_nothing(connection, transaction, "a temporary trigger may write keys")

    def _carry_out(
        self, connection: Connection, transaction: OpenTransaction, effect: Effect,
        sets: Sequence[Any], context: Any,
    ) -> None:  # fmt: skip
        if effect.loses:
            if effect.old is not None and self._removals is not None:
                self._removals.remember(transaction, effect.old, sets)
            else:
                self._tell_when_done(connection)
        if effect.unseen:
            self._see_nothing(connection, transaction, effect.unseen)
            return
        found: list[Key] = []
        made = False
        try:
            for given in sets:
                for row in effect.rows:
                    keys, left_open = keys_of(self._keys, row, given, self._primary)
                    found.extend(keys)
                    made = made or left_open
        except _UNKNOWN:
            self._see_nothing(connection, transaction, "a value whose key is not known")
            return
        if found:
            self._store.write(transaction, found)
        if made:
            at_once = commits_at_once(connection)
            if not getattr(context.compiled, "isinsert", False):
                self._see_nothing(connection, transaction, "a key that the database does not tell")
            elif at_once and self._store.shared:
                self._see_nothing(connection, transaction, "a key that the database makes at once")
            else:
                transaction.await_keys(context, hold=at_once)

    def _see_nothing(
        self, connection: Connection, transaction: OpenTransaction, reason: str
    ) -> None:
        transaction.sending = True
        self._tell_when_done(connection)
        transaction.see_nothing(f"{reason}, written to `{self.target.table}`")

    def _tell_when_done(self, connection: Connection) -> None:
        """Calls `_done` after this statement, and after all others of this connection."""
        if not event.contains(connection, "after_cursor_execute", self._done):
            event.listen(connection, "after_cursor_execute", self._done)

    def _done(
        self, connection: Connection, cursor: Any, statement: str, parameters: Any, context: Any,
        many: bool,
    ) -> None:  # fmt: skip
        transaction = self._transaction(connection)
        transaction.sending = False
        if self._reader.known.get(statement, NOTHING).loses and not transaction.deleted:
            self._store.count_stale(cursor.rowcount)
        self._store.landed(transaction)

    def _failed(self, context: Any) -> None:
        connection: Connection | None = context.connection
        usable = connection is not None and not connection.invalidated and not connection.closed
        if connection is not None and usable and not context.is_pre_ping:
            try:
                transaction = self._transaction(connection)
            except NotImplementedError:
                return  # it is no member of a pool yet
            transaction.sending = False
            transaction.broke_off()
            self._store.landed(transaction)

    # --- keys that the database makes ---------------------------------------------------------

    def _made_keys(
        self, connection: Connection, clause: Any, multiparams: Any, params: Any, options: Any,
        result: Any,
    ) -> None:  # fmt: skip
        transaction = self._transaction(connection)
        if transaction.awaiting is not result.context or transaction.awaiting is None:
            return
        try:
            keys = self._keys_made(result.context)
        except Exception:  # noqa: BLE001 - the program's statement must not fail here
            keys = None
        if keys is None:
            transaction.see_nothing("the database made a key and did not tell it")
        else:
            self._store.write(transaction, keys)
        transaction.got_keys()

    def _keys_made(self, context: Any) -> list[Key] | None:
        """The keys of all rows; None if some are not known."""
        compiled, effect = context.compiled, self._reader.read(context.statement)
        # Without the keys in rows that the program has asked for, which cannot be read twice.
        sets, made = context.parameters, context.inserted_primary_key_rows or ()
        if len(effect.rows) != 1 or len(made) != len(sets):
            return None
        keys: list[Key] = []
        # The writer's own description of the table has its own primary key.
        fold, dialect = self.target.fold, self._engine.dialect
        primary = [fold(column.name) for column in compiled.statement.table.primary_key.columns]
        for given, row in zip(sets, made, strict=True):
            values: list[Any] = []
            for column, value, is_made in zip(
                self._columns, effect.rows[0], self._primary, strict=True
            ):
                written = given[value.place] if isinstance(value, Parameter) else None
                if written is None and is_made:
                    if compiled.postfetch_lastrowid and column.name in self.target.defaults:
                        return None  # the number of the row is not what the column got
                    written = row[primary.index(fold(column.name))]
                    process = column.type.dialect_impl(dialect).bind_processor(dialect)
                    if process is not None and written is not None:
                        written = process(written)
                    if written is None:
                        return None
                values.append(written)
            key = self._keys.written(values)
            if key is not None:
                keys.append(key)
        return keys

    # --- transactions -------------------------------------------------------------------------

    def _transaction(self, connection: Connection) -> OpenTransaction:
        pooled = connection.connection
        found: OpenTransaction | None = pooled.info.get(self)
        if found is None:
            found = pooled.info[self] = self._begin(pooled.driver_connection)
            if is_open(found.driver) is not False:
                found.see_nothing("a transaction was open when the guard was made")
        return found

    def _checked_out(self, dbapi_connection: Any, record: Any, proxy: Any) -> None:
        if self not in record.info:
            record.info[self] = self._begin(record.driver_connection)

    def _begin(self, driver: Any) -> OpenTransaction:
        begun = self._store.begin(driver)
        if self.target.dialect == "sqlite":
            self._suspects.add(begun)  # it may be older than the guard
        return begun

    def _ended(self, transaction: OpenTransaction, driver: Any) -> None:
        deleted = transaction.deleted
        transaction.end()
        if deleted and self._removals is not None:
            self._removals.look(deleted, driver)

    def _checked_in(self, dbapi_connection: Any, record: Any) -> None:
        transaction: OpenTransaction | None = record.info.get(self)
        if transaction is not None:
            transaction.sending, transaction.commits = False, None
            if dbapi_connection is not None and is_open(transaction.driver) is not True:
                self._ended(transaction, dbapi_connection)

    def _broken(self, dbapi_connection: Any, record: Any, exception: Any) -> None:
        transaction: OpenTransaction | None = record.info.pop(self, None)
        if transaction is not None:
            transaction.end_uncertain()

    def _left_pool(self, dbapi_connection: Any, record: Any) -> None:
        """The connection has a copy of this, and is the only one that has."""
        record.info.pop(self, None)

    def _committing(self, connection: Connection, *_: Any) -> None:
        """A commit is about to be sent; trust ends if it began before the guard was made."""
        transaction, own = self._transaction(connection), weakref.ref(connection)

        def is_under_way() -> bool:
            found = own()
            return found is not None and found.in_transaction()

        transaction.commits = is_under_way
        self._store.committing(transaction)

    def _may_commit(
        self, connection: Connection, transaction: OpenTransaction, effect: Effect
    ) -> bool:
        """Whether what this connection wrote may be committed by the statement itself."""
        if effect.unseen:
            return True
        if effect.rows:
            return commits_at_once(connection)
        # SQLite commits when it releases a savepoint that nothing was begun before; so whatever
        # is not known to leave a transaction open may end it.
        return effect.ends_transaction and bool(transaction.keys or transaction.blind)


def keys_of(keys: KeyMaker, row: Row, given: Any, made: Sequence[bool]) -> tuple[list[Key], bool]:
    """The keys that a row writes, and whether it has one that the database makes.

    `given` is one set of parameters, as the driver wants it; `made` are the columns of which the
    database makes the values that are left open.
    """
    values: list[Any] = []
    for value in row:
        if isinstance(value, Parameter) and value.is_list:
            found = [keys.written((each,)) for each in given[value.place]]
            return [key for key in found if key is not None], None in found and made[0]
        values.append(given[value.place] if isinstance(value, Parameter) else None)
    missing = [place for place, value in enumerate(values) if value is None]
    if missing:
        return [], all(made[place] for place in missing)
    key = keys.written(values)
    return ([] if key is None else [key]), False


def target_of(engine: Engine, columns: Sequence[Column[Any]]) -> Target:
    """The names that the mapping gives; a build adds those of the catalogue."""
    table, lower = columns[0].table, engine.dialect.name != "postgresql"
    parents: set[tuple[str, str]] = set()
    resetting: set[str] = set()
    for key in (key for column in columns for key in column.foreign_keys):
        # The name, and not the column: its table need not be described anywhere.
        name = key.target_fullname.lower() if lower else key.target_fullname
        parent, referred = name.split(".")[-2:]
        if (key.ondelete or "").upper() == "SET DEFAULT":
            resetting.add(parent)
        if (key.onupdate or "").upper() in ("CASCADE", "SET DEFAULT"):
            parents.add((parent, referred))
    return Target(
        engine.dialect.name, table.name, tuple(column.name for column in columns), table.schema,
        parents=frozenset(parents), resetting=frozenset(resetting),
    )  # fmt: skip


def _sends_itself(engine: Engine) -> bool:
    """Whether somebody else listens, who may send a statement himself; then nobody after him is
    called."""
    listeners = [getattr(each, "__self__", None) for each in engine.dialect.dispatch.do_execute]
    return not all(isinstance(each, EngineWrites) for each in listeners)


def _may_be_in_use(engine: Engine) -> bool:
    """Whether a connection may have a transaction that is older than the guard."""
    count = getattr(engine.pool, "checkedout", None)
    return count is None or count() > 0


def commits_at_once(connection: Connection) -> bool:
    """Whether each statement is committed by itself. If in doubt, yes."""
    if connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT":
        return True
    driver: Any = connection.connection.dbapi_connection
    if connection.dialect.name == "sqlite":
        return getattr(driver, "isolation_level", None) is None
    return bool(getattr(driver, "autocommit", True))
