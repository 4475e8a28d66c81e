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
functions that write in a SELECT, and everybody who does not use this engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from sqlalchemy import Column, Connection, Engine, bindparam, event, select, type_coerce
from sqlalchemy import types as sql_types
from sqlalchemy.engine.interfaces import ExecuteStyle

from bloomtide.errors import KeyTypeError
from bloomtide.guard.filter.keys import KeyFilter
from bloomtide.guard.key_parts import Unseen
from bloomtide.guard.values import KeyMaker
from bloomtide.guard.writes.sql import (
    NOTHING,
    TEMPORARY_TRIGGERS,
    Effect,
    Parameter,
    Reader,
    Row,
    Target,
)
from bloomtide.guard.writes.transaction import Key, OpenTransaction, is_open

OWN = "bloomtide_own"
"""An option of connections that a guard uses for itself."""

Given = Any
"""One set of parameters: a mapping or a sequence, as the driver wants it."""
_REMEMBERED = 2048


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to do at one statement."""

    effect: Effect
    sole: int | str | None = None
    """The place of the key, if it writes one row with a key of one column."""


_IGNORE = _Plan(NOTHING)


class EngineWrites:
    """Listens to one engine for the key columns of one table, until it is closed."""

    def __init__(
        self,
        engine: Engine,
        columns: Sequence[Column[Any]],
        keys: KeyMaker,
        store: KeyFilter,
    ) -> None:
        self._engine = engine
        self._columns = tuple(columns)
        self._keys = keys
        self._store = store
        self._shared = store if store.shared else None
        self._removes = store if store.removals != "never" else None
        table = columns[0].table
        self._table = table.name
        self._primary = [c in list(table.primary_key.columns) for c in columns]
        """Of which columns the database makes the values that are left open."""
        self.read_for(target_of(engine, columns))
        self._suspects: WeakSet[OpenTransaction] = WeakSet()
        """Of connections of SQLite that may have temporary triggers, which nobody else sees."""
        self._detached: dict[int, OpenTransaction] = {}
        """By the `id` of the driver's connection, those that have left their pool."""
        self._looking_for: _Look | None = _Look(engine, columns) if self._removes else None
        self._listeners: list[tuple[str, Callable[..., Any]]] = [
            ("handle_error", self._failed),
            ("checkout", self._checked_out),
            ("checkin", self._checked_in),
            ("invalidate", self._broken),
            ("detach", self._left_pool),
            ("close_detached", self._closed_outside),
        ]
        if any(self._primary):
            self._listeners.append(("after_execute", self._made_keys))
        if self._shared is not None or _may_be_in_use(engine):
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

    def read_for(self, target: Target) -> None:
        """From now on statements are read for these names."""
        before = getattr(self, "target", target)
        self.target = target
        self._reading: tuple[Reader, dict[str, _Plan]] = (Reader(target), {})
        """Replaced as a whole: what was read for other names is forgotten."""
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
        if style is ExecuteStyle.INSERTMANYVALUES:
            # Sent in pieces, with a statement of many rows each; this is the one they are made of.
            statement, parameters = context.statement, context.parameters
        plan = self._reading[1].get(statement) or self._plan(statement)
        if self._suspects:
            self._look_for_triggers(context.root_connection, statement)
        if plan is _IGNORE:
            return
        connection: Connection = context.root_connection
        if plan.effect.unseen and connection.get_execution_options().get(OWN):
            return
        transaction = self._transaction(connection)
        if plan.effect.makes_trigger:
            self._suspects.add(transaction)
        if style is ExecuteStyle.INSERTMANYVALUES:
            if transaction.batch is context:
                return  # another piece of it
            transaction.batch = context
        if (transaction.keys or transaction.blind or transaction.deleted) and (
            is_open(transaction.driver) is False
        ):
            self._ended(transaction, connection.connection.dbapi_connection)
        if self._shared is not None:
            self._shared.landed(transaction)  # the commit before, if there was one
        if plan.sole is not None and style is ExecuteStyle.EXECUTE:
            try:
                key = self._keys.written((parameters[plan.sole],))
            except (Unseen, KeyTypeError, KeyError, IndexError):
                self._see_nothing(connection, transaction, "a value whose key is not known")
            else:
                if key is not None:
                    self._store.write(transaction, (key,))
                elif self._primary[0]:
                    self._await_keys(connection, transaction, context)
        else:
            sets = parameters if style is not ExecuteStyle.EXECUTE else [parameters]
            self._carry_out(connection, transaction, plan.effect, sets, context)
        if self._shared is not None and self._may_commit(connection, transaction, plan.effect):
            transaction.sending = True
            self._tell_when_done(connection)
            self._shared.committing(transaction)

    def _look_for_triggers(self, connection: Connection, statement: str) -> None:
        """Trust ends if this connection has temporary triggers and writes anything."""
        transaction = self._known(connection)
        if transaction is None or transaction not in self._suspects:
            return
        if connection.get_execution_options().get(OWN):
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

    def _plan(self, statement: str) -> _Plan:
        reader, plans = self._reading
        effect = self._understood(reader.read(statement))
        plan = _IGNORE
        if effect is not NOTHING:
            row = effect.rows[0] if len(effect.rows) == 1 and not effect.loses else ()
            one = row[0] if len(row) == 1 else None
            sole = one.place if isinstance(one, Parameter) and not one.is_list else None
            plan = _Plan(effect, sole)
        if len(plans) >= _REMEMBERED:
            plans.clear()
        plans[statement] = plan
        return plan

    def _understood(self, effect: Effect) -> Effect:
        """The effect, if its parameters are stored as they are."""
        for row in effect.rows:
            for place, value in enumerate(row):
                if isinstance(value, Parameter) and not self._keys.accepts(place, value.cast):
                    return Effect(unseen=f"a parameter cast to {value.cast}", loses=effect.loses)
        return effect

    def _carry_out(
        self, connection: Connection, transaction: OpenTransaction, effect: Effect,
        sets: Sequence[Given], context: Any,
    ) -> None:  # fmt: skip
        if effect.loses:
            if effect.old is not None and self._removes is not None:
                self._remember_deleted(transaction, effect.old, sets)
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
        except (Unseen, KeyTypeError, KeyError, IndexError, TypeError):
            self._see_nothing(connection, transaction, "a value whose key is not known")
            return
        if found:
            self._store.write(transaction, found)
        if made:
            self._await_keys(connection, transaction, context)

    def _see_nothing(
        self, connection: Connection, transaction: OpenTransaction, reason: str
    ) -> None:
        transaction.sending = True
        self._tell_when_done(connection)
        transaction.see_nothing(f"{reason}, written to `{self._table}`")

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
        plan = self._reading[1].get(statement)
        if plan is not None and plan.effect.loses and not transaction.deleted:
            self._store.count_stale(cursor.rowcount)
        if self._shared is not None:
            self._shared.landed(transaction)

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
            if self._shared is not None:
                self._shared.landed(transaction)

    def _await_keys(
        self, connection: Connection, transaction: OpenTransaction, context: Any
    ) -> None:
        compiled = context.compiled
        if compiled is None or not getattr(compiled, "isinsert", False):
            self._see_nothing(connection, transaction, "a key that the database does not tell")
        elif not _commits_at_once(connection):
            transaction.await_keys(context, None)
        elif self._shared is None:
            transaction.await_keys(context, self._store.hold)
        else:
            self._see_nothing(connection, transaction, "a key that the database makes at once")

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
        compiled, effect = context.compiled, self._reading[0].read(context.statement)
        if compiled is None or not compiled.isinsert or len(effect.rows) != 1:
            return None
        # Without the keys in rows that the program has asked for, which cannot be read twice.
        sets, made = context.parameters, context.inserted_primary_key_rows or ()
        if len(made) != len(sets):
            return None
        keys: list[Key] = []
        # The writer's own description of the table has its own primary key.
        fold = self.target.fold
        primary = [fold(column.name) for column in compiled.statement.table.primary_key.columns]
        for given, row in zip(sets, made, strict=True):
            values: list[Any] = []
            for place, value in enumerate(effect.rows[0]):
                column = self._columns[place]
                written = given[value.place] if isinstance(value, Parameter) else None
                if written is None and self._primary[place]:
                    if fold(column.name) not in primary:
                        return None
                    if compiled.postfetch_lastrowid and column.name in self.target.defaults:
                        return None  # the number of the row is not what the column got
                    kept = row[primary.index(fold(column.name))]
                    bind = column.type.dialect_impl(self._engine.dialect)
                    process = bind.bind_processor(self._engine.dialect)
                    written = kept if process is None or kept is None else process(kept)
                    if written is None:
                        return None
                values.append(written)
            try:
                key = self._keys.written(values)
            except (Unseen, KeyTypeError):
                return None
            if key is not None:
                keys.append(key)
        return keys

    # --- deleted rows -------------------------------------------------------------------------

    def _remember_deleted(
        self, transaction: OpenTransaction, old: Row, sets: Sequence[Given]
    ) -> None:
        for given in sets:
            try:
                values = tuple(given[each.place] for each in old if isinstance(each, Parameter))
                known = len(values) == len(old) and self._keys.is_exact(values)
                key = self._keys.written(values) if known else None
            except (Unseen, KeyTypeError, LookupError, TypeError):
                key = None
            if key is not None:
                transaction.deleted.append((key, values))

    def _look_for_deleted(
        self, transaction: OpenTransaction, deleted: list[tuple[Key, tuple[Any, ...]]], driver: Any
    ) -> None:
        """The transaction has ended: asks the database which of its deleted rows are gone."""
        if self._removes is None or self._looking_for is None or driver is None:
            return
        asked = self._removes.removable(key for key, _ in deleted)
        gone: list[Key] = []
        try:
            wanted = set(asked)
            gone = [
                key for key, values in deleted
                if key in wanted and not self._looking_for.has(driver, values)
            ]  # fmt: skip
        except Exception:  # noqa: BLE001 - whatever the driver raises, the keys stay inside
            gone = []
        finally:
            self._removes.remove_many(gone, asked=asked)

    # --- transactions -------------------------------------------------------------------------

    def _known(self, connection: Connection) -> OpenTransaction | None:
        pooled = connection.connection
        found: OpenTransaction | None = pooled.info.get(self)
        if found is None and pooled.is_detached:
            found = self._detached.get(id(pooled.dbapi_connection))
        return found

    def _transaction(self, connection: Connection) -> OpenTransaction:
        found, pooled = self._known(connection), connection.connection
        if found is None:
            found = self._begin(pooled.driver_connection)
            if pooled.is_detached:
                self._detached[id(pooled.dbapi_connection)] = found
            else:
                pooled.info[self] = found
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
        if deleted:
            self._look_for_deleted(transaction, deleted, driver)

    def _checked_in(self, dbapi_connection: Any, record: Any) -> None:
        transaction: OpenTransaction | None = record.info.get(self)
        if transaction is not None:
            transaction.sending = False
            if dbapi_connection is not None and is_open(transaction.driver) is not True:
                self._ended(transaction, dbapi_connection)

    def _broken(self, dbapi_connection: Any, record: Any, exception: Any) -> None:
        transaction: OpenTransaction | None = record.info.pop(self, None)
        if transaction is not None:
            transaction.end_uncertain()

    def _left_pool(self, dbapi_connection: Any, record: Any) -> None:
        if self in record.info:
            self._detached[id(dbapi_connection)] = record.info.pop(self)

    def _closed_outside(self, dbapi_connection: Any) -> None:
        transaction = self._detached.pop(id(dbapi_connection), None)
        if transaction is not None:
            transaction.end()

    def _committing(self, connection: Connection, *_: Any) -> None:
        """A commit is about to be sent."""
        if self._shared is not None:
            self._shared.committing(self._transaction(connection))
        else:
            self._transaction(connection)  # trust ends if it began before the guard was made

    def _may_commit(
        self, connection: Connection, transaction: OpenTransaction, effect: Effect
    ) -> bool:
        """Whether what this connection wrote may be committed by the statement itself."""
        if effect.unseen:
            return True
        if effect.rows:
            return _commits_at_once(connection)
        # SQLite commits when it releases a savepoint that nothing was begun before; so whatever
        # is not known to leave a transaction open may end it.
        return effect.ends_transaction and bool(transaction.keys or transaction.blind)


