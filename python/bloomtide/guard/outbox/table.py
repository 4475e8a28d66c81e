"""`Outbox`: a change table that triggers fill, so that writers who know no guard are seen, too.

The guard installs it beside the guarded table. A trigger writes the key of each new row, and the
new key of a changed one, in the transaction of whoever wrote it: the change is there if and only
if the row is. Readers follow the table from a position.

1. A position is taken *before* the guarded table is scanned. What was committed before it is in
   the scan; what is committed after it is in the changes. Nothing falls between.
2. Commits may come in another order than the changes were written. So on PostgreSQL a position is
   no number but a snapshot: exactly the transactions that had ended (`texts.py`).
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
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

from sqlalchemy import Column, Connection, Dialect, MetaData, Table, select
from sqlalchemy import text as sql
from sqlalchemy.exc import SQLAlchemyError

from bloomtide.errors import ParameterError
from bloomtide.guard.key_parts import Normalizer
from bloomtide.guard.outbox.texts import TEXTS
from bloomtide.guard.schema.facts import (
    TableFacts,
    check_is_table,
    fingerprint_of,
    literal,
    read_facts,
)
from bloomtide.guard.schema.mapping import runner
from bloomtide.guard.values import KeyMaker
from bloomtide.guard.writes.engine import OWN
from bloomtide.guard.writes.transaction import Key, is_open

_STATES = "bloomtide_outboxes"
"""The table of all change tables: their tokens, and how far they are pruned."""
_LONGEST_NAME = 50
"""PostgreSQL cuts names to 63 bytes without a word; a trigger's has a suffix."""
_BATCH = 10_000
_KEEP = 3600.0
"""Seconds that changes stay readable."""
_STEPS = 60
"""How often in that time some are pruned."""

log = logging.getLogger("bloomtide.guard")


@dataclass(frozen=True, slots=True)
class Position:
    """How far a reader has come: everything that was committed at that point."""

    token: str
    """Of the installation; another one has other numbers."""
    at: str
    schema: str = ""
    """Fingerprint of the table and of the triggers."""

    @property
    def floor(self) -> int:
        """All changes below this number are part of the position."""
        return int(self.at.partition(":")[0])

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Position:
        return cls(**json.loads(text))


