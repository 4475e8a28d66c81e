"""Carries a history out, and asks the guard for every key that the database has.

Each slot is somebody with a transaction: `s` and `p` are sessions, `c` a connection, `i` one that
commits each statement, `w` commits in two phases, `j` is a session within a transaction of `c`, `n`
a connection of another engine whose guard shares the filter. The judge is an engine of its own, of
which the guard knows nothing.
"""

from __future__ import annotations

import logging
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.orm import Session

from benchmarks.guard_histories.ground import Ground, open_engine
from benchmarks.guard_histories.schema import Mapping, Target, ddl
from benchmarks.guard_histories.steps import VERBS, Args, History, Step
from benchmarks.guard_histories.values import literal, raw, spellings
from bloomtide import DatabaseGuard
from bloomtide.errors import BloomtideError, ParameterError

Plant = Callable[..., Any]
"""Makes a guard from an engine, a column and options."""


@dataclass(slots=True)
class Wrong:
    """A "no" for a key that is in the table."""

    step: int
    key: Any
    how: str


@dataclass(slots=True)
class Outcome:
    """What came of a history."""

    refused: str = ""
    checks: int = 0
    """Times that all committed keys were asked for."""
    ready: int = 0
    """Of these, while the state was READY."""
    questions: int = 0
    wrong: Wrong | None = None
    errors: Counter[str] = field(default_factory=Counter)
    """Of steps: the database refused them, as some should be."""
    broken: list[str] = field(default_factory=list)
    """Errors from inside the guard that no page tells of."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Why a guard was not READY when asked."""
    done: Counter[str] = field(default_factory=Counter)


QUIET = (
    "savepoint",
    "release",
    "rollback_to",
    "outer_savepoint",
    "savepoint_as_text",
    "driver_fails",
    "statement_fails",
)
"""Verbs after which nothing can be known that was not known before."""


LOUD = (
    "commit",
    "driver_commit",
    "end_as_text",
    "two_phases",
    "settle",
    "build_amid",
    "outside",
    "outside_schema",
    "drop_triggers",
)
"""Verbs after which there is news where each check costs a reading of the change table."""


class Stop(Exception):
    """A wrong answer: nothing else matters."""


class Slot:
    """One session or connection with its transaction."""

    def __init__(self, play: Play, name: str) -> None:
        self.play, self.name = play, name
        self.session: Session | None = None
        self.link: sa.Connection | None = None
        self.savepoints: list[Any] = []
        self.trans: Any = None
        self.unseen = False
        """Has written what no guard can see; the remedy is due when it commits."""
        self.older = False
        """Its transaction is older than the guard."""

    @property
    def has_session(self) -> bool:
        return self.name in ("s", "p", "j")

    @property
    def connection(self) -> sa.Connection:
        if self.has_session:
            return self.opened().connection()
        if self.link is None or self.link.closed:
            engine = self.play.engine2 if self.name == "n" else self.play.engine
            if self.name == "i":
                engine = engine.execution_options(isolation_level="AUTOCOMMIT")
            self.link = engine.connect()
            self.savepoints, self.trans = [], None
        if self.name == "w" and self.trans is None and not self.link.in_transaction():
            self.trans = self.link.begin_twophase()
        return self.link

    def opened(self) -> Session:
        if self.session is None:
            if self.name == "j":
                outer = self.play.slot("c").connection
                self.session = Session(outer, join_transaction_mode="create_savepoint")
            else:
                self.session = Session(self.play.engine)
            self.savepoints = []
        return self.session

    def execute(self, statement: Any, params: Any = None) -> Any:
        where = self.opened() if self.has_session else self.connection
        table = getattr(statement, "table", None)
        if getattr(table, "schema", None) == "tenant":
            here = {"tenant": self.play.schema.namespace}
            statement = statement.execution_options(schema_translate_map=here)
        result = (
            where.execute(statement, params) if params is not None else where.execute(statement)
        )
        if getattr(result, "returns_rows", True):
            result.all()
        self.wrote()
        return result

    def send(self, sql: str, params: Any = None) -> None:
        """A string, as it is."""
        result = self.connection.exec_driver_sql(sql, params)
        if result.returns_rows:
            result.all()
        self.wrote()

    def wrote(self) -> None:
        if self.name == "i":
            self.committed()

    @property
    def driver(self) -> Any:
        """The driver's own connection, within a transaction of SQLAlchemy."""
        connection = self.connection
        if self.name == "c" and not connection.in_transaction():
            connection.begin()
        return connection.connection.dbapi_connection

    def commit(self) -> None:
        self.savepoints = []
        try:
            if self.has_session:
                self.opened().commit()
            elif self.name == "w":
                if self.trans is not None:
                    trans, self.trans = self.trans, None
                    trans.commit()
            elif self.link is not None:
                self.link.commit()
        finally:
            self.committed()

    def committed(self, *, told: bool = True) -> None:
        """`told`: by SQLAlchemy, which lets a younger guard know of the commit."""
        if self.older and not told:
            self.unseen = True
        self.older = False
        if self.unseen and self.name == "j":
            self.play.slot("c").unseen = True  # which commits in truth, or pysqlite does already
        if self.unseen:
            self.unseen = False
            self.play.remedy()

    @property
    def busy(self) -> bool:
        """Within a transaction."""
        return (self.session is not None and self.session.in_transaction()) or (
            self.link is not None and not self.link.closed and self.link.in_transaction()
        )

    def rollback(self) -> None:
        self.savepoints, self.trans = [], None
        self.unseen = self.older = False
        if self.session is not None:
            self.session.rollback()
        if self.link is not None:
            self.link.rollback()

    def close(self) -> None:
        self.savepoints, self.trans = [], None
        with suppress(SQLAlchemyError, DBAPIError):
            if self.session is not None:
                self.session.close()
            if self.link is not None:
                self.link.close()
        self.session = self.link = None
        self.committed()


