"""`SqliteOutbox`: the change table on SQLite."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, TextClause
from sqlalchemy import text as sql

from bloomtide.guard.outbox.table import STATE_TABLE, Outbox, Position
from bloomtide.guard.writes.transaction import is_open


class SqliteOutbox(Outbox):
    """Changes are numbered, and committed in that order since there is one writer at a time."""

    def _install(self, connection: Connection) -> None:
        run = connection.exec_driver_sql
        self._begin(connection)
        if self._is_misplaced(connection):
            self.uninstall(connection)
        anew = not self._has_table(connection, self.name)
        # No types: values are kept exactly as the guarded table has them.
        run(
            f"CREATE TABLE IF NOT EXISTS {self._in_schema(self.name)} "
            f"(id INTEGER PRIMARY KEY AUTOINCREMENT, {self._fields()})"
        )
        run(
            f"CREATE TABLE IF NOT EXISTS {self._in_schema(STATE_TABLE)} "
            "(name TEXT PRIMARY KEY, token TEXT NOT NULL, pruned INTEGER NOT NULL)"
        )
        for suffix, definition in self._triggers():
            name = self._in_schema(f"{self.name}_{suffix}")
            run(f"CREATE TRIGGER IF NOT EXISTS {name} {definition}")
        self._register(connection, anew=anew)

    def uninstall(self, connection: Connection) -> None:
        self._begin(connection)
        super().uninstall(connection)

    def _begin(self, connection: Connection) -> None:
        """All or nothing: the driver commits each CREATE and DROP by itself.

        Triggers whose change table somebody else has dropped meanwhile would stop all writers.
        """
        if is_open(connection.connection.driver_connection) is False:
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    def _triggers(self) -> Iterator[tuple[str, str]]:
        """The end of each one's name, and what comes after the name."""
        # A key may be changed under another name (rowid), so no list of columns after UPDATE.
        moved = " OR ".join(f"OLD.{key} IS NOT NEW.{key}" for key in self._keys())
        # Within a trigger, names are looked up in the schema of the trigger and must be bare.
        record = (
            f"BEGIN INSERT INTO {self._quote.quote(self.name)} ({self._fields()}) "
            f"VALUES ({', '.join(self._keys('NEW.'))}); END"
        )
        table = self._quote.quote(self._source.name)
        for event, condition in (
            ("INSERT", ""),
            ("UPDATE", f"WHEN {moved}"),
        ):
            yield event.lower(), f"AFTER {event} ON {table} {condition} {record}"

    def _has_trigger(self, connection: Connection, suffix: str) -> bool:
        return self._has_table(connection, f"{self.name}_{suffix}")

    def _is_misplaced(self, connection: Connection) -> bool:
        # Whoever renames a table or a column changes the text of the triggers, too.
        catalogue = self._in_schema("sqlite_master")
        query = sql(f"SELECT sql FROM {catalogue} WHERE type = 'trigger' AND name = :name")
        for suffix, definition in self._triggers():
            made = connection.scalar(query, {"name": f"{self.name}_{suffix}"})
            if made is not None and not made.endswith(definition):
                return True
        return False

    def _begin_reading(self, connection: Connection) -> None:
        pass

    def _has_table(self, connection: Connection, name: str) -> bool:
        """Or whatever else has a name."""
        query = f"SELECT 1 FROM {self._in_schema('sqlite_master')} WHERE name = :name"
        return connection.execute(sql(query), {"name": name}).first() is not None

    def _now(self, connection: Connection) -> str:
        # The table may be pruned to nothing; its counter stays, and is rolled back with the rest.
        query = (
            f"SELECT coalesce(max(seq), 0) FROM {self._in_schema('sqlite_sequence')} "
            "WHERE name = :name"
        )
        return str(connection.execute(sql(query), {"name": self.name}).scalar_one())

    def _is_unseen(self, since: Position) -> TextClause:
        return sql("id > :since").bindparams(since=int(since.at))

    def _floor(self, position: Position) -> int:
        return int(position.at)

    def _deletion(self) -> str:
        return f"DELETE FROM {self._in_schema(self.name)} WHERE id <= :floor"

    def _removal(self) -> list[str]:
        triggers = [self._in_schema(f"{self.name}_{suffix}") for suffix in self._suffixes()]
        return [
            *(f"DROP TRIGGER IF EXISTS {trigger}" for trigger in triggers),
            f"DROP TABLE IF EXISTS {self._in_schema(self.name)}",
        ]
