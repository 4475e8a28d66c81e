"""A guard that cannot be wrong, because it reads the whole column after each statement.

It stands in for `DatabaseGuard` with the documented answers and states, slow and plain. A mistake
is a switch: `planted.py` lists them. The machine must pass the stand-in and find each mistake.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from enum import Enum
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from bloomtide.errors import KeyTypeError

State = Enum("State", "UNKNOWN READY DEGRADED")
Keys = set[Any]
DATA = re.compile(
    r"\s*(INSERT|UPDATE|DELETE|REPLACE|SELECT|WITH|SAVEPOINT|RELEASE|ROLLBACK|COMMIT|BEGIN|MERGE|EXPLAIN)",
    re.I,
)
"""Statements after which the table is still the same table; all others degrade."""


class StandIn:
    """Knows all keys that it has read since the last build, and forgets none without a reason."""

    def __init__(
        self,
        engine: sa.Engine,
        column: Any,
        *,
        mistake: str = "",
        told: Iterator[int] | None = None,
        removals: str = "never",
        outbox: Any = False,
        **options: Any,
    ) -> None:
        self.engine, self.mistake = engine, mistake
        self.told = told or itertools.count()
        """Counts over many guards."""
        self.removals, self.outbox = removals == "commit", bool(outbox)
        columns = column if isinstance(column, tuple) else (column,)
        self.columns = [
            cast(Any, one).property.columns[0] if hasattr(one, "property") else one
            for one in columns
        ]
        self.table = self.columns[0].table
        self.own = sa.create_engine(
            engine.url, connect_args=self._arguments(), poolclass=sa.NullPool
        )
        if engine.dialect.name == "sqlite" and self.table.schema:
            path = f"{engine.url.database}.{self.table.schema}"
            sa.event.listen(
                self.own,
                "connect",
                lambda c, r: c.execute(f"ATTACH '{path}' AS {self.table.schema}"),
            )
        self.dialect = engine.dialect
        wanted = sa.select(*self.columns).where(*(c.is_not(None) for c in self.columns))
        self.sql = str(wanted.compile(dialect=self.dialect))
        self.binds = [
            c.type.dialect_impl(self.dialect).bind_processor(self.dialect) for c in self.columns
        ]
        self.state = State.UNKNOWN
        self.closed = False
        self.known: Keys = set()
        self.answers: Keys = set()
        """What is asked: `known`, but for mistakes."""
        self.open: dict[Any, Keys] = {}
        """Keys that each connection has written since its transaction began."""
        self.begun: list[Any] = []
        self.gone: dict[Any, Keys] = {}
        """Keys that each connection has deleted, to be looked for after its commit."""
        self.due: Keys = set()
        self.ignored: Keys = set()
        self.before: Keys = set()
        self._listen()

    def _arguments(self) -> dict[str, Any]:
        if self.engine.dialect.name == "sqlite":
            return {"timeout": 0}
        return {
            "options": "-c search_path=public,ext -c lock_timeout=30",
            "prepare_threshold": None,
        }

    def _listen(self) -> None:
        self.listeners: list[tuple[str, Callable[..., None]]] = [
            ("after_cursor_execute", self._after),
            ("before_cursor_execute", self._before),
            ("begin", self._begin),
            ("begin_twophase", lambda conn, xid: self._begin(conn)),
            ("commit", self._commit),
            ("prepare_twophase", lambda conn, xid: self._look(conn)),
            ("commit_twophase", lambda conn, xid, prepared: self._commit(conn, prepared=prepared)),
            ("rollback", self._rollback),
            ("rollback_savepoint", self._rollback_to),
            ("handle_error", self._error),
        ]
        for name, listener in self.listeners:
            sa.event.listen(self.engine, name, listener)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            for name, listener in self.listeners:
                sa.event.remove(self.engine, name, listener)
            self.own.dispose()

    # --- keys

    def normal(self, raw: Iterable[Any]) -> Any:
        """The same for values that the database calls equal."""
        parts = []
        for column, part in zip(self.columns, raw, strict=True):
            if isinstance(part, str):
                collation = getattr(column.type, "collation", None)
                if collation == "NOCASE" and self.mistake != "keeps the case of NOCASE":
                    part = "".join(c.lower() if c.isascii() else c for c in part)
                if (
                    isinstance(column.type, sa.CHAR)
                    and self.dialect.name == "postgresql"
                    and self.mistake != "keeps the blanks of CHAR"
                ):
                    part = part.rstrip(" ")
            part = getattr(part, "obj", part)  # what psycopg wraps bytes in
            parts.append(bytes(part) if isinstance(part, memoryview | bytearray) else part)
        return tuple(parts)

    def key(self, value: Any) -> Any:
        parts = value if isinstance(value, tuple) else (value,)
        types = [getattr(c.type, "impl_instance", c.type) for c in self.columns]
        kinds = [type_.python_type for type_ in types]
        if len(parts) != len(kinds) or any(
            type(p) is not k for p, k in zip(parts, kinds, strict=True)
        ):
            raise KeyTypeError("a key of another type")
        if self.mistake == "skips the TypeDecorator":
            return self.normal(parts)
        return self.normal(
            bind(p) if bind else p for bind, p in zip(self.binds, parts, strict=True)
        )

    def _read(self, dbapi: Any) -> Keys | None:
        """All keys that a connection sees; None if it cannot look."""
        postgres = self.dialect.name == "postgresql"
        cursor = dbapi.cursor()
        inside = postgres and not dbapi.autocommit
        if inside and dbapi.info.transaction_status == 3:  # failed, so all it wrote is lost
            return None
        try:
            if inside:
                cursor.execute("SAVEPOINT stand_in")
            try:
                cursor.execute(self.sql)
                return {self.normal(row) for row in cursor.fetchall()}
            except Exception:  # noqa: BLE001
                if inside:
                    cursor.execute("ROLLBACK TO stand_in")
                return None
            finally:
                if inside:
                    cursor.execute("RELEASE stand_in")
        finally:
            cursor.close()

    def _committed(self) -> Keys | None:
        with self.own.connect() as connection:
            return self._read(connection.connection.dbapi_connection)

    # --- what the engine tells

    def _begin(self, conn: Any) -> None:
        if conn not in self.begun:
            self.begun.append(conn)
        self.open[conn] = set()
        if self.mistake != "remembers deletions after a rollback":
            self.gone[conn] = set()

    def _before(
        self, conn: Any, cursor: Any, statement: str, params: Any, context: Any, many: bool
    ) -> None:
        if self.removals:
            self.before = self._read(conn.connection.dbapi_connection) or set()

    def _after(
        self, conn: Any, cursor: Any, statement: str, params: Any, context: Any, many: bool
    ) -> None:
        if not DATA.match(re.sub(r"/\*.*?\*/|--[^\n]*\n", "", statement)):
            if self.mistake != "takes a change of the schema for nothing":
                self.state = State.DEGRADED
            return
        self._look(conn, statement, params, context, many)

    def _error(self, context: Any) -> None:
        with suppress(Exception):
            self._look(context.connection)

    def _look(
        self,
        conn: Any,
        statement: str = "",
        params: Any = (),
        context: Any = None,
        many: bool = False,
    ) -> None:
        """Learns what a connection sees now."""
        with suppress(SQLAlchemyError, AttributeError):
            seen = self._read(conn.connection.dbapi_connection)
            if seen is None:
                return
            new = seen - self.known - self.ignored
            missed = (
                self._missed(new, statement, params, context, many) if new and statement else set()
            )
            self.ignored |= missed
            seen -= self.ignored
            if self.mistake != "answers from before the rebuild":
                self.answers |= seen
            self.known |= seen
            self.open.setdefault(conn, set()).update(seen)
            if self.removals:
                gone = self.before - seen if statement else set()
                self.gone.setdefault(conn, set()).update(gone)
                if self.mistake == "removes at the statement":
                    self.answers -= gone
                if self.mistake in (
                    "remembers deletions after a rollback",
                    "removes without a look",
                ):
                    self.gone[conn] -= seen - self.before
                elif self.mistake != "removes what came again":
                    self.gone[conn] -= seen

    def _missed(self, new: Keys, statement: str, params: Any, context: Any, many: bool) -> Keys:
        """The keys that a mistake does not see."""
        sql = re.sub(r"/\*.*?\*/|--[^\n]*\n", "", statement).strip().upper()
        first = set(sorted(new, key=repr)[:1])
        shape = (
            context.compiled.statement
            if context is not None and context.compiled is not None
            else None
        )
        plain = shape is None or isinstance(shape, sa.TextClause)
        number = next(self.told)
        given = repr(params)
        name = self.columns[0].name
        exact = {f"{self.table.name}", f'"{self.table.name}"'}
        match self.mistake:
            case "drops one key in a hundred" if number % 100 == 0:
                return first
            case "sees only the first row of an executemany" if many:
                return new - first
            case "sees only the first row of several VALUES" if re.search(r"\), \(", sql):
                return new - first
            case "misses INSERT .. SELECT" if sql.startswith("INSERT") and "SELECT" in sql:
                return new
            case "misses one INSERT in twenty" if sql.startswith("INSERT") and number % 20 == 0:
                return new
            case "misses the change of an upsert" if "DO UPDATE" in sql:
                return new
            case "misses UPDATE" if sql.startswith("UPDATE"):
                return new
            case "misses REPLACE" if sql.startswith("REPLACE") or "OR REPLACE" in sql:
                return new
            case "believes that only parameters are keys":
                return {key for key in new if not any(repr(part) in given for part in key)}
            case "misses text" if plain:
                return new
            case "compares the table's name by case" if not any(
                part in exact for part in re.split(r"[\s.(]+", statement)
            ):
                return new
            case "misses a qualified name" if re.search(r"(MAIN|PUBLIC)\.", sql):
                return new
            case "misses a CTE" if sql.startswith("WITH"):
                return new
            case "misses statements of other tables" if (
                shape is not None
                and getattr(getattr(shape, "table", None), "name", self.table.name)
                != self.table.name
            ):
                return new
            case "matches columns by their key" if not plain and name not in getattr(
                getattr(shape, "table", self.table), "c", {}
            ):
                return new
            case "misses what the statement does not name" if name not in statement:
                return new
            case "misses RETURNING" if "RETURNING" in sql:
                return new
        return set()

    def _commit(self, conn: Any, *, prepared: bool = False) -> None:
        if conn not in self.begun:
            if self.mistake == "trusts transactions older than itself":
                return
            self.state = State.DEGRADED
        if not prepared:
            self._look(conn)
        if self.removals:
            self.due |= self.gone.pop(conn, set())

    def _rollback(self, conn: Any) -> None:
        if self.mistake == "a rollback forgets what was known":
            self._forget(self.open.pop(conn, set()))

    def _rollback_to(self, conn: Any, name: str, context: Any) -> None:
        if self.mistake == "a savepoint's rollback forgets the transaction":
            self._forget(self.open.pop(conn, set()))
            self.ignored = set(self.open.get(conn, set()))

    def _forget(self, keys: Keys) -> None:
        self.known -= keys
        self.answers -= keys

    def _settle(self) -> None:
        """After a commit: whether what was deleted is gone."""
        due, self.due = self.due, set()
        if not due:
            return
        if self.mistake not in (
            "removes without a look",
            "remembers deletions after a rollback",
            "removes what came again",
        ):
            there = self._committed()
            if there is None:
                return
            due -= there
            for keys in self.open.values():
                due -= keys
        self._forget(due)

    # --- what a program calls

    def build(self, progress: Any = None) -> bool:
        earlier, before = set(self.known), {conn: set(keys) for conn, keys in self.open.items()}
        there = self._committed()
        if there is None:
            raise sa.exc.OperationalError("SELECT", {}, Exception("the table is not there"))
        if progress is not None:
            progress(len(there), len(there))
        if self.mistake != "a build forgets what is written meanwhile":
            there |= self.known - earlier
        if self.mistake != "a build forgets open transactions":
            forgets = self.mistake == "a build forgets what is written meanwhile"
            for keys in (before if forgets else self.open).values():
                there |= keys
        if self.mistake == "a build reads all but one" and len(there) > 2:
            there.discard(max(there, key=repr))
        if self.mistake == "a build changes nothing" and self.answers:
            there = self.known
        self.known, self.answers, self.ignored = set(there), set(there), set()
        self.state = State.READY
        return True

    def may_exist(self, value: Any) -> bool:
        key = self.key(value)
        if self.closed or self.state is not State.READY:
            return True
        self._settle()
        return key in self.answers

    def may_exist_many(self, values: Iterable[Any]) -> list[bool]:
        found = [self.may_exist(value) for value in values]
        return [*found[:-1], False] if self.mistake == "may_exist_many denies the last" else found

    def filter_many(self, values: Iterable[Any]) -> list[Any]:
        found = [value for value in values if self.may_exist(value)]
        return found[1:] if self.mistake == "filter_many leaves out the first" else found

    def exists(self, link: Any, value: Any) -> bool:
        return self.may_exist(value) and self.mistake != "exists denies"

    def distrust(self, reason: str = "") -> None:
        if self.mistake != "does not hear distrust":
            self.state = State.DEGRADED

    def catch_up(self) -> None:
        if self.mistake == "catch_up reads nothing":
            return
        there = self._committed()
        if there is None:
            self.state = State.DEGRADED
            return
        if self.mistake == "catch_up reads only the first change":
            there = set(sorted(there - self.known, key=repr)[:1])
        self.known |= there
        self.answers |= there

    def stats(self) -> Any:
        return self
