"""The columns as the database has them; a guard whose mapping says otherwise is refused.

Keys are made by what a mapping says of a column (`values.py`), and a mapping may be wrong without
anybody noticing: a column that compares without case is mapped as a plain string, a timestamp with
a zone as one without, a number of two digits as one of any. Such a guard would call keys absent
that the database finds. So each build looks first. What the caller's own `normal` does is his.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection, Table, text, types

from bloomtide.errors import ParameterError
from bloomtide.guard.alike import ROW_SECURITY, equal_pairs, hidden_rows, question
from bloomtide.guard.values import Normal

_FAMILIES: tuple[tuple[type[types.TypeEngine[Any]], str], ...] = (
    (types.Integer, "integer"),
    (types.Boolean, "integer"),
    (types.String, "text"),  # enumerations, too
    (types.Uuid, "uuid"),
    (types.LargeBinary, "bytes"),
    (types.Numeric, "number"),
    (types.Date, "date"),
    (types.DateTime, "timestamp"),
    (types.Time, "time"),
)
_POSTGRES = {
    "smallint": "integer",
    "integer": "integer",
    "bigint": "integer",
    "boolean": "integer",
    "text": "text",
    "character varying": "text",
    "character": "text",
    "bpchar": "text",
    "citext": "text",
    "uuid": "uuid",
    "bytea": "bytes",
    "numeric": "number",
    "date": "date",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "instant",
    "time without time zone": "time",
}
_FORMATTED = re.compile(r"(?:.*\.)?([^(]+?)(?:\((\d+)(?:,(\d+))?\))?( with(?:out)? time zone)?")
_MICRO = 6
"""Digits of a second that Python has."""

_CATALOGUE = text("""
    SELECT a.attname, t.typtype = 'e', CASE WHEN t.typtype = 'd'
        THEN format_type(t.typbasetype, t.typtypmod) ELSE format_type(t.oid, a.atttypmod) END
    FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
    WHERE a.attrelid = to_regclass(:table)
""")


def full_name(connection: Connection, table: Table) -> str:
    """The table's name for SQL, in the schema that this connection means."""
    schema = connection.schema_for_object(table)
    name = _quote(connection, table.name)
    return f"{_quote(connection, schema)}.{name}" if schema else name


def _quote(connection: Connection, name: str) -> str:
    preparer = connection.dialect.identifier_preparer
    quoted = preparer.quote(name)
    # What is doubled for the driver here would be doubled again by `text`.
    return quoted.replace("%%", "%") if preparer._double_percents else quoted


@dataclass(frozen=True, slots=True)
class _Found:
    """A column as it is."""

    declared: str
    """In words of the database."""
    families: frozenset[str]
    """Of the mappings that fit."""
    digits: int | None = None
    scale: int | None = None
    """The numbers in parentheses after the type."""


def check_rows(connection: Connection, table: Table) -> None:
    """Raises if PostgreSQL hides rows from who builds that others may see."""
    if connection.dialect.name != "postgresql":
        return
    name = full_name(connection, table)
    if connection.scalar(text(ROW_SECURITY % ":table"), {"table": name}):
        raise hidden_rows(table.name)


def check_columns(connection: Connection, columns: Sequence[Column[Any]], normal: Normal) -> None:
    """Raises if a column is not what its mapping says. One that is not there is not looked at."""
    readers = {"sqlite": _read_sqlite, "postgresql": _read_postgres}
    reader = readers.get(connection.dialect.name)
    if normal.is_own or reader is None:
        return
    there = reader(connection, columns[0].table)
    for place, (column, kind) in enumerate(zip(columns, normal.kinds, strict=True)):
        found = there.get(column.name)
        if found is None:
            continue
        family = _family(kind)
        if family not in found.families or _is_coarser(found, kind, family):
            raise _refusal(
                column, f"the database has `{found.declared}`, and the mapping `{kind!r}`"
            )
        if family == "text" and not isinstance(kind, types.Enum):
            _check_comparison(connection, column, normal, place)
            if found.digits is not None:
                normal.limit(place, found.digits)


def _family(kind: types.TypeEngine[Any]) -> str:
    family = next(name for base, name in _FAMILIES if isinstance(kind, base))
    return "instant" if family == "timestamp" and getattr(kind, "timezone", False) else family


def _is_coarser(found: _Found, kind: types.TypeEngine[Any], family: str) -> bool:
    """Whether the database rounds what the mapping leaves as it is."""
    if found.digits is None:
        return False
    if family in ("timestamp", "instant", "time"):
        return found.digits < _MICRO
    scale = getattr(kind, "scale", None)
    return family == "number" and (scale is None or scale > (found.scale or 0))


def _read_postgres(connection: Connection, table: Table) -> Mapping[str, _Found]:
    rows = connection.execute(_CATALOGUE, {"table": full_name(connection, table)})
    found = {}
    for name, is_enumeration, declared in rows:
        match = _FORMATTED.fullmatch(declared)
        plain, digits, scale, zone = match.groups() if match else ("", None, None, None)
        family = "text" if is_enumeration else _POSTGRES.get(plain + (zone or ""), "")
        found[name] = _Found(
            declared,
            frozenset({family, "uuid"} if family == "text" else {family}),
            None if digits is None else int(digits),
            None if scale is None else int(scale),
        )
    return found


def _read_sqlite(connection: Connection, table: Table) -> Mapping[str, _Found]:
    """By the rules of type affinity: in a numeric column a string becomes a number, if it can."""
    schema = connection.schema_for_object(table)
    within = f"{_quote(connection, schema)}." if schema else ""
    pragma = f"PRAGMA {within}table_xinfo({_quote(connection, table.name)})"
    every = frozenset(family for _, family in _FAMILIES) | {"instant"}
    found = {}
    for _, name, declared, *_ in connection.exec_driver_sql(pragma):
        upper = declared.upper()
        keeps_text = "INT" not in upper and (
            not upper or any(part in upper for part in ("CHAR", "CLOB", "TEXT", "BLOB"))
        )
        found[name] = _Found(declared, every if keeps_text else every - {"text", "uuid"})
    return found


def _check_comparison(
    connection: Connection, column: Column[Any], normal: Normal, place: int
) -> None:
    name = _quote(connection, column.name)
    asked = question(full_name(connection, column.table), name).replace(":", r"\:")
    for one, other in equal_pairs(connection.execute(text(asked)).one()):
        if not normal.is_one_key(place, one, other):
            raise _refusal(column, f"to the database {one!r} and {other!r} are equal")


def _refusal(column: Column[Any], why: str) -> ParameterError:
    return ParameterError(
        f"`{column}` is not what its mapping says: {why}",
        hint="map it with the type and the collation that it has, or give `normal`",
        name="column", got=str(column), allowed="a column that is mapped as it is",
    )  # fmt: skip