class Outbox:
    """The changes of the key columns of one table. Each method works on a connection given."""

    def __init__(
        self, columns: Sequence[Column[Any]], dialect: Dialect, normal: Normalizer | None = None,
        *, notify: bool = False,
    ) -> None:  # fmt: skip
        if dialect.name not in TEXTS:
            raise ParameterError(
                f"`outbox` works on SQLite and PostgreSQL, got: {dialect.name}",
                hint='use `refresh="5m"` instead',
                name="outbox", got=dialect.name, allowed="SQLite or PostgreSQL",
            )  # fmt: skip
        self._texts = TEXTS[dialect.name]
        self._is_sqlite = dialect.name == "sqlite"
        self._source: Table = columns[0].table
        self._columns = tuple(columns)
        self._notify = notify
        self._quote = dialect.identifier_preparer
        self._reached: deque[tuple[float, Position]] = deque()
        self.name = _name(self._source.name, *(column.name for column in columns))
        own = [Column(f"k{place}", column.type) for place, column in enumerate(columns)]
        self._changes = Table(self.name, MetaData(), *own, schema=self._source.schema)
        self._keymaker = KeyMaker(own, dialect, normal)
        self._names = self._all_names()

    def _all_names(self) -> dict[str, str]:
        """What stands in the texts in braces."""
        keys = [self._quote.quote(column.name) for column in self._columns]
        fields = [f"k{place}" for place in range(len(keys))]
        differs = "IS NOT" if self._is_sqlite else "IS DISTINCT FROM"
        own = {name: f"{self.name}_{name}" for name in ("insert", "update", "record", "wake")}
        # A trigger of PostgreSQL belongs to its table, and has no schema.
        named = self._path if self._is_sqlite else self._quote.quote
        return {
            "source": self._path(self._source.name),
            "source_path": literal(self._path(self._source.name)),
            "source_name": literal(self._source.name),
            "changes": self._path(self.name),
            "bare_changes": self._quote.quote(self.name),
            "name": literal(self.name),
            "catalogue": self._path("sqlite_master"),
            "sequences": self._path("sqlite_sequence"),
            "columns": ", ".join(literal(column.name) for column in self._columns),
            "fields": ", ".join(fields),
            "keys": ", ".join(f"{key} AS {f}" for key, f in zip(keys, fields, strict=True)),
            "new": ", ".join(f"NEW.{key}" for key in keys),
            "moved": " OR ".join(f"OLD.{key} {differs} NEW.{key}" for key in keys),
            "insert": named(own["insert"]),
            "update": named(own["update"]),
            "bell": named(own["wake"]),
            "record": self._path(own["record"]),
            "wake": self._path(own["wake"]),
            "record_path": literal(self._path(own["record"])),
            "wake_path": literal(self._path(own["wake"])),
            "insert_name": literal(own["insert"]),
            "update_name": literal(own["update"]),
        }

    def _path(self, name: str) -> str:
        """A name in the schema of the guarded table."""
        return self._within(self._source.schema, name)

    def _within(self, schema: str | None, name: str) -> str:
        quoted = self._quote.quote(name)
        return f"{self._quote.quote_schema(schema)}.{quoted}" if schema else quoted

    def _rows(self, connection: Connection, text: str, **names: str) -> Sequence[Any]:
        query = text.format_map(self._names | names).replace(":", r"\:")
        return connection.execute(sql(query)).fetchall()

    # --- installing ---------------------------------------------------------------------------

    def install(self, connection: Connection) -> None:
        """Makes the change table and its triggers, unless all is there as it was made.

        What is there already needs no rights and no lock.
        """
        was = connection.get_execution_options().get(OWN, False)
        connection.execution_options(**{OWN: True})
        try:
            if not self._is_complete(connection):
                self._begin(connection)
                if not self._is_complete(connection):  # still, now that nobody else is at work
                    self._remove(connection)
                    self._create(connection)
            connection.commit()
        finally:
            connection.execution_options(**{OWN: was})

    def _is_complete(self, connection: Connection) -> bool:
        if not self._is_there(connection):
            return False
        state, triggers = self._state(connection), self._rows(connection, self._texts.triggers)
        has_bell = any(row[0] == f"{self.name}_wake" for row in triggers)
        return (
            state is not None
            and state.triggers == self._watched(connection)
            and (has_bell or not self._notify)
        )

    def _is_there(self, connection: Connection) -> bool:
        return all(self._has_table(connection, name) for name in (_STATES, self.name))

    def _begin(self, connection: Connection) -> None:
        if not self._is_sqlite or is_open(connection.connection.driver_connection) is False:
            for text in self._texts.begin:
                connection.exec_driver_sql(text)

    def _create(self, connection: Connection) -> None:
        check_is_table(self._facts(connection), str(self._columns[0]))
        run, schema = connection.exec_driver_sql, self._source.schema
        if not self._is_sqlite and schema is None:
            schema = run("SELECT current_schema()").scalar_one()
        # SQLAlchemy 2.0 quotes no empty name; only the texts of PostgreSQL have a schema.
        names = self._names | ({"schema": self._quote.quote(schema)} if schema else {})
        for text in self._texts.create:
            run(text.format_map(names))
        for place in self._rows(connection, self._texts.tables):
            for text in self._texts.watch:
                run(text.format_map(names | {"table": self._within(*place)}))
        for text in self._texts.wake if self._notify else ():
            run(text.format_map(names | {"table": self._path(self._source.name)}))
        run(
            f"CREATE TABLE IF NOT EXISTS {self._path(_STATES)} (name text PRIMARY KEY, "
            "token text NOT NULL, pruned numeric NOT NULL, triggers text NOT NULL)"
        )
        connection.execute(
            sql(f"INSERT INTO {self._path(_STATES)} VALUES (:name, :token, 0, :triggers)"),
            {
                "name": self.name,
                "token": secrets.token_hex(8),
                "triggers": self._watched(connection),
            },
        )

    def uninstall(self, connection: Connection) -> None:
        """Removes triggers and changes, and all that is left after the last one. Commits
        nothing."""
        self._begin(connection)
        self._remove(connection)
        if self._has_table(connection, _STATES):
            states = self._path(_STATES)
            if connection.execute(sql(f"SELECT 1 FROM {states}")).first() is None:
                connection.execute(sql(f"DROP TABLE {states}"))

    def _remove(self, connection: Connection) -> None:
        for text in self._texts.drop:
            connection.exec_driver_sql(text.format_map(self._names))
        if self._has_table(connection, _STATES):
            forget = sql(f"DELETE FROM {self._path(_STATES)} WHERE name = :name")
            connection.execute(forget, {"name": self.name})

    def _has_table(self, connection: Connection, name: str) -> bool:
        names = {"name": literal(name), "path": literal(self._path(name))}
        return bool(self._rows(connection, self._texts.exists, **names))

    def _watched(self, connection: Connection) -> str:
        """A fingerprint of the tables that need triggers, and of the triggers."""
        queries = (self._texts.tables, self._texts.triggers)
        return fingerprint_of(*([*map(tuple, self._rows(connection, query))] for query in queries))

    def _state(self, connection: Connection) -> Any:
        """The row of this change table; None if there is none."""
        query = sql(f"SELECT * FROM {self._path(_STATES)} WHERE name = :name")
        return connection.execute(query, {"name": self.name}).first()

    # --- reading ------------------------------------------------------------------------------

    def position(self, connection: Connection) -> Position:
        """Everything that is committed now."""
        state = self._state(connection)
        found = Position(state.token, self._now(connection), self._schema(connection))
        connection.rollback()
        return found

    def _now(self, connection: Connection) -> str:
        return str(self._rows(connection, self._texts.now)[0][0])

    def _schema(self, connection: Connection) -> str:
        """A fingerprint of the table and of the triggers; empty if they cannot be read."""
        facts = self._facts(connection)
        return fingerprint_of(facts.fingerprint, facts.own_triggers) if facts else ""

    def _facts(self, connection: Connection) -> TableFacts | None:
        return read_facts(
            runner(connection), connection.dialect.name, self._source.name,
            connection.schema_for_object(self._source), [c.name for c in self._columns],
        )  # fmt: skip

    def read_keys(
        self, connection: Connection, since: Position, add_many: Callable[[Sequence[Key]], object]
    ) -> Position | None:
        """Adds the keys that were committed after `since`; None if some of them were lost."""

        def add(rows: Sequence[tuple[Any, ...]]) -> None:
            keys = (self._keymaker.stored(row) for row in rows)
            add_many([key for key in keys if key is not None])

        reached = self.read(connection, since, add)
        connection.rollback()
        if reached is not None:
            self._prune_old(connection, reached)
        return reached

    def read(
        self, connection: Connection, since: Position,
        sink: Callable[[Sequence[tuple[Any, ...]]], object],
    ) -> Position | None:  # fmt: skip
        """Gives `sink` the keys that were committed after `since`, some more than once.

        Answers the position to go on from; None if changes were lost and the guarded table has to
        be scanned again.
        """
        if not self._is_sqlite:
            # The snapshot that is the next position and the rows must be of one moment.
            connection.execution_options(isolation_level="REPEATABLE READ")
        if not self._is_there(connection):
            return None
        now = self._now(connection)
        unseen = sql(self._texts.unseen).bindparams(since=since.at)
        query = select(*self._keymaker.read).select_from(self._changes).where(unseen)
        for batch in connection.execute(
            query, execution_options={"yield_per": _BATCH}
        ).partitions():
            # NULL equals nothing, so no question can be about it.
            sink([tuple(row) for row in batch if None not in row])
        # Afterwards, so that what was pruned during the reading counts as well.
        state = self._state(connection)
        if state is None or state.token != since.token or since.floor < int(state.pruned):
            return None
        schema = self._schema(connection)
        return Position(since.token, now, schema) if schema == since.schema else None

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

    def prune(self, connection: Connection, until: Position) -> None:
        """Deletes what every reader that reached `until` has seen. Commits nothing."""
        claim = sql(f"""
            UPDATE {self._path(_STATES)} SET pruned = :floor
            WHERE name = :name AND token = :token AND pruned < :floor
        """)
        values = {"floor": until.floor, "name": self.name, "token": until.token}
        # Of several processes that prune at once, one wins; the others have nothing left to do.
        if connection.execute(claim, values).rowcount:
            delete = f"DELETE FROM {self._path(self.name)} WHERE {self._texts.old}"
            connection.execute(sql(delete), {"floor": until.floor})


def _name(*subject: str) -> str:
    """The change table's name: readable, and different for every table and columns."""
    name = "_".join(["bloomtide", *subject])
    if name.count("_") == 2 and len(name.encode()) <= _LONGEST_NAME:
        return name  # of one column, and whose name it is cannot be mistaken
    digest = blake2b("\0".join(subject).encode(), digest_size=6).hexdigest()
    short = name.encode()[: _LONGEST_NAME - 13].decode(errors="ignore")
    return f"{short}_{digest}"
