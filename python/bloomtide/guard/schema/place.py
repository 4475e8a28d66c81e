"""Which table a name means, whatever a session has done to itself.

A temporary table or another search path makes a name mean another table. So each build
looks first, by a connection that nobody has used, and from then on names the schema.
"""

from __future__ import annotations

from bloomtide.guard.schema.facts import Run, literal, quoted

_ON_PATH = """
    SELECT n.nspname FROM unnest(current_schemas(true)) WITH ORDINALITY AS path (name, place)
    JOIN pg_namespace AS n ON n.nspname = path.name JOIN pg_class AS c ON c.relnamespace = n.oid
    WHERE c.relname = {name} AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
    AND n.oid <> pg_my_temp_schema() ORDER BY path.place LIMIT 1
"""

_FOUND = """
    SELECT n.nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = to_regclass({name})
"""


def seen_schema(run: Run, dialect: str, table: str) -> str | None:
    """The schema in which this session finds it, which may be the one of its temporary tables."""
    if dialect == "postgresql":
        found = run(_FOUND.format(name=literal(quoted(table))))
        return str(found[0][0]) if found else None
    same = f"type IN ('table', 'view') AND lower(name) = lower({literal(table)})"
    if run(f"SELECT 1 FROM sqlite_temp_master WHERE {same}"):
        return "temp"
    return find_schema(run, dialect, table)


def find_schema(run: Run, dialect: str, table: str) -> str | None:
    """The schema of a table that a program names without one; None if there is none."""
    if dialect == "postgresql":
        found = run(_ON_PATH.format(name=literal(table)))
        return str(found[0][0]) if found else None
    if dialect == "sqlite":
        for _, name, _ in run("PRAGMA database_list"):
            same = f"type IN ('table', 'view') AND lower(name) = lower({literal(table)})"
            in_it = f"SELECT 1 FROM {quoted(name)}.sqlite_master WHERE {same}"
            if name != "temp" and run(in_it):
                return str(name)
    return None