def keys_of(keys: KeyMaker, row: Row, given: Given, made: Sequence[bool]) -> tuple[list[Key], bool]:
    """The keys that a row writes, and whether it has one that the database makes.

    `made` are the columns of which the database makes the values that are left open.
    """
    values: list[Any] = []
    for value in row:
        if not isinstance(value, Parameter):
            values.append(None)
        elif value.is_list:
            several = given[value.place]
            found = [keys.written((each,)) for each in several]
            return [key for key in found if key is not None], None in found and made[0]
        else:
            values.append(given[value.place])
    missing = [place for place, value in enumerate(values) if value is None]
    if missing:
        return [], all(made[place] for place in missing)
    key = keys.written(values)
    return ([] if key is None else [key]), False


def target_of(engine: Engine, columns: Sequence[Column[Any]]) -> Target:
    """The names that the mapping gives: the table, and parents whose changes cascade."""
    table = columns[0].table
    parents: set[tuple[str, str]] = set()
    resetting: set[str] = set()
    to_do, seen = list(columns), set()
    while to_do:
        for key in to_do.pop().foreign_keys:
            # The name, and not the column: its table need not be described anywhere.
            place, _, referred = key.target_fullname.rpartition(".")
            parent = place.rpartition(".")[2]
            if (key.ondelete or "").upper() == "SET DEFAULT":
                resetting.add(parent)
            if (key.onupdate or "").upper() in ("CASCADE", "SET DEFAULT"):
                parents.add((parent, referred))
                described = key.parent.table.metadata.tables.get(place)
                if described is not None and key.target_fullname not in seen:
                    seen.add(key.target_fullname)
                    to_do.append(described.c[referred])
    lower = engine.dialect.name != "postgresql"
    if lower:
        parents = {(parent.lower(), column.lower()) for parent, column in parents}
    return Target(
        engine.dialect.name, table.name, tuple(column.name for column in columns), table.schema,
        parents=frozenset(parents),
        resetting=frozenset(name.lower() if lower else name for name in resetting),
    )  # fmt: skip


