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
import functools
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Self, cast
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, Engine, literal, select
from sqlalchemy.exc import SQLAlchemyError

from bloomtide import system
from bloomtide.errors import (
    KeyTypeError,
    NullKeyError,
    ParameterError,
    StorageError,
    require,
)
from bloomtide.guard.background import BackgroundQueries
from bloomtide.guard.check import async_classes, checked, has_unsent
from bloomtide.guard.columns import find_columns, is_unique, subject_of
from bloomtide.guard.filter.keys import KeyFilter
from bloomtide.guard.filter.memory import Progress
from bloomtide.guard.key_parts import Normalizer, Unseen
from bloomtide.guard.stats import GuardStats, Mode, QuestionCounts, State
from bloomtide.guard.table import GuardedTable, in_transactions, is_in_memory
from bloomtide.guard.upkeep import Follow, Upkeep, refuse_removals, remove
from bloomtide.guard.values import KeyMaker
from bloomtide.guard.writes.transaction import Key

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

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
        require(
            "rebuild",
            rebuild,
            '"auto" or "manual"',
            rebuild in ("auto", "manual"),
            hint='leave it out for "auto"',
        )
        self._keeps = rebuild == "auto" and not is_in_memory(self.engine)
        self._keymaker = KeyMaker(
            self.columns, self.engine.dialect, normal, in_tuples=isinstance(column, (tuple, list))
        )
        self._plain = self._keymaker.plain
        self._counts = QuestionCounts(mode)
        self._auto = mode == "auto"
        self._shadow = mode == "shadow"
        self._follow = Follow(
            self.engine, self.columns, normal, refresh=refresh, outbox=outbox, notify=notify,
            removals=removals,
        )  # fmt: skip
        self._follows = bool(self._follow)
        subject = None
        if shared is not None:
            require("shared", shared, "a directory", shared != "", hint="name it, or leave it out")
            refuse_removals("shared", removals)
            follows = [name for name, on in (("refresh", refresh), ("outbox", outbox)) if on]
            subject = subject_of(self.engine, self.columns, follows, normal)
        self._store = KeyFilter(
            error_rate, capacity=capacity, removals=removals, shared=shared, subject=subject
        )
        self._one_build = asyncio.Lock()
        self._closed = False
        self._upkeep: Upkeep | None = None
        self._table = GuardedTable(
            self.engine, self.columns, self._keymaker, self._store, follows=self._follows
        )
        try:
            self._table.refuse_at_once()
            if self._follows:
                self._upkeep = self._start_upkeep()
        except BaseException:
            self.close()
            raise
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
        return functools.partial(checked, self, names, absent)

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
        in_transactions(connection)
        if self._store.may_join():
            self._table.check(connection)
            return True
        expected = self._table.count(connection)
        if expected is None:
            return False
        done = self._store.rebuild(
            lambda: self._scan(connection), expected=expected, progress=progress
        )
        if done and self._upkeep is not None:
            self._upkeep.built()
        return done

    def _scan(self, connection: Connection) -> Iterator[list[Key]]:
        upkeep = self._upkeep
        if upkeep is None:
            return self._table.scan(connection)
        return self._table.scan(connection, upkeep.before_scan, upkeep.after_scan)

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        """The first build is up to the caller; if the database is away, it is tried again."""
        if self._upkeep is not None:
            self._upkeep.resume()
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

    def distrust(self, reason: str = "somebody said so") -> None:
        """Says that keys were written which the guard cannot have seen: all pass until a build."""
        self._store.distrust(reason)

    # --- other writers ------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Reads now what others have committed; needs `outbox`."""
        self._with_outbox().catch_up()

    def uninstall(self) -> None:
        """Removes the change table and its triggers; needs `outbox`. Everything passes then, until
        a `build` makes them anew, as other guards of the column do by themselves: close these
        first. Also for a guard that is closed."""
        if not self._closed:
            self._with_outbox().uninstall()
            return
        outbox = self._follow.outbox
        require("outbox", outbox is not None, "on for that", outbox is not None)
        assert outbox is not None
        queries = BackgroundQueries(self.engine, is_async=self._async is not None)
        try:
            remove(outbox, queries)
        finally:
            queries.close()

    def _with_outbox(self) -> Upkeep:
        self._refuse_closed()
        upkeep = self._upkeep if self._follow.outbox else None
        hint = "DatabaseGuard(..., outbox=True)"
        require("outbox", upkeep is not None, "on for that", upkeep is not None, hint=hint)
        assert upkeep is not None
        return upkeep

    # --- the guard itself ---------------------------------------------------------------------

    @property
    def state(self) -> State:
        return self._store.state

    def stats(self) -> GuardStats:
        """What it was asked, what it answered, and what it holds."""
        return self._counts.stats(self._store.stats())

    def _refuse_closed(self) -> None:
        require("guard", "closed", "open", not self._closed, hint="make a new one")
        self._store.refuse_orphan()

    def close(self) -> None:
        """Listens no more, and lets everything pass. With `shared` it listens until transactions
        have ended that are open now."""
        if not self._closed:
            self._closed = True
            if self._upkeep is not None:
                self._upkeep.close()
            self._store.close(self._table.close)

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
