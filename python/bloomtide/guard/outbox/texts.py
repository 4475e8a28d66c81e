"""`Texts`: what an `Outbox` says to each database, with names in braces.

On PostgreSQL 13 or newer each change carries the number of its transaction (`xid8`, which never
wraps round), and a position is a snapshot as the server writes it, `xmin:xmax:running,...`. Unseen
is what `pg_visible_in_snapshot` denies, and none of that is below the snapshot's xmin, which is
what the index is for. Triggers fire for each row, so that they also see rows that go straight into
a partition, and ALWAYS, so that they also see what logical replication applies. A table that
inherits from the guarded one gets triggers of its own, since its rows fire no others, not even when
the statement names the guarded table. Their function runs with the rights of who installed it, on a
fixed search path: writers need none on the change table.

On SQLite changes are numbered, and committed in that order since there is one writer at a time. A
key may be changed under another name (rowid) or by another trigger, so there is no list of columns
after UPDATE.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Texts:
    """The statements of one database."""

    begin: tuple[str, ...]
    """All or nothing: nobody else installs meanwhile."""
    create: tuple[str, ...]
    tables: str
    """Schema and name of each table that needs triggers of its own."""
    watch: tuple[str, ...]
    """For each of these tables."""
    wake: tuple[str, ...]
    """With `notify`, also."""
    drop: tuple[str, ...]
    exists: str
    triggers: str
    """What is known of the triggers: their names first; another answer means that one was dropped,
    disabled, or went with a table or a column that has another name by now."""
    now: str
    unseen: str
    old: str


_FUNCTION = (
    "CREATE OR REPLACE FUNCTION {%s}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
    "SET search_path = pg_catalog, {schema}, pg_temp "
    "AS $bloomtide$ BEGIN %s RETURN NULL; END $bloomtide$"
)
_TRIGGER = "CREATE TRIGGER {%s} AFTER %s ON {table} FOR EACH %s EXECUTE FUNCTION {%s}()"
_ALWAYS = "ALTER TABLE {table} ENABLE ALWAYS TRIGGER {%s}"
POSTGRESQL = Texts(
    # A trigger waits for all writers of its table, and new writers wait behind it. IF NOT EXISTS
    # alone fails when two processes come at once.
    begin=(
        "SET LOCAL lock_timeout = '5s'",
        "SELECT pg_advisory_xact_lock(hashtext('bloomtide_outboxes'))",
    ),
    create=(
        # With all that inherit from it, and as making a trigger locks it: no other joins meanwhile.
        "LOCK TABLE {source} IN SHARE ROW EXCLUSIVE MODE",
        # The columns' own types, whatever the mapping calls them.
        "CREATE TABLE {changes} AS SELECT {keys} FROM {source} WITH NO DATA",
        "ALTER TABLE {changes} ADD xid xid8 NOT NULL DEFAULT pg_current_xact_id()",
        "CREATE INDEX ON {changes} (xid)",
        _FUNCTION % ("record", "INSERT INTO {changes} ({fields}) VALUES ({new});"),
    ),
    # Partitions have the triggers of their table; a temporary table's rows are nobody else's.
    tables="""
        WITH RECURSIVE below AS (
            SELECT CAST(to_regclass({source_path}) AS oid) AS rel
            UNION SELECT i.inhrelid FROM below JOIN pg_inherits AS i ON i.inhparent = rel
            JOIN pg_class AS c ON c.oid = i.inhrelid
            WHERE NOT c.relispartition AND c.relpersistence <> 't'
        )
        SELECT n.nspname, c.relname FROM below JOIN pg_class AS c ON c.oid = rel
        JOIN pg_namespace AS n ON n.oid = c.relnamespace ORDER BY 1, 2
    """,
    watch=(
        _TRIGGER % ("insert", "INSERT", "ROW", "record"),
        _TRIGGER % ("update", "UPDATE", "ROW WHEN ({moved})", "record"),
        _ALWAYS % "insert",
        _ALWAYS % "update",
    ),
    wake=(
        _FUNCTION % ("wake", "PERFORM pg_notify({name}, '');"),
        _TRIGGER % ("bell", "INSERT OR UPDATE", "STATEMENT", "wake"),
        _ALWAYS % "bell",
    ),
    drop=(  # the triggers go with their functions
        "DROP FUNCTION IF EXISTS {record} CASCADE",
        "DROP FUNCTION IF EXISTS {wake} CASCADE",
        "DROP TABLE IF EXISTS {changes}",
    ),
    exists="SELECT 1 WHERE to_regclass({path}) IS NOT NULL",
    triggers="""
        SELECT g.tgname, n.nspname, c.relname, g.oid, CAST(g.tgenabled AS text),
        g.tgrelid = to_regclass({source_path}), a.attname, a.attnum
        FROM pg_trigger AS g JOIN pg_class AS c ON c.oid = g.tgrelid
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        LEFT JOIN pg_attribute AS a ON a.attrelid = g.tgrelid AND a.attname IN ({columns})
        WHERE g.tgparentid = 0
        AND g.tgfoid IN (to_regproc({record_path}), to_regproc({wake_path})) ORDER BY 1, 4, 8
    """,
    now="SELECT CAST(pg_current_snapshot() AS text)",
    # The first condition is implied by the second, and has an index.
    unseen="xid >= pg_snapshot_xmin(CAST(:since AS pg_snapshot)) "
    "AND NOT pg_visible_in_snapshot(xid, CAST(:since AS pg_snapshot))",
    old="xid < CAST(CAST(:floor AS text) AS xid8)",
)

_RECORD = (
    # Within a trigger, names are looked up in the schema of the trigger and must be bare.
    "CREATE TRIGGER {%s} AFTER %s ON {table} %s "
    "BEGIN INSERT INTO {bare_changes} ({fields}) VALUES ({new}); END"
)
SQLITE = Texts(
    begin=("BEGIN IMMEDIATE",),  # the driver commits each CREATE and DROP by itself
    create=(
        # No types: values are kept exactly as the guarded table has them.
        "CREATE TABLE {changes} (id INTEGER PRIMARY KEY AUTOINCREMENT, {fields})",
    ),
    tables="SELECT NULL, {source_name}",
    watch=(
        _RECORD % ("insert", "INSERT", ""),
        _RECORD % ("update", "UPDATE", "WHEN {moved}"),
    ),
    wake=(),
    drop=(
        "DROP TRIGGER IF EXISTS {insert}",
        "DROP TRIGGER IF EXISTS {update}",
        "DROP TABLE IF EXISTS {changes}",
    ),
    exists="SELECT 1 FROM {catalogue} WHERE name = {name}",
    triggers="SELECT name, sql FROM {catalogue} WHERE type = 'trigger' AND name IN "
    "({insert_name}, {update_name}) ORDER BY 1",
    # The table may be pruned to nothing; its counter stays, and is rolled back with the rest.
    now="SELECT coalesce(max(seq), 0) FROM {sequences} WHERE name = {name}",
    unseen="id > CAST(:since AS integer)",
    old="id <= :floor",
)
TEXTS = {"postgresql": POSTGRESQL, "sqlite": SQLITE}