class _Look:
    """Asks the database whether a row has a key, on a connection that the driver gave."""

    def __init__(self, engine: Engine, columns: Sequence[Column[Any]]) -> None:
        plain = sql_types.NullType()
        names = [f"k{place}" for place in range(len(columns))]
        terms = [
            type_coerce(column, plain) == bindparam(name, type_=plain)
            for column, name in zip(columns, names, strict=True)
        ]
        query = select(type_coerce(columns[0], plain)).where(*terms)
        compiled: Any = query.compile(dialect=engine.dialect)
        self._sql = str(compiled)
        self._order = compiled.positiontup if compiled.positional else None
        self._names = names

    def has(self, driver: Any, values: Sequence[Any]) -> bool:
        """Whether such a row is committed; ends the transaction that it begins."""
        given: Any = dict(zip(self._names, values, strict=True))
        if self._order is not None:
            given = tuple(given[name] for name in self._order)
        cursor = driver.cursor()
        try:
            cursor.execute(self._sql, given)
            return cursor.fetchone() is not None
        finally:
            cursor.close()
            driver.rollback()


def _sends_itself(engine: Engine) -> bool:
    """Whether somebody else listens, who may send a statement himself; then nobody after him is
    called."""
    listeners = [getattr(each, "__self__", None) for each in engine.dialect.dispatch.do_execute]
    return not all(isinstance(each, EngineWrites) for each in listeners)


def _may_be_in_use(engine: Engine) -> bool:
    """Whether a connection may have a transaction that is older than the guard."""
    count = getattr(engine.pool, "checkedout", None)
    return count is None or count() > 0


def _commits_at_once(connection: Connection) -> bool:
    """Whether each statement is committed by itself. If in doubt, yes."""
    if connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT":
        return True
    driver: Any = connection.connection.dbapi_connection
    if connection.dialect.name == "sqlite":
        return getattr(driver, "isolation_level", None) is None
    return bool(getattr(driver, "autocommit", True))