class Play:
    """One history on one database."""

    def __init__(
        self,
        history: History,
        ground: Ground,
        plant: Plant | None = None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        self.history, self.ground, self.log = history, ground, log
        self.plant = plant or DatabaseGuard
        self.schema = history.schema
        self.outcome = Outcome()
        self.slots: dict[str, Slot] = {}
        self.number = -1
        self.guard: Any = None
        self.other: Any = None
        """A guard on another engine, which shares the filter."""
        self.pair = "shared" in history.options
        self.behind = False
        """Others have written since the guard last caught up."""
        self.late = bool(history.options.get("outbox") and history.schema.hazards)
        """What the engine writes makes the database write keys, which the outbox brings later."""

    def run(self) -> Outcome:
        with self.ground.fresh(self.schema) as engines:
            self.engine, self.judge = engines
            try:
                self._create()
            except self.ground.error as error:
                self.outcome.refused = f"the database refuses the schema: {error}"
            else:
                self._with_tables()
        return self.outcome

    def _with_tables(self) -> None:
        if self.log:
            sa.event.listen(self.engine, "before_cursor_execute", self._sent)
        self.fill()
        self.mapping = Mapping(self.schema, self.judge)
        self.written = self._written()
        eyes = self.judge.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            self.eyes = eyes
            with suppress(Stop):
                self._run()
        finally:
            eyes.close()
            for slot in self.slots.values():
                slot.close()
            if self.guard is not None:
                self.guard.close()
            if self.other is not None:
                self.other.close()
                self.engine2.dispose()
            self.mapping.close()
            if self.log:
                sa.event.remove(self.engine, "before_cursor_execute", self._sent)

    def _create(self) -> None:
        with self.judge.begin() as connection:
            for statement in ddl(self.schema):
                connection.connection.cursor().execute(statement)
                if self.log:
                    self.log(statement)

    def fill(self) -> None:
        """The rows from before the guard."""
        for row in self.history.rows:
            values = ", ".join(self.literal(name, index) for name, index in row.items())
            names, table = ", ".join(self.names(row)), self.schema.named(self.schema.table)
            sql = f"INSERT INTO {table} ({names}) VALUES ({values})"
            with suppress(self.ground.error), self.judge.begin() as connection:
                connection.connection.cursor().execute(sql)
                if self.log:
                    self.log(sql)

    def _sent(self, conn: Any, cursor: Any, statement: str, params: Any, *rest: Any) -> None:
        if self.log:
            self.log(f"      {' '.join(statement.split())[:300]}   {params!r}")

    def _run(self) -> None:
        try:
            self.make_guard()
            self.build()
        except ParameterError as error:
            self.outcome.refused = str(error)
            return
        except (SQLAlchemyError, self.ground.error) as error:
            self._failed(Step("build", "-"), error)
        for number, step in enumerate(self.history.steps):
            self.number = number
            if self.log:
                self.log(f"{self.number:3}: {step}")
            self.do(step)
            if step.verb not in QUIET and (step.verb in LOUD or step.slot == "i" or not self.late):
                self.check()
        self.number += 1
        for name in list(self.slots):
            self.do(Step("commit", name))
            self.check()
        self.final()

    # --- steps

    def slot(self, name: str) -> Slot:
        if name not in self.slots:
            self.slots[name] = Slot(self, name)
        return self.slots[name]

    def do(self, step: Step) -> None:
        """Errors of the database are part of life; those of the guard are told."""
        slot = self.slot(step.slot)
        args = dict(step.args)
        goes_on = args.pop("goes_on", False)
        try:
            VERBS[step.verb].do(self, slot, **args)
            self.outcome.done[step.verb] += 1
        except Stop:
            raise
        except Exception as error:  # noqa: BLE001
            self._failed(step, error)
            if not goes_on:
                with suppress(SQLAlchemyError, DBAPIError, self.ground.error):
                    slot.rollback()
            if slot.link is not None and slot.link.invalidated:
                slot.close()  # its next connection would have lost the isolation level

    def _failed(self, step: Step, error: Exception) -> None:
        if self.log:
            self.log(f"      {type(error).__name__}: {str(error).splitlines()[0]}")
        text = f"{step.verb}: {type(error).__name__}: {str(error).splitlines()[0][:90]}"
        self.outcome.errors[text] += 1
        known = isinstance(error, SQLAlchemyError | BloomtideError | self.ground.error)
        frames = traceback.extract_tb(error.__traceback__)
        if not known and any("/bloomtide/" in frame.filename for frame in frames[-6:]):
            self.outcome.broken.append(f"{step}: {''.join(traceback.format_exception(error)[-3:])}")

    # --- the guard

    def make_guard(self) -> None:
        options = {"error_rate": 1e-3, "capacity": 500, "rebuild": "manual", **self.history.options}
        if "shared" in options:
            options["shared"] = self.shared_at
        self.guard = self.plant(self.engine, self.mapping.guarded, **options)
        if self.pair and self.other is None:
            self.engine2 = open_engine(self.schema, self.ground.place)
            self.other = self.plant(self.engine2, self.mapping.guarded, **options)
            self.other.build()

    def build(self, progress: Any = None) -> bool:
        """Errors of the database change nothing, so it is tried once."""
        done = bool(self.guard.build(progress))
        if done:
            self.behind = False
        return done

    @property
    def shared_at(self) -> Path:
        return self.ground.shared_at or self.ground.folder / f"shared{self.ground.number}"

    @property
    def state(self) -> str:
        return str(self.guard.state.name)

    def remedy(self) -> None:
        """What the page says to do after writes that the guard cannot see."""
        if self.history.options.get("outbox"):
            self.behind = True
        else:
            self.guard.distrust()

    # --- the rule

    def check(self) -> None:
        """Asks for all committed keys, for all values that a step may write, and for other
        spellings of these. Whatever the guard calls absent is looked for by the judge."""
        if (self.behind or self.late) and not self._caught_up():
            return  # the page gives it some seconds, and then it passes everything
        state = self.state
        self.outcome.checks += 1
        self.outcome.ready += state == "READY"
        if state != "READY":
            with suppress(Exception):
                self.outcome.reasons[str(self.guard.stats().reason)[:60]] += 1
        keys = self.keys()
        others = [other for key in keys for other in self._others(key)]
        for some in ([*keys, *self.written], others):
            self.verify([key for key in some if not self.answer(key)])

    def _caught_up(self) -> bool:
        try:
            if "refresh" in self.history.options:
                return self.build()  # what the next rebuild does
            self.guard.catch_up()
        except Exception as error:  # noqa: BLE001
            self._failed(Step("catch_up", "-"), error)
            return False
        self.behind = False
        return True

    def keys(self) -> list[Any]:
        columns = self.mapping.key_columns
        wanted = sa.select(*columns).where(sa.and_(*(c.is_not(None) for c in columns)))
        try:
            rows = self.eyes.execute(wanted).all()
        except (
            SQLAlchemyError,
            self.ground.error,
            ValueError,
            LookupError,
            TypeError,
            ArithmeticError,
        ):
            self.outcome.errors["the judge cannot read"] += 1
            return []
        return [row[0] if len(row) == 1 else tuple(row) for row in rows]

    def answer(self, key: Any) -> bool:
        """True if the guard refuses to say."""
        self.outcome.questions += 1
        try:
            found = bool(self.guard.may_exist(key))
            return found if self.other is None else found and bool(self.other.may_exist(key))
        except BloomtideError as error:
            self.outcome.errors[f"may_exist: {type(error).__name__}: {str(error)[:60]}"] += 1
        except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
            # How a value of another Python type is refused is not this machine's concern.
            self.outcome.errors[f"may_exist: {type(error).__name__}: {str(error)[:60]}"] += 1
        return True

    def verify(self, absent: list[Any]) -> None:
        """None of the keys that the guard calls absent is in the table."""
        if absent and (len(absent) == 1 or self.exists(*absent) is not False):
            for key in absent:
                if self.exists(key):
                    self._wrong(key, "may_exist")

    def _wrong(self, key: Any, how: str) -> None:
        self.outcome.wrong = Wrong(self.number, key, f"{how}, state {self.state}")
        if self.log:
            self.log(f"WRONG: {how}({key!r}) is False and the row is there, state {self.state}")
        raise Stop

    def _others(self, key: Any) -> Iterator[Any]:
        if not isinstance(key, tuple):
            yield from spellings(key)
        else:
            for place, part in enumerate(key):
                for other in spellings(part):
                    yield (*key[:place], other, *key[place + 1 :])

    def exists(self, *keys: Any) -> bool | None:
        """Whether a committed row has one of the keys; None if the database does not take them."""
        columns = self.mapping.key_columns
        try:
            if len(columns) == 1:
                met: sa.ColumnElement[bool] = columns[0].in_(keys)
            else:
                met = sa.or_(
                    *(sa.and_(*map(sa.ColumnElement.__eq__, columns, key)) for key in keys)
                )
            found = self.eyes.execute(sa.select(sa.func.count()).where(met)).scalar()
        except Exception:  # noqa: BLE001
            return None
        return bool(found)

    def final(self) -> None:
        """The other ways to ask."""
        keys = [key for key in self.keys() if self.exists(key)]
        if not keys or self.behind:
            return
        try:
            if not all(self.guard.may_exist_many(keys)):
                self._wrong(keys, "may_exist_many")
            if len(self.guard.filter_many(keys)) != len(keys):
                self._wrong(keys, "filter_many")
        except BloomtideError:
            return
        with (
            suppress(SQLAlchemyError, self.ground.error, BloomtideError),
            self.engine.connect() as link,
        ):
            for key in keys[:2]:
                if self.exists(key) and not self.guard.exists(link, key):
                    self._wrong(key, "exists")

    # --- what verbs need

    def _written(self) -> list[Any]:
        """Values that a program writes; the database may give them back otherwise."""
        columns = [col.of.values for col in self.schema.columns]
        if len(columns) == 1:
            return list(columns[0])
        return []

    def target(self, name: str) -> Target:
        return self.mapping.target(name)

    def value(self, logical: str, index: int | None) -> Any:
        """A value of a row as a program writes it."""
        if index is None or logical in ("id", "note"):
            return index
        values = self.column(logical).values
        return values[index % len(values)]

    def column(self, logical: str) -> Any:
        return next(col.of for col in self.schema.columns if col.logical == logical)

    def row(self, target: Target, row: Args) -> Args:
        """A row under the names of a target."""
        return {
            target.keys[name]: self.value(name, index)
            for name, index in row.items()
            if name in target.keys
        }

    def raw(self, logical: str, index: int | None) -> Any:
        """A value as the driver takes it."""
        value = self.value(logical, index)
        return (
            value
            if logical in ("id", "note")
            else raw(self.column(logical), value, self.schema.dialect)
        )

    def literal(self, logical: str, index: int | None) -> str:
        return literal(self.raw(logical, index), self.schema.dialect)

    def names(self, row: Args) -> list[str]:
        named = {col.logical: col.name for col in self.schema.columns}
        return [self.schema.quote(named.get(name, name)) for name in row]


@contextmanager
def quiet() -> Iterator[None]:
    """Without SQLAlchemy's warnings about decimals in SQLite, and without its log of connections
    that are broken on purpose."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
