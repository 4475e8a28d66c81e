"""`Outbox`: a change table that triggers fill, so that writers who know no guard are seen, too.

The guard installs it beside the guarded table. A trigger writes the key of each new row, and the
new key of a changed one, in the transaction of whoever wrote it: the change is there if and only
if the row is. Readers follow the table from a position.

1. A position is taken *before* the guarded table is scanned. What was committed before it is in
   the scan; what is committed after it is in the changes. Nothing falls between.
2. Commits may come in another order than the changes were written. So on PostgreSQL a position is
   no number but a snapshot: exactly the transactions that had ended. What a reader has not seen is
   what that snapshot does not show, however long a transaction stayed open. SQLite has one writer
   at a time, so there a number will do.
3. Old changes are pruned. A reader that is further behind than that, or whose table was dropped and
   made anew, is told so (`read` answers None) and has to build again.

A position also has a fingerprint of the schema. When triggers were dropped or disabled, or a
partition was attached, some rows came without a trigger being fired: that counts as changes lost.

Not seen: SQLite files changed by other means. Deletions are not recorded: a key too many costs a
query, never a wrong answer.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Dialect,
    MetaData,
    Table,
    TextClause,
    select,
)
from sqlalchemy import text as sql
from sqlalchemy.exc import SQLAlchemyError

from bloomtide.errors import ParameterError
from bloomtide.guard.key_parts import Normalizer
from bloomtide.guard.schema.facts import fingerprint_of, read_facts
from bloomtide.guard.schema.mapping import runner
from bloomtide.guard.values import KeyMaker
from bloomtide.guard.writes.engine import OWN
from bloomtide.guard.writes.transaction import Key

STATE_TABLE = "bloomtide_outboxes"
_LONGEST_NAME = 50
"""PostgreSQL cuts names to 63 bytes without a word; a trigger's has a suffix."""
_BATCH = 10_000
_KEEP = 3600.0
"""Seconds that changes stay readable."""
_STEPS = 60
"""How often in that time some are pruned."""

log = logging.getLogger("bloomtide.guard")
Sink = Callable[[Sequence[tuple[Any, ...]]], None]


