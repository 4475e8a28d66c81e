"""`GuardedTable`: the guarded table as the database has it.

Its catalogue is read when the guard is made, at each build and at each new connection. A table that
cannot be guarded is refused; one that has changed is not trusted until the next build.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from sqlalchemy import Column, Connection, Engine, event, func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import SingletonThreadPool, StaticPool

from bloomtide.guard.filter.keys import KeyFilter
from bloomtide.guard.running_writers import older_writers, prepared_writers, wait_for_writers
from bloomtide.guard.schema.facts import (
    Run,
    TableFacts,
    check_rows,
    check_writers,
    full_name,
    read_facts,
)
from bloomtide.guard.schema.mapping import check_columns, runner
from bloomtide.guard.schema.place import find_schema
from bloomtide.guard.stats import State
from bloomtide.guard.values import KeyMaker
from bloomtide.guard.writes.engine import OWN, EngineWrites, commits_at_once
from bloomtide.guard.writes.transaction import Key

_BATCH = 10_000
"""Rows that a build fetches at once."""


def is_in_memory(engine: Engine) -> bool:
    """Whether only its own connection can see the database."""
    return isinstance(engine.pool, (SingletonThreadPool, StaticPool))


def separate(engine: Engine) -> Engine:
    """An engine to the same place with a pool of its own, whose statements a guard lets be."""
    pool = engine.pool.recreate()
    options = {**engine.get_execution_options(), OWN: True}
    return Engine(pool, engine.dialect, engine.url, execution_options=options)


def in_transactions(connection: Connection) -> Connection:
    """Cursors and locks of PostgreSQL need a transaction, whatever the engine's statements do."""
    if connection.dialect.name == "postgresql" and commits_at_once(connection):
        connection.execution_options(isolation_level="READ COMMITTED")
    return connection


