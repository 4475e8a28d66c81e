"""The catalogue of SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bloomtide.guard.schema.bodies import may_write
from bloomtide.guard.schema.facts import (
    OWN_NUMBER,
    OWN_PREFIX,
    ColumnFacts,
    Run,
    TableFacts,
    fingerprint_of,
    literal,
    quoted,
)
from bloomtide.guard.writes.sql import ROW_NUMBERS

_EVERY = frozenset(
    ["integer", "text", "uuid", "bytes", "number", "date", "timestamp", "instant", "time"]
)
_CHANGES = ("CASCADE", "SET DEFAULT")


def read(run: Run, table: str, schema: str | None, columns: Sequence[str]) -> TableFacts:
    """Reads the table and all triggers."""
    facts = TableFacts(schema=None)
    within = f"{quoted(schema)}." if schema else ""
    rows = run(f"PRAGMA {within}table_xinfo({quoted(table)})")
    primary = [row for row in rows if row[5]]
    wanted: dict[str, str] = {str(name).lower(): str(name) for name in columns}
    for row in rows:
        name, declared, default, is_primary, hidden = str(row[1]), row[2], row[4], row[5], row[6]
        makes_numbers = is_primary and len(primary) == 1 and declared.upper() == "INTEGER"
        filled = "" if default is None or default.upper() == "NULL" else f"its default {default}"
        facts.columns[wanted.get(name.lower(), name)] = ColumnFacts(
            declared,
            _families(declared.upper()),
            # Not every INTEGER PRIMARY KEY is a number of the row, so a default counts first.
            filled_by=filled or (OWN_NUMBER if makes_numbers else ""),
            generated=hidden in (2, 3),
        )
    links = _cascades(run, within, table, {name.lower() for name in columns}, facts)
    names = {table.lower(), *(name for name, _ in facts.parents)}
    written = {name.lower() for name in columns} | {column for _, column in facts.parents}
    triggers = run(
        f"SELECT name, tbl_name, sql FROM {within}sqlite_master WHERE type = 'trigger' "
        "UNION ALL SELECT name, tbl_name, sql FROM sqlite_temp_master WHERE type = 'trigger' "
        "ORDER BY 1, 2"
    )
    for name, _, sql in triggers:
        body = sql[sql.lower().find("begin") :]
        if not name.startswith(OWN_PREFIX) and may_write(
            body, exact=False, tables=names, columns=written | ROW_NUMBERS,
            resetting=facts.resetting,
        ):  # fmt: skip
            facts.writers.append(f"the trigger `{name}`")
    facts.instead = _instead(run, within, table)
    version = run(f"PRAGMA {within}schema_version")[0][0]
    foreign = [each for each in triggers if not each[0].startswith(OWN_PREFIX)]
    facts.fingerprint = fingerprint_of(rows, links, foreign)
    facts.own_triggers = fingerprint_of(version)  # they may have been gone for a moment
    return facts


def _instead(run: Run, within: str, table: str) -> str:
    """What it is if it is no table of its own; SQLite before 3.37 does not tell all."""
    kinds = {row[2] for row in run(f"PRAGMA {within}table_list({quoted(table)})")}
    kinds |= {
        "virtual" if (row[1] or "").upper().startswith("CREATE VIRTUAL") else row[0]
        for row in run(
            f"SELECT type, sql FROM {within}sqlite_master "
            f"WHERE lower(name) = {literal(table.lower())} AND type IN ('table', 'view')"
        )
    }
    other = sorted(kinds - {"table"})
    return "" if not other else "a view" if "view" in other else f"a {other[0]} table"


def _families(declared: str) -> frozenset[str]:
    """By the rules of type affinity: in a numeric column a string becomes a number, if it can."""
    if "INT" in declared:
        return _EVERY - {"text", "uuid"}
    if any(part in declared for part in ("CHAR", "CLOB", "TEXT")):
        return _EVERY - {"number"}  # which would be rounded to 15 digits
    if not declared or "BLOB" in declared:
        return _EVERY
    if any(part in declared for part in ("REAL", "FLOA", "DOUB")):
        return _EVERY - {"text", "uuid", "integer"}  # large integers would be rounded
    return _EVERY - {"text", "uuid"}


def _cascades(
    run: Run, within: str, table: str, columns: set[str], facts: TableFacts
) -> list[tuple[Any, ...]]:
    """Adds the tables from which keys come by a foreign key."""
    found = []
    to_do, seen = [(table.lower(), column) for column in sorted(columns)], set()
    while to_do:
        child, column = to_do.pop()
        if (child, column) in seen:
            continue
        seen.add((child, column))
        for row in run(f"PRAGMA {within}foreign_key_list({quoted(child)})"):
            _, place, parent, source, referred, on_update, on_delete, *_ = row
            if source.lower() != column:
                continue
            found.append(tuple(row))
            parent = parent.lower()
            if referred is None:
                keys = run(f"PRAGMA {within}table_info({quoted(parent)})")
                referred = next((key[1] for key in keys if key[5] == place + 1), "rowid")
            if on_delete.upper() == "SET DEFAULT":
                facts.resetting.add(parent)
            if on_update.upper() in _CHANGES:
                facts.parents.add((parent, referred.lower()))
                to_do.append((parent, referred.lower()))
    return found
