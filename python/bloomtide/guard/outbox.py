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

Not seen: rows that come without a trigger being fired (triggers disabled, a partition with rows
attached, SQLite files changed by other means). Deletions are not recorded: a key too many costs a
query, never a wrong answer.
"""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
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

from bloomtide.errors import ParameterError

STATE_TABLE = "bloomtide_outboxes"
_LONGEST_NAME = 50
"""PostgreSQL cuts names to 63 bytes without a word; a trigger's has a suffix."""
_BATCH = 10_000

Sink = Callable[[Sequence[tuple[Any, ...]]], None]


@dataclass(frozen=True, slots=True)
class Position:
    """How far a reader has come: everything that was committed at that point."""

    token: str
    """Of the installation; another one has other numbers."""
    at: str

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Position:
        return cls(**json.loads(text))


class Outbox(ABC):
    """The changes of the key columns of one table. Each method works on a connection given."""

    def __init__(
        self, columns: Sequence[Column[Any]], dialect: Dialect, *, every_update: bool = False
    ) -> None:
        """`every_update`: record updates that leave the key alone, too; a guard of only some rows
        needs it, since any column may decide which."""
        self._source: Table = columns[0].table
        self._columns = tuple(columns)
        self._every_update = every_update
        self._quote = dialect.identifier_preparer
        self.name = _name("_".join([self._source.name, *(column.name for column in columns)]))
        self._changes = Table(
            self.name,
            MetaData(),
            *(Column(f"k{i}", column.type) for i, column in enumerate(columns)),
            schema=self._source.schema,
        )

    @property
    def columns(self) -> list[Column[Any]]:
        """The columns of the change table that stand for the key columns, in their order."""
        return list(self._changes.columns)

    # --- what every database has ----------------------------------------------------------------

    def install(self, connection: Connection) -> None:
        """Makes the change table and the triggers that are missing. Commits nothing.

        What is there already needs no rights and no lock.
        """
        if not self._is_complete(connection):
            self._install(connection)

    def _is_complete(self, connection: Connection) -> bool:
        return (
            self._is_there(connection)
            and connection.execute(self._state_query(), {"name": self.name}).first() is not None
            and self._has_trigger(connection, "insert")
            and self._has_trigger(connection, self._suffix())
        )

    def position(self, connection: Connection) -> Position:
        """Everything that is committed now."""
        return Position(self._token(connection), self._now(connection))

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
        return Position(since.token, now)

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

    def _suffix(self) -> str:
        return "every_update" if self._every_update else "update"

    # --- what differs -----------------------------------------------------------------------------

    @abstractmethod
    def _install(self, connection: Connection) -> None: ...

    @abstractmethod
    def _has_trigger(self, connection: Connection, suffix: str) -> bool: ...

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
    columns: Sequence[Column[Any]], dialect: Dialect, *, every_update: bool = False
) -> Outbox:
    """The outbox of that database's kind."""
    from bloomtide.guard.outbox_postgres import PostgresOutbox
    from bloomtide.guard.outbox_sqlite import SqliteOutbox

    kinds: dict[str, type[Outbox]] = {"sqlite": SqliteOutbox, "postgresql": PostgresOutbox}
    if dialect.name not in kinds:
        raise ParameterError(
            f"`outbox` works on SQLite and PostgreSQL, got: {dialect.name}",
            hint='use `refresh="5m"` instead',
            name="outbox", got=dialect.name, allowed="SQLite or PostgreSQL",
        )  # fmt: skip
    return kinds[dialect.name](columns, dialect, every_update=every_update)
