"""`PostgresOutbox`: the change table on PostgreSQL 13 or newer.

Each change carries the number of its transaction (`xid8`, which never wraps round). A position is
a snapshot as the server writes it, `xmin:xmax:running,...`. Unseen is what
`pg_visible_in_snapshot` denies, and none of that is below the snapshot's xmin, which is what the
index is for.

Triggers fire for each row, so that they also see rows that go straight into a partition, and
ALWAYS, so that they also see what logical replication applies. Their function runs with the rights
of who installed it: writers need none on the change table.
"""

from __future__ import annotations

from sqlalchemy import Connection, TextClause
from sqlalchemy import text as sql

from bloomtide.guard.outbox.table import STATE_TABLE, Outbox, Position

_LOCK_TIMEOUT = "5s"
"""A trigger waits for all writers of its table, and new writers wait behind it."""


class PostgresOutbox(Outbox):
    """Changes carry their transaction's number; a position is a snapshot of the server."""

    def _suffixes(self) -> list[str]:
        return ["insert", "update", *(["wake"] if self._notify else [])]

    def _install(self, connection: Connection) -> None:
        run = connection.exec_driver_sql
        run(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
        # IF NOT EXISTS alone fails when two processes come at once.
        connection.execute(
            sql("SELECT pg_advisory_xact_lock(hashtext(:name))"), {"name": STATE_TABLE}
        )
        if self._is_misplaced(connection):
            self.uninstall(connection)
        changes = self._in_schema(self.name)
        source = self._in_schema(self._source.name)
        anew = not self._has_table(connection, self.name)
        if anew:
            fields = ", ".join(f"{key} AS k{i}" for i, key in enumerate(self._keys()))
            # The columns' own types, whatever the mapping calls them.
            run(f"CREATE TABLE {changes} AS SELECT {fields} FROM {source} WITH NO DATA")
            run(f"ALTER TABLE {changes} ADD xid xid8 NOT NULL DEFAULT pg_current_xact_id()")
            run(f"CREATE INDEX ON {changes} (xid)")
        run(
            f"CREATE TABLE IF NOT EXISTS {self._in_schema(STATE_TABLE)} "
            "(name text PRIMARY KEY, token text NOT NULL, pruned numeric NOT NULL)"
        )
        self._register(connection, anew=anew)
        self._add_function(
            connection, "record",
            f"INSERT INTO {changes} ({self._fields()}) VALUES ({', '.join(self._keys('NEW.'))});",
        )  # fmt: skip
        moved = " OR ".join(f"OLD.{key} IS DISTINCT FROM NEW.{key}" for key in self._keys())
        # No list of columns after UPDATE: a trigger of somebody else may change the key, too.
        condition = f"WHEN ({moved})"
        self._add_trigger(connection, "insert", "INSERT", "ROW", "record")
        self._add_trigger(connection, "update", "UPDATE", "ROW", "record", condition)
        if self._notify:
            channel = self.name.replace("'", "''")
            self._add_function(connection, "wake", f"PERFORM pg_notify('{channel}', '');")
            self._add_trigger(connection, "wake", "INSERT OR UPDATE", "STATEMENT", "wake")

    def _add_function(self, connection: Connection, suffix: str, body: str) -> None:
        # A fixed search path, as any function with its owner's rights must have.
        path = ", ".join(["pg_catalog", self._schema_name(connection), "pg_temp"])
        connection.exec_driver_sql(
            f"CREATE OR REPLACE FUNCTION {self._in_schema(f'{self.name}_{suffix}')}() "
            f"RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = {path} "
            f"AS $bloomtide$ BEGIN {body} RETURN NULL; END $bloomtide$"
        )

    def _add_trigger(
        self, connection: Connection, suffix: str, events: str, each: str, function: str,
        condition: str = "",
    ) -> None:  # fmt: skip
        if self._has_trigger(connection, suffix):
            return  # making it again would stop all writers for a moment
        source = self._in_schema(self._source.name)
        quoted = self._quote.quote(f"{self.name}_{suffix}")
        function = self._in_schema(f"{self.name}_{function}")
        connection.exec_driver_sql(
            f"CREATE TRIGGER {quoted} AFTER {events} ON {source} FOR EACH {each} {condition} "
            f"EXECUTE FUNCTION {function}()"
        )
        connection.exec_driver_sql(f"ALTER TABLE {source} ENABLE ALWAYS TRIGGER {quoted}")

    def _has_trigger(self, connection: Connection, suffix: str) -> bool:
        query = sql(
            "SELECT 1 FROM pg_trigger WHERE tgname = :name AND tgrelid = to_regclass(:table)"
        )
        names = {
            "name": f"{self.name}_{suffix}",
            "table": self._in_schema(self._source.name),
        }
        return connection.execute(query, names).first() is not None

    def _is_misplaced(self, connection: Connection) -> bool:
        # The catalogue knows the columns of the condition by their numbers, the function by name.
        query = """
            SELECT 1 FROM pg_trigger AS g WHERE g.tgparentid = 0
            AND g.tgname IN (:insert, :update, :wake)
            AND g.tgfoid IN (to_regproc(:record), to_regproc(:woken)) AND (
                g.tgrelid IS DISTINCT FROM to_regclass(:table) OR EXISTS (
                    SELECT FROM pg_depend AS d JOIN pg_attribute AS a
                    ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
                    WHERE d.classid = CAST('pg_trigger' AS regclass) AND d.objid = g.oid
                    AND d.refclassid = CAST('pg_class' AS regclass) AND d.refobjsubid > 0
                    AND a.attname <> ALL (:keys)
                )
            )
        """
        given = {
            "insert": f"{self.name}_insert",
            "update": f"{self.name}_update",
            "wake": f"{self.name}_wake",
            "record": self._in_schema(f"{self.name}_record"),
            "woken": self._in_schema(f"{self.name}_wake"),
            "table": self._in_schema(self._source.name),
            "keys": [column.name for column in self._columns],
        }
        return connection.execute(sql(query), given).first() is not None

    def _schema_name(self, connection: Connection) -> str:
        schema = self._source.schema
        if schema is None:
            schema = connection.execute(sql("SELECT current_schema()")).scalar_one()
        return self._quote.quote(schema)

    def _begin_reading(self, connection: Connection) -> None:
        # The snapshot that is the next position and the rows must be of one moment.
        connection.execution_options(isolation_level="REPEATABLE READ")

    def _has_table(self, connection: Connection, name: str) -> bool:
        query = sql("SELECT to_regclass(:table) IS NOT NULL")
        return bool(connection.execute(query, {"table": self._in_schema(name)}).scalar_one())

    def _now(self, connection: Connection) -> str:
        return str(
            connection.execute(sql("SELECT CAST(pg_current_snapshot() AS text)")).scalar_one()
        )

    def _is_unseen(self, since: Position) -> TextClause:
        # The first condition is implied by the second, and has an index.
        return sql(
            "xid >= pg_snapshot_xmin(CAST(:since AS pg_snapshot)) "
            "AND NOT pg_visible_in_snapshot(xid, CAST(:since AS pg_snapshot))"
        ).bindparams(since=since.at)

    def _floor(self, position: Position) -> int:
        return int(position.at.partition(":")[0])

    def _deletion(self) -> str:
        below = "xid < CAST(CAST(:floor AS text) AS xid8)"
        return f"DELETE FROM {self._in_schema(self.name)} WHERE {below}"

    def _removal(self) -> list[str]:
        # The triggers go with their functions.
        functions = [self._in_schema(f"{self.name}_{suffix}") for suffix in ("record", "wake")]
        return [
            *(f"DROP FUNCTION IF EXISTS {function} CASCADE" for function in functions),
            f"DROP TABLE IF EXISTS {self._in_schema(self.name)}",
        ]
