"""`DatabaseGuard`: do I have to ask the database at all?

    guard = DatabaseGuard(engine, Basket.customer_id, error_rate=0.01)
    guard.build()
    guard.may_exist(7)             # False: certainly no such basket; True: ask the database
    guard.get(session, 7)          # the same, and asks it

One object binds the parts: `held.py` has the keys, `writes.py` listens to the engine and tells it
what is written, `values.py` says which values are the same key, `tally.py` counts. With other
processes the keys are in `shared.py`, and `others.py` follows other writers. The rule that
never breaks is that of `held.py`: the filter holds every committed key, or it is not asked.

The answer is as of now: in a transaction that looks at an older state of the database, a key that
was deleted since is called absent (only with `removals="commit"`), though that state has it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Self, cast
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, Engine, func, literal, select
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
from bloomtide.guard.actual import check_columns, check_rows
from bloomtide.guard.async_classes import async_classes
from bloomtide.guard.checks import decorator, has_unsent
from bloomtide.guard.columns import find_columns, is_unique
from bloomtide.guard.held import HeldKeys, Progress
from bloomtide.guard.keeper import Keeper
from bloomtide.guard.others import OtherWriters, follow_others, refuse_removals
from bloomtide.guard.pending import Key
from bloomtide.guard.settle import wait_for_writers
from bloomtide.guard.shared import SharedKeys
from bloomtide.guard.shared_files import subject_of
from bloomtide.guard.state import GuardStats, State
from bloomtide.guard.tally import Mode, Tally
from bloomtide.guard.values import Normal, Normalizer, Unseen
from bloomtide.guard.writes import Writes

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
        self._keeper: Keeper | None = None
        self._normal = Normal(self.columns, self.engine.dialect, normal)
        self._plain = self._normal.plain
        self._tally = Tally(mode)
        self._auto = mode == "auto"
        self._shadow = mode == "shadow"
        self._held: HeldKeys | SharedKeys
        if shared is None:
            self._held = HeldKeys(error_rate, capacity=capacity, removals=removals)
        else:
            refuse_removals("shared", removals)
            follows = [name for name, on in (("refresh", refresh), ("outbox", outbox)) if on]
            subject = subject_of(self.engine, self.columns, follows, normal)
            self._held = SharedKeys(shared, error_rate, capacity=capacity, subject=subject)
        self._one_build = asyncio.Lock()
        self._closed = False
        try:
            self._others = follow_others(
                self.engine, self.columns, self._held, self._build_again, normal=normal,
                is_async=self._async is not None, refresh=refresh, outbox=outbox, notify=notify,
                removals=removals,
            )  # fmt: skip
        except BaseException:
            self._held.detach()
            raise
        self._writes = Writes(self.engine, self.columns, self._normal, self._held)
        _guards.add(self)

    # --- questions ----------------------------------------------------------------------------

    def may_exist(self, key: Any) -> bool:
        """False if certainly no committed row has the key; True if the database must be asked."""
        tally = self._tally
        if self._auto:
            tally.look()
        tally.asked += 1
        if tally.bypass:
            return True
        try:
            plain = type(key) is self._plain  # no call for the keys that need none
            absent = not self._held.may_exist(key if plain else self._key(key))
        except Unseen:
            return True
        except KeyTypeError:
            if type(key) is not int:
                raise
            return True  # more than 64 bits
        if absent:
            tally.avoided += 1
            return self._shadow
        return True

    def _key(self, value: Any, index: int = 0) -> Key:
        key = self._normal.key(value)
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
        tally = self._tally
        if self._auto:
            tally.look()
        tally.asked += len(keys)
        answers = np.ones(len(keys), dtype=np.bool_)
        if tally.bypass:
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
            found = self._held.may_exist_many(known)
            tally.avoided += int(len(found) - np.count_nonzero(found))
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
        self._tally.asked += 1

    def _where(self, key: Any) -> list[Any]:
        values = (key,) if len(self.columns) == 1 else tuple(key)
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
        tally = self._tally
        tally.true_keys += found
        if tally.bypass or not self._held.trusted:
            return
        try:
            said = self._held.may_exist(self._key(key))
        except Unseen:
            return
        # Asked only now, a key that was written after the first question is known.
        if said and not found:
            tally.false_true += 1
        elif not said and found and self._shadow:
            tally.wrong_false += 1
            self._held.distrust("a key that is in the database was called absent")
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
        if self._held.may_join():
            self._keep()
            return True
        with self._keeping(), self.engine.connect() as connection:
            return self._build(connection, progress)

    async def abuild(self, progress: Progress | None = None) -> bool:
        """`build` for an `AsyncEngine`."""
        self._refuse_closed()
        require("engine", self.engine, "an AsyncEngine", self._async is not None)
        assert self._async is not None
        # Waiting for another build by the lock of the keys would stop the loop, and so that build.
        while self._held.rebuilding:
            await asyncio.sleep(_GLANCE)
        if self._held.may_join():
            self._keep()
            return True
        with self._keeping():
            async with self._one_build, self._async.connect() as connection:
                return await connection.run_sync(lambda inner: self._build(inner, progress))

    def _build(self, connection: Connection, progress: Progress | None) -> bool:
        check_columns(connection, self.columns, self._normal)
        check_rows(connection, self.columns[0].table)
        expected = connection.scalar(select(func.count()).select_from(self.columns[0].table))
        # The scan must look at the database as it is after the new filter was made, and with some
        # isolation levels a transaction looks at it as it was when it began.
        connection.rollback()
        done = self._held.rebuild(
            lambda: self._scan(connection), expected=expected, progress=progress
        )
        if done and self._others is not None:
            self._others.built()
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
        if self._keeps and self._keeper is None and not self._closed:
            self._keeper = Keeper(
                self.engine, self._held, self._build_again, is_async=self._async is not None
            )

    def _build_again(self, connection: Connection) -> bool:
        return not self._closed and self._build(connection, None)

    def _scan(self, connection: Connection) -> Iterator[list[Key]]:
        wait_for_writers(connection, self.columns[0].table)
        rows = self._read_all(connection)
        return rows if self._others is None else self._others.around(connection, rows)

    def _read_all(self, connection: Connection) -> Iterator[list[Key]]:
        query = select(*self._normal.read).where(*(c.is_not(None) for c in self.columns))
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
        return [key for row in rows if (key := self._normal.stored(row)) is not None]

    def distrust(self, reason: str = "somebody said so") -> None:
        """Says that keys were written which the guard cannot have seen: all pass until a build."""
        self._held.distrust(reason)

    # --- other writers ------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Reads now what others have committed; needs `outbox`."""
        self._with_outbox().catch_up()

    def uninstall(self) -> None:
        """Removes the change table and its triggers, for all guards of the column; needs
        `outbox`."""
        self._with_outbox().uninstall()

    def _with_outbox(self) -> OtherWriters:
        self._refuse_closed()
        others = self._others
        if others is None or not others.reads_changes:
            raise ParameterError(
                "`outbox` must be on for that",
                hint="DatabaseGuard(..., outbox=True)", name="outbox", got=False, allowed="True",
            )  # fmt: skip
        return others

    # --- the guard itself ---------------------------------------------------------------------

    @property
    def state(self) -> State:
        return self._held.state

    def stats(self) -> GuardStats:
        """What it was asked, what it answered, and what it holds."""
        held, tally = self._held.stats(), self._tally
        return GuardStats(
            **{name: getattr(held, name) for name in held.__dataclass_fields__},
            mode=tally.mode,
            bypassed=tally.bypass,
            asked=tally.asked,
            avoided=tally.avoided,
            passed=tally.passed,
            true_keys=tally.true_keys,
            false_true=tally.false_true,
            wrong_false=tally.wrong_false,
        )

    def _refuse_closed(self) -> None:
        require("guard", "closed", "open", not self._closed, hint="make a new one")

    def close(self) -> None:
        """Listens no more, and lets everything pass."""
        if not self._closed:
            self._closed = True
            if self._keeper is not None:
                self._keeper.close()
            if self._others is not None:
                self._others.close()
            self._writes.close()
            self._held.detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        names = ", ".join(str(column) for column in self.columns)
        return f"<DatabaseGuard of {names}: {self.state.value}, mode {self._tally.mode}>"


def _after_fork() -> None:
    for guard in list(_guards):
        guard._held.after_fork()
        guard._keeper = None  # its thread is in the other process


system.after_fork_in_child(_after_fork)