@dataclass(frozen=True, slots=True)
class Position:
    """How far a reader has come: everything that was committed at that point."""

    token: str
    """Of the installation; another one has other numbers."""
    at: str
    schema: str = ""
    """Fingerprint of the table and of the triggers."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Position:
        return cls(**json.loads(text))


class Outbox(ABC):
    """The changes of the key columns of one table. Each method works on a connection given."""

    def __init__(
        self, columns: Sequence[Column[Any]], dialect: Dialect, normal: Normalizer | None = None,
        *, notify: bool = False,
    ) -> None:  # fmt: skip
        self._source: Table = columns[0].table
        self._columns = tuple(columns)
        self._notify = notify
        self._dialect = dialect
        self._quote = dialect.identifier_preparer
        self._reached: deque[tuple[float, Position]] = deque()
        self.name = _name("_".join([self._source.name, *(column.name for column in columns)]))
        self._changes = Table(
            self.name,
            MetaData(),
            *(Column(f"k{i}", column.type) for i, column in enumerate(columns)),
            schema=self._source.schema,
        )
        self._keymaker = KeyMaker(self.columns, dialect, normal)

    @property
    def columns(self) -> list[Column[Any]]:
        """The columns of the change table that stand for the key columns, in their order."""
        return list(self._changes.columns)

    # --- what every database has ----------------------------------------------------------------

    def install(self, connection: Connection) -> None:
        """Makes what is missing of the change table and its triggers.

        What is there already needs no rights and no lock.
        """
        was = connection.get_execution_options().get(OWN, False)
        connection.execution_options(**{OWN: True})
        try:
            if not self._is_complete(connection):
                self._install(connection)
            connection.commit()
        finally:
            connection.execution_options(**{OWN: was})

    def remove(self, connection: Connection) -> None:
        """Removes all of it."""
        self.uninstall(connection)
        connection.commit()

    def _is_complete(self, connection: Connection) -> bool:
        return (
            self._is_there(connection)
            and connection.execute(self._state_query(), {"name": self.name}).first() is not None
            and all(self._has_trigger(connection, suffix) for suffix in self._suffixes())
            and not self._is_misplaced(connection)
        )

    def _suffixes(self) -> list[str]:
        return ["insert", "update"]

    def current_position(self, connection: Connection) -> Position:
        """Everything that is committed now."""
        found = self.position(connection)
        connection.rollback()
        return found

    def read_keys(
        self, connection: Connection, since: Position, add_many: Callable[[Sequence[Key]], object]
    ) -> Position | None:
        """Adds the keys that were committed after `since`; None if some of them were lost."""

        def add(rows: Sequence[tuple[Any, ...]]) -> None:
            keys = (self._keymaker.stored(row) for row in rows)
            add_many([key for key in keys if key is not None])

        reached = self.read(connection, since, add, self._keymaker.read)
        connection.rollback()
        if reached is not None:
            self._prune_old(connection, reached)
        return reached

    def _prune_old(self, connection: Connection, reached: Position) -> None:
        """Deletes what was read long ago; a reader that is further behind will notice."""
        now = time.monotonic()
        if not self._reached or now - self._reached[-1][0] >= _KEEP / _STEPS:
            self._reached.append((now, reached))
        if now - self._reached[0][0] > _KEEP:
            until = self._reached.popleft()[1]
            try:
                self.prune(connection, until)
                connection.commit()
            except SQLAlchemyError as error:  # what was read is read all the same
                connection.rollback()
                log.warning("old changes could not be deleted: %s", error)

    def _schema(self, connection: Connection) -> str:
        """A fingerprint of the table and of the triggers; empty if they cannot be read."""
        facts = read_facts(
            runner(connection), self._dialect.name, self._source.name,
            connection.schema_for_object(self._source), [c.name for c in self._columns],
        )  # fmt: skip
        return fingerprint_of(facts.fingerprint, facts.own_triggers) if facts else ""

    def position(self, connection: Connection) -> Position:
        """Everything that is committed now."""
        schema = self._schema(connection)
        return Position(self._token(connection), self._now(connection), schema)

    def read(
        self,
        connection: Connection,
        since: Position,
        sink: Sink,
        what: Sequence[ColumnElement[Any]] = (),
    ) -> Position | None:
        """Gives `sink` the keys that were committed after `since`, some more than once; `what` to
        select is `columns`, or made of them.

        Answers the position to go on from; None if changes were lost and the guarded table has to
        be scanned again.
        """
        self._begin_reading(connection)
        if not self._is_there(connection):
            return None
        now = self._now(connection)
        query = select(*(what or self.columns)).select_from(self._changes)
        rows = connection.execute(
            query.where(self._is_unseen(since)), execution_options={"yield_per": _BATCH}
        )
        for batch in rows.partitions():
            # NULL equals nothing, so no question can be about it.
            sink([tuple(row) for row in batch if None not in row])
        # Afterwards, so that what was pruned during the reading counts as well.
        state = connection.execute(self._state_query(), {"name": self.name}).first()
        if state is None or state.token != since.token or self._is_behind(since, state.pruned):
            return None
        schema = self._schema(connection)
        return Position(since.token, now, schema) if schema == since.schema else None

    def prune(self, connection: Connection, until: Position) -> None:
        """Deletes what every reader that reached `until` has seen. Commits nothing."""
        floor = self._floor(until)
        claim = f"""
            UPDATE {self._in_schema(STATE_TABLE)} SET pruned = :floor
            WHERE name = :name AND token = :token AND pruned < :floor
        """
        values = {"floor": floor, "name": self.name, "token": until.token}
        # Of several processes that prune at once, one wins; the others have nothing left to do.
        if connection.execute(sql(claim), values).rowcount:
            connection.execute(sql(self._deletion()), {"floor": floor})

    def uninstall(self, connection: Connection) -> None:
        """Removes triggers and changes. Commits nothing."""
        for statement in self._removal():
            connection.execute(sql(statement))
        if self._has_table(connection, STATE_TABLE):
            connection.execute(
                sql(f"DELETE FROM {self._in_schema(STATE_TABLE)} WHERE name = :name"),
                {"name": self.name},
            )

    def _token(self, connection: Connection) -> str:
        state = connection.execute(self._state_query(), {"name": self.name}).one()
        return str(state.token)

    def _state_query(self) -> Any:
        return sql(f"SELECT token, pruned FROM {self._in_schema(STATE_TABLE)} WHERE name = :name")

    def _register(self, connection: Connection, *, anew: bool) -> None:
        """Gives the installation its token; a change table made `anew` needs another one."""
        table, values = self._in_schema(STATE_TABLE), {"name": self.name}
        if anew:
            connection.execute(sql(f"DELETE FROM {table} WHERE name = :name"), values)
        connection.execute(
            sql(
                f"INSERT INTO {table} (name, token, pruned) "
                "VALUES (:name, :token, 0) ON CONFLICT DO NOTHING"
            ),
            values | {"token": secrets.token_hex(8)},
        )

    def _is_there(self, connection: Connection) -> bool:
        return all(self._has_table(connection, name) for name in (STATE_TABLE, self.name))

    def _in_schema(self, name: str) -> str:
        schema = self._source.schema
        quoted = self._quote.quote(name)
        return f"{self._quote.quote_schema(schema)}.{quoted}" if schema else quoted

    def _keys(self, row: str = "") -> list[str]:
        return [row + self._quote.quote(column.name) for column in self._columns]

    def _fields(self) -> str:
        return ", ".join(f"k{i}" for i in range(len(self._columns)))

    # --- what differs -----------------------------------------------------------------------------

    @abstractmethod
    def _install(self, connection: Connection) -> None: ...

    @abstractmethod
    def _has_trigger(self, connection: Connection, suffix: str) -> bool: ...

    @abstractmethod
    def _is_misplaced(self, connection: Connection) -> bool:
        """Whether a trigger went with a table or a column that has another name by now."""

    @abstractmethod
    def _begin_reading(self, connection: Connection) -> None: ...

    @abstractmethod
    def _has_table(self, connection: Connection, name: str) -> bool: ...

    @abstractmethod
    def _now(self, connection: Connection) -> str: ...

    @abstractmethod
    def _is_unseen(self, since: Position) -> TextClause: ...

    @abstractmethod
    def _floor(self, position: Position) -> int:
        """All changes below this number are part of the position."""

    def _is_behind(self, since: Position, pruned: int) -> bool:
        return self._floor(since) < int(pruned)

    @abstractmethod
    def _deletion(self) -> str: ...

    @abstractmethod
    def _removal(self) -> list[str]: ...


def _name(subject: str) -> str:
    """The change table's name: readable, and different for every subject however long."""
    name = f"bloomtide_{subject}"
    if len(name.encode()) <= _LONGEST_NAME:
        return name
    digest = blake2b(subject.encode(), digest_size=6).hexdigest()
    short = name.encode()[: _LONGEST_NAME - 13].decode(errors="ignore")
    return f"{short}_{digest}"


def outbox_for(
    columns: Sequence[Column[Any]], dialect: Dialect, normal: Normalizer | None = None,
    *, notify: bool = False,
) -> Outbox:  # fmt: skip
    """The outbox of that database's kind."""
    from bloomtide.guard.outbox.postgres import PostgresOutbox
    from bloomtide.guard.outbox.sqlite import SqliteOutbox

    kinds: dict[str, type[Outbox]] = {"sqlite": SqliteOutbox, "postgresql": PostgresOutbox}
    if dialect.name not in kinds:
        raise ParameterError(
            f"`outbox` works on SQLite and PostgreSQL, got: {dialect.name}",
            hint='use `refresh="5m"` instead',
            name="outbox", got=dialect.name, allowed="SQLite or PostgreSQL",
        )  # fmt: skip
    return kinds[dialect.name](columns, dialect, normal, notify=notify)
