"""`DatabaseGuard`: do I have to ask the database at all?

    guard = DatabaseGuard(engine, Basket.customer_id, error_rate=0.01)
    guard.build()
    guard.may_exist(7)             # False: certainly no such basket; True: ask the database
    guard.get(session, 7)          # the same, and asks it

One object binds the parts: `filter` has the keys, `writes` listens to the engine and adds what is
written, `values.py` says which values are the same key, `schema` reads how the table really is,
`upkeep.py` rebuilds and follows other writers. The rule that never breaks is that of `filter`: it
holds every committed key, or it is not asked.

The answer is as of now: in a transaction that looks at an older state of the database, a key that
was deleted since is called absent (only with `removals="commit"`), though that state has it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Self, cast
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, Engine, event, func, literal, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import SingletonThreadPool, StaticPool

from bloomtide import system
from bloomtide.errors import (
    KeyTypeError,
    NullKeyError,
    ParameterError,
    StorageError,
    require,
)
from bloomtide.guard.async_classes import async_classes
from bloomtide.guard.check import decorator, has_unsent
from bloomtide.guard.columns import find_columns, is_unique, subject_of
from bloomtide.guard.counts import Mode, QuestionCounts
from bloomtide.guard.filter.keys import KeyFilter, Progress
from bloomtide.guard.key_parts import Normalizer, Unseen
from bloomtide.guard.running_writers import prepared_writers, wait_for_writers
from bloomtide.guard.schema.facts import (
    TableFacts,
    check_rows,
    check_writers,
    full_name,
    read_facts,
)
from bloomtide.guard.schema.mapping import check_columns, runner
from bloomtide.guard.stats import GuardStats, State
from bloomtide.guard.upkeep import Upkeep, follow, refuse_removals
from bloomtide.guard.values import KeyMaker
from bloomtide.guard.writes.engine import EngineWrites
from bloomtide.guard.writes.transaction import Key

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

_BATCH = 10_000
"""Rows that a build fetches at once."""

_GLANCE = 0.02
"""Seconds between two looks at what another process does."""

_log = logging.getLogger("bloomtide.guard")
_guards: WeakSet[DatabaseGuard] = WeakSet()


class DatabaseGuard:
    """A filter of all keys of a column, kept right by listening to the engine's writes."""

    def __init__(
        self,
        engine: Engine | AsyncEngine,
        column: Any,
        error_rate: float = 0.01,
        *,
        capacity: int | None = None,
        mode: Mode = "on",
        removals: Literal["never", "commit"] = "never",
        normal: Normalizer | None = None,
        shared: str | os.PathLike[str] | None = None,
        refresh: Any = None,
        outbox: Any = False,
        notify: bool = False,
        rebuild: Literal["auto", "manual"] = "auto",
    ) -> None:
        """`column` is a mapped attribute or a column, or a tuple of them for a composite key.

        - `capacity`: keys to make room for at least; the filter grows.
        - `mode`: `"on"`; `"shadow"` asks the database every time and counts what the guard would
          have said; `"auto"` steps aside while nearly every key exists; `"off"`.
        - `removals`: `"commit"` takes a deleted key out after its commit; needs a unique column.
        - `normal`: from a value to a `str`, `bytes` or `int`, for columns whose comparison is
          special.
        - `shared`: a directory, for all processes of this machine that use one filter.
        - `refresh`: read all keys again every so often, such as `"5m"`.
        - `outbox`: install a change table and follow it, for writers that use no guard; True, or
          the time between two readings.
        - `notify`: with `outbox` on PostgreSQL, read it when somebody commits.
        - `rebuild`: `"auto"` builds again, in a thread, when that is worth its while; a database
          in memory, which only its own thread can see, is left alone.
        """
        is_async = isinstance(engine, async_classes("AsyncEngine"))
        self._async = cast("AsyncEngine", engine) if is_async else None
        self.engine: Engine = self._async.sync_engine if self._async else cast(Engine, engine)
        require("engine", engine, "an Engine or an AsyncEngine", isinstance(self.engine, Engine))
        self.columns, self._entity = find_columns(column)
        if removals == "commit" and not is_unique(self.columns):
            raise ParameterError(
                '`removals` must be "never" for a column that is not unique',
                hint="another row may have the same key; declare the column unique if it is",
                name="removals",
                got=removals,
                allowed='"never"',
            )
        require("rebuild", rebuild, '"auto" or "manual"', rebuild in ("auto", "manual"))
        in_memory = isinstance(self.engine.pool, (SingletonThreadPool, StaticPool))
        self._keeps = rebuild == "auto" and not in_memory
        self._keymaker = KeyMaker(
            self.columns, self.engine.dialect, normal, in_tuples=isinstance(column, (tuple, list))
        )
        self._plain = self._keymaker.plain
        self._counts = QuestionCounts(mode)
        self._auto = mode == "auto"
        self._shadow = mode == "shadow"
        self._follow = follow(
            self.engine, self.columns, normal, refresh=refresh, outbox=outbox, notify=notify,
            removals=removals,
        )  # fmt: skip
        self._follows = bool(self._follow)
        subject = None
        if shared is not None:
            refuse_removals("shared", removals)
            follows = [name for name, on in (("refresh", refresh), ("outbox", outbox)) if on]
            subject = subject_of(self.engine, self.columns, follows, normal)
        self._store = KeyFilter(
            error_rate, capacity=capacity, removals=removals, shared=shared, subject=subject
        )
        self._one_build = asyncio.Lock()
        self._closed = False
        self._facts: TableFacts | None = None
        self._schema = self.columns[0].table.schema
        self._upkeep: Upkeep | None = None
        try:
            if self._follows:
                self._upkeep = self._start_upkeep()
        except BaseException:
            self._store.detach()
            raise
        self._writes = EngineWrites(self.engine, self.columns, self._keymaker, self._store)
        event.listen(self.engine, "connect", self._connected)
        _guards.add(self)

    def _start_upkeep(self) -> Upkeep:
        return Upkeep(
            self.engine, self._store, self._build_again, self._follow,
            is_async=self._async is not None, rebuilds=self._keeps,
        )  # fmt: skip

    # --- questions ----------------------------------------------------------------------------

    def may_exist(self, key: Any) -> bool:
        """False if certainly no committed row has the key; True if the database must be asked."""
        counts = self._counts
        if self._auto:
            counts.look()
        counts.asked += 1
        if counts.bypass or (self._follows and not self._store.is_fresh):
            return True
        try:
            plain = type(key) is self._plain  # no call for the keys that need none
            absent = not self._store.may_exist(key if plain else self._key(key))
        except Unseen:
            return True
        except KeyTypeError:
            if type(key) is not int:
                raise
            return True  # more than 64 bits
        if absent:
            counts.avoided += 1
            return self._shadow
        return True

    def _key(self, value: Any, index: int = 0) -> Key:
        key = self._keymaker.key(value)
        if key is None:
            raise NullKeyError(
                "NULL equals nothing, so it is no key",
                hint="ask the database with IS NULL",
                index=index,
                added=0,
            )
        return key

    def may_exist_many(self, keys: Iterable[Any]) -> npt.NDArray[np.bool_]:
        """What `may_exist` answers for each key."""
        keys = keys if isinstance(keys, Sequence) else list(keys)
        counts = self._counts
        if self._auto:
            counts.look()
        counts.asked += len(keys)
        answers = np.ones(len(keys), dtype=np.bool_)
        if counts.bypass or (self._follows and not self._store.is_fresh):
            return answers
        known: list[Key] = []
        rows: list[int] = []
        for row, value in enumerate(keys):
            try:
                known.append(self._key(value, row))
                rows.append(row)
            except Unseen:
                continue
        if known:
            found = self._store.may_exist_many(known)
            counts.avoided += int(len(found) - np.count_nonzero(found))
            if not self._shadow:
                answers[rows] = found
        return answers

    def filter_many(self, keys: Iterable[Any]) -> list[Any]:
        """The keys that are worth asking the database for, in their order."""
        keys = list(keys)
        return [key for key, ask in zip(keys, self.may_exist_many(keys), strict=True) if ask]

    # --- questions that go on to the database -------------------------------------------------

    def get(self, session: Any, key: Any) -> Any:
        """The first row with the key, as a mapped object if the column was given as such; or None.

        `session` is a `Session` or a `Connection`.
        """
        if not self._must_ask(session, key):
            return None
        return self._noted(key, self._first(session.execute(self._rows(key))))

    def exists(self, session: Any, key: Any) -> bool:
        """Whether a row has the key."""
        if not self._must_ask(session, key):
            return False
        return bool(self._noted(key, session.execute(self._one(key)).scalar()))

    async def aget(self, session: Any, key: Any) -> Any:
        """`get` for an `AsyncSession` or an `AsyncConnection`."""
        if not self._must_ask(session, key):
            return None
        return self._noted(key, self._first(await session.execute(self._rows(key))))

    async def aexists(self, session: Any, key: Any) -> bool:
        """`exists` for an `AsyncSession` or an `AsyncConnection`."""
        if not self._must_ask(session, key):
            return False
        return bool(self._noted(key, (await session.execute(self._one(key))).scalar()))

    def _must_ask(self, session: Any, key: Any) -> bool:
        if has_unsent(session):
            self.pass_on()
            return True
        return self.may_exist(key)

    def pass_on(self) -> None:
        """Counts a question that goes to the database without having been asked here."""
        self._counts.asked += 1

    def _where(self, key: Any) -> list[Any]:
        values = self._keymaker.values_of(key)
        return [column == value for column, value in zip(self.columns, values, strict=True)]

    def _rows(self, key: Any) -> Any:
        return select(self._entity).where(*self._where(key)).limit(1)

    def _one(self, key: Any) -> Any:
        # From the entity, not by `exists()`: SQLAlchemy 2.0 flushes a session only before a query
        # of something mapped.
        return select(literal(1)).select_from(self._entity).where(*self._where(key)).limit(1)

    def _first(self, result: Any) -> Any:
        mapped = self._entity is not self.columns[0].table
        return result.scalars().first() if mapped else result.first()

    def _noted(self, key: Any, found: Any) -> Any:
        self.note(key, found is not None)
        return found

    def note(self, key: Any, found: bool) -> None:
        """Counts how the database's answer compares with what the filter says.

        For those who ask `may_exist` and then the database themselves; without it such questions
        count neither as `false_true` nor, in shadow mode, as `wrong_false`.
        """
        counts = self._counts
        counts.true_keys += found
        if counts.bypass or not self._store.trusted:
            return
        try:
            said = self._store.may_exist(self._key(key))
        except Unseen:
            return
        # Asked only now, a key that was written after the first question is known.
        if said and not found:
            counts.false_true += 1
        elif not said and found and self._shadow:
            counts.wrong_false += 1
            self._store.distrust("a key that is in the database was called absent")
            _log.error("called absent though it is there: %r of %s", key, self.columns)

    def check(self, *names: str, absent: Any = None) -> Callable[[Any], Any]:
        """Decorates a function that queries: it is not called if its key is certainly absent.

        `names` are the arguments that hold the key, one for each column. Instead of the function's
        result comes `absent`, or what it returns if it is a function or a class such as `list`: it
        must equal what the function returns for such a key.
        """
        require("names", names, "one for each column", len(names) == len(self.columns))
        return decorator(self, names, absent)

    # --- building -----------------------------------------------------------------------------

    def build(self, progress: Progress | None = None) -> bool:
        """Reads all keys from the database into a new filter and puts it to use.

        False if writes that cannot be seen came in between, again and again; everything passes
        then. Errors of the database are raised as they are, and change nothing.
        """
        self._refuse_closed()
        if self._async is not None:
            raise ParameterError(
                "`build` must be `await abuild()` for an AsyncEngine",
                name="engine", got="AsyncEngine", allowed="an Engine",
            )  # fmt: skip
        with self._keeping(), self.engine.connect() as connection:
            return self._build(connection, progress)

    async def abuild(self, progress: Progress | None = None) -> bool:
        """`build` for an `AsyncEngine`."""
        self._refuse_closed()
        require("engine", self.engine, "an AsyncEngine", self._async is not None)
        assert self._async is not None
        # Waiting for another build by the lock of the keys would stop the loop, and so that build.
        while self._store.rebuilding:
            await asyncio.sleep(_GLANCE)
        with self._keeping():
            async with self._one_build, self._async.connect() as connection:
                return await connection.run_sync(lambda inner: self._build(inner, progress))

    def _build(self, connection: Connection, progress: Progress | None) -> bool:
        table = self.columns[0].table
        run, schema = runner(connection), connection.schema_for_object(table)
        if self._store.may_join():
            self._check_facts(connection, self._read_facts(connection, schema), schema)
            return True
        check_rows(run, connection.dialect.name, table.name, schema)
        name = full_name(table.name, schema)
        if connection.dialect.name == "postgresql" and prepared_writers(run, name):
            self._store.distrust("a prepared transaction may have written keys")
            return False
        expected = connection.scalar(select(func.count()).select_from(table))
        # The scan must look at the database as it is after the new filter was made, and with some
        # isolation levels a transaction looks at it as it was when it began.
        connection.rollback()
        done = self._store.rebuild(
            lambda: self._scan(connection, name, schema), expected=expected, progress=progress
        )
        if done and self._upkeep is not None:
            self._upkeep.built()
        return done

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        """The first build is up to the caller; if the database is away, it is tried again."""
        try:
            yield
        except (SQLAlchemyError, OSError, StorageError):
            self._keep()
            raise
        self._keep()

    def _keep(self) -> None:
        """From the first build on, no matter which process has done it."""
        if self._keeps and self._upkeep is None and not self._closed:
            self._upkeep = self._start_upkeep()
        if self._upkeep is not None:
            self._upkeep.begun = True

    def _build_again(self, connection: Connection) -> bool:
        return not self._closed and self._build(connection, None)

    def _scan(self, connection: Connection, name: str, schema: str | None) -> Iterator[list[Key]]:
        if connection.dialect.name == "postgresql":
            in_loop = connection.dialect.is_async
            wait_for_writers(runner(connection), connection.rollback, name, in_loop=in_loop)
        began = time.monotonic()
        since = self._upkeep.before_scan(connection) if self._upkeep is not None else None
        facts = self._read_facts(connection, schema)
        self._check_facts(connection, facts, schema)
        yield from self._read_all(connection)
        if self._upkeep is not None:
            self._upkeep.after_scan(connection, began, since)
        again = self._read_facts(connection, schema)
        connection.rollback()
        if facts is not None and again is not None and again.fingerprint != facts.fingerprint:
            self._store.distrust("the table was changed while it was read")

    # --- the schema ---------------------------------------------------------------------------

    def _read_facts(self, connection: Connection, schema: str | None) -> TableFacts | None:
        names = [column.name for column in self.columns]
        table, dialect = self.columns[0].table, connection.dialect.name
        return read_facts(runner(connection), dialect, table.name, schema, names)

    def _check_facts(
        self, connection: Connection, facts: TableFacts | None, schema: str | None
    ) -> None:
        """Refuses a table that cannot be guarded; else statements are read for what was found."""
        before, table = self._facts, self.columns[0].table
        changed = (
            before is not None and facts is not None and (before.fingerprint != facts.fingerprint)
        )
        if changed and self._store.state is State.READY:
            self._store.distrust("the table has changed")
        if facts is not None and not self._keymaker.is_own:
            run = runner(connection)
            check_columns(run, facts, table, self.columns, self._keymaker, schema)
        connection.rollback()
        if not self._follows:
            primary = frozenset(column.name for column in table.primary_key.columns)
            names = [column.name for column in self.columns]
            check_writers(facts, table.name, names, primary)
        if facts is not None:
            self._learn(facts)
            self._schema = schema

    def _learn(self, facts: TableFacts) -> None:
        self._facts = facts
        self._writes.read_for(facts.target(self._writes.target))

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

        names = [column.name for column in self.columns]
        table, dialect = self.columns[0].table, self.engine.dialect.name
        try:
            found = read_facts(run, dialect, table.name, self._schema, names)
            dbapi_connection.rollback()
        except Exception:  # noqa: BLE001 - each driver has its own errors
            found = None
        if known is None and found is not None:
            self._learn(found)  # before the connection can write
        elif known is not None and (found is None or found.fingerprint != known.fingerprint):
            self._store.distrust("the table has changed")

    # --- reading ------------------------------------------------------------------------------

    def _read_all(self, connection: Connection) -> Iterator[list[Key]]:
        query = select(*self._keymaker.read).where(*(c.is_not(None) for c in self.columns))
        options = {"stream_results": True, "yield_per": _BATCH}
        try:
            with connection.execute(query, execution_options=options) as result:
                for rows in result.partitions():
                    yield self._keys_of(rows)
        finally:
            connection.rollback()

    def _keys_of(self, rows: Sequence[Any]) -> list[Key]:
        plain = self._plain
        if plain is not None:
            keys: list[Any] = [row[0] for row in rows if type(row[0]) is plain]
            if len(keys) == len(rows):
                return keys
        return [key for row in rows if (key := self._keymaker.stored(row)) is not None]

    def distrust(self, reason: str = "somebody said so") -> None:
        """Says that keys were written which the guard cannot have seen: all pass until a build."""
        self._store.distrust(reason)

    # --- other writers ------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Reads now what others have committed; needs `outbox`."""
        self._with_outbox().catch_up()

    def uninstall(self) -> None:
        """Removes the change table and its triggers, for all guards of the column; needs
        `outbox`."""
        self._with_outbox().uninstall()

    def _with_outbox(self) -> Upkeep:
        self._refuse_closed()
        others = self._upkeep
        if others is None or not others.reads_changes:
            raise ParameterError(
                "`outbox` must be on for that",
                hint="DatabaseGuard(..., outbox=True)", name="outbox", got=False, allowed="True",
            )  # fmt: skip
        return others

    # --- the guard itself ---------------------------------------------------------------------

    @property
    def state(self) -> State:
        return self._store.state

    def stats(self) -> GuardStats:
        """What it was asked, what it answered, and what it holds."""
        held, counts = self._store.stats(), self._counts
        return GuardStats(
            **{name: getattr(held, name) for name in held.__dataclass_fields__},
            mode=counts.mode,
            bypassed=counts.bypass,
            asked=counts.asked,
            avoided=counts.avoided,
            passed=counts.passed,
            true_keys=counts.true_keys,
            false_true=counts.false_true,
            wrong_false=counts.wrong_false,
        )

    def _refuse_closed(self) -> None:
        require("guard", "closed", "open", not self._closed, hint="make a new one")

    def close(self) -> None:
        """Listens no more, and lets everything pass."""
        if not self._closed:
            self._closed = True
            if self._upkeep is not None:
                self._upkeep.close()
            event.remove(self.engine, "connect", self._connected)
            self._writes.close()
            self._store.detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        names = ", ".join(str(column) for column in self.columns)
        return f"<DatabaseGuard of {names}: {self.state.value}, mode {self._counts.mode}>"


def _after_fork() -> None:
    for guard in list(_guards):
        guard._upkeep = None  # its threads are in the other process


system.after_fork_in_child(_after_fork)