class GuardedTable:
    """The table of the key columns, as one engine sees it."""

    def __init__(
        self, engine: Engine, columns: Sequence[Column[Any]], keys: KeyMaker, store: KeyFilter,
        *, follows: bool,
    ) -> None:  # fmt: skip
        """`follows`: somebody sees what the database writes by itself."""
        self._engine = engine
        self._table = columns[0].table
        self._columns = tuple(columns)
        self._keys = keys
        self._store = store
        self._follows = follows
        self._made = time.monotonic()
        self._facts: TableFacts | None = None
        self._scanned = False
        """A build has read all rows."""
        self._schema: str | None = None
        """Of the table, once it was found; see `_find`."""
        self.writes = EngineWrites(engine, columns, keys, store)
        event.listen(engine, "connect", self._connected)

    def close(self) -> None:
        event.remove(self._engine, "connect", self._connected)
        self.writes.close()

    # --- the catalogue ------------------------------------------------------------------------

    def refuse_at_once(self) -> None:
        """Raises if the table cannot be guarded, as far as the database can be asked now."""
        if self._engine.dialect.is_async or is_in_memory(self._engine):
            return
        engine = separate(self._engine)
        try:
            with engine.connect() as connection:
                self.check(connection)
        except SQLAlchemyError:
            return  # it is away, and a build will tell
        finally:
            engine.pool.dispose()

    def _find(self, connection: Connection, *, anew: bool = False) -> str | None:
        """The schema of the table; None if the table is not there, or on another database."""
        if anew or self._schema is None:
            named = connection.schema_for_object(self._table)
            if named is not None:
                return named
            if is_in_memory(self._engine):
                self._schema = self._look_up(connection)
                return self._schema
            engine = separate(self._engine)
            try:
                with engine.connect() as clean:
                    self._schema = self._look_up(clean)
            finally:
                engine.pool.dispose()
        return self._schema

    def _look_up(self, connection: Connection) -> str | None:
        return find_schema(runner(connection), connection.dialect.name, self._table.name)

    def _read(self, run: Run, schema: str | None) -> TableFacts | None:
        names = [column.name for column in self._columns]
        return read_facts(run, self._engine.dialect.name, self._table.name, schema, names)

    def check(self, connection: Connection) -> TableFacts | None:
        """Refuses a table that cannot be guarded; else statements are read for what was found."""
        run, schema = runner(connection), self._find(connection)
        check_rows(run, connection.dialect.name, self._table.name, schema)
        facts, before = self._read(run, schema), self._facts
        if before is not None and facts is not None and before.fingerprint != facts.fingerprint:
            self._distrust_if_ready()
        if facts is not None and not self._keys.is_own:
            check_columns(run, facts, self._table, self._columns, self._keys, schema)
        connection.rollback()
        if not self._follows:
            primary = frozenset(column.name for column in self._table.primary_key.columns)
            names = [column.name for column in self._columns]
            check_writers(facts, self._table.name, names, primary)
        if facts is not None:
            self._learn(facts)
            self.writes.ask_in(schema)
        return facts

    def _learn(self, facts: TableFacts) -> None:
        self._facts = facts
        self.writes.read_for(facts.target(self.writes.target))

    def _distrust_if_ready(self) -> None:
        if self._store.state is State.READY:
            self._store.distrust("the table has changed")

    def _connected(self, dbapi_connection: Any, record: Any) -> None:
        """A new connection: the database may have been changed since the last one."""
        known = self._facts
        if known is not None and self._store.state is not State.READY:
            return

        def run(sql: str) -> Sequence[Any]:
            cursor = dbapi_connection.cursor()
            try:
                cursor.execute(sql)
                return cast("Sequence[Any]", cursor.fetchall())
            finally:
                cursor.close()

        try:
            found = self._read(run, self._schema or self._table.schema)
            dbapi_connection.rollback()
        except Exception:  # noqa: BLE001 - each driver has its own errors
            found = None
        if known is None and found is not None:
            self._learn(found)  # before the connection can write
        elif known is not None and (found is None or found.fingerprint != known.fingerprint):
            self._store.distrust("the table has changed")

    # --- the rows -----------------------------------------------------------------------------

    def count(self, connection: Connection) -> int | None:
        """How many rows there are; None if a build would not be valid now."""
        run, schema = runner(connection), self._find(connection, anew=True)
        name = full_name(self._table.name, schema)
        if connection.dialect.name == "postgresql" and prepared_writers(run, name):
            self._store.distrust("a prepared transaction may have written keys")
            return None
        if connection.dialect.name == "postgresql" and self._is_beside_older(run, name):
            self._store.place.reason = "a transaction was open when the guard was made"
            connection.rollback()
            return None
        count = select(func.count()).select_from(self._table)
        found = connection.scalar(count, execution_options=self._within(schema))
        # The scan must look at the database as it is after the new filter was made, and with some
        # isolation levels a transaction looks at it as it was when it began.
        connection.rollback()
        return int(found or 0)

    def _is_beside_older(self, run: Run, name: str) -> bool:
        """Whether somebody may commit what was written before the guard was made.

        After the first build all writers have been seen from their beginning, and those of a shared
        directory may have been before.
        """
        if self._follows or self._store.shared or self._scanned:
            return False
        return older_writers(run, name, time.monotonic() - self._made)

    def scan(
        self, connection: Connection, before: Callable[[Connection], object] = lambda _: None,
        after: Callable[[Connection], object] = lambda _: None,
    ) -> Iterator[list[Key]]:  # fmt: skip
        """Reads all keys, in batches; `before` and `after` that, follows other writers."""
        run, schema = runner(connection), self._find(connection)
        if connection.dialect.name == "postgresql":
            name, in_loop = full_name(self._table.name, schema), connection.dialect.is_async
            wait_for_writers(run, connection.rollback, name, in_loop=in_loop)
        before(connection)
        facts = self.check(connection)
        query = select(*self._keys.read).where(*(c.is_not(None) for c in self._columns))
        options = {"stream_results": True, "yield_per": _BATCH, **self._within(schema)}
        try:
            with connection.execute(query, execution_options=options) as result:
                for rows in result.partitions():
                    yield self._keys_of(rows)
        finally:
            connection.rollback()
        self._scanned = True
        after(connection)
        again = self._read(run, schema)
        connection.rollback()
        if facts is not None and again is not None and again.fingerprint != facts.fingerprint:
            self._store.distrust("the table was changed while it was read")

    def _within(self, schema: str | None) -> dict[str, Any]:
        """Options of a query that reads the table there, whatever its name means elsewhere."""
        if schema is None:
            return {}
        # A cached query would be one for the names of another map.
        return {"schema_translate_map": {self._table.schema: schema}, "compiled_cache": None}

    def _keys_of(self, rows: Sequence[Any]) -> list[Key]:
        plain = self._keys.plain
        if plain is not None:
            keys: list[Any] = [row[0] for row in rows if type(row[0]) is plain]
            if len(keys) == len(rows):
                return keys
        return [key for row in rows if (key := self._keys.stored(row)) is not None]
