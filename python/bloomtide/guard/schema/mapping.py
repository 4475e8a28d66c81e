"""Compares a table as it is (`facts.py`) with its mapping in SQLAlchemy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, Connection, Table, text, types

from bloomtide.errors import ParameterError
from bloomtide.guard.key_parts import fold, text_key, trimmed_key
from bloomtide.guard.schema.facts import (
    ColumnFacts,
    Run,
    TableFacts,
    equal_strings,
    full_name,
    quoted,
)
from bloomtide.guard.values import KeyMaker

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
_MICRO = 6
"""Digits of a second that Python has."""


def runner(connection: Connection) -> Run:
    """Runs queries on a connection of SQLAlchemy."""
    return lambda sql: connection.execute(text(sql.replace(":", r"\:"))).fetchall()


def check_columns(
    run: Run, facts: TableFacts, table: Table, columns: Sequence[Column[Any]], keys: KeyMaker,
    schema: str | None,
) -> None:  # fmt: skip
    """Raises if a column is not what its mapping says. One that is not there is not looked at."""
    for place, (column, kind) in enumerate(zip(columns, keys.kinds, strict=True)):
        found = facts.columns.get(column.name)
        if found is None:
            continue
        family = _family(kind)
        if family not in found.families or _is_coarser(found, kind, family):
            why = f"the database has `{found.declared}`, and the mapping `{kind!r}`"
            raise _not_as_mapped(str(column), why)
        if keys.parts[place] in (text_key, trimmed_key, fold) and not found.is_native_enum:
            name = full_name(table.name, schema)
            for one, other in equal_strings(run, name, quoted(column.name)):
                if not keys.is_one_key(place, one, other):
                    why = f"to the database {one!r} and {other!r} are equal"
                    raise _not_as_mapped(str(column), why)
        keys.limit(place, found.digits if family == "text" else None)


def _family(kind: types.TypeEngine[Any]) -> str:
    family = next((name for base, name in _FAMILIES if isinstance(kind, base)), "")
    return "instant" if family == "timestamp" and getattr(kind, "timezone", False) else family


def _is_coarser(found: ColumnFacts, kind: types.TypeEngine[Any], family: str) -> bool:
    """Whether the database rounds what the mapping leaves as it is."""
    if found.digits is None:
        return False
    if family in ("timestamp", "instant", "time"):
        return found.digits < _MICRO
    scale = getattr(kind, "scale", None)
    return family == "number" and (scale is None or scale > (found.scale or 0))


def _not_as_mapped(column: str, why: str) -> ParameterError:
    return ParameterError(
        f"`{column}` is not what its mapping says: {why}",
        hint="map it with the type and the collation that it has, or give `normal`",
        name="column", got=column, allowed="a column that is mapped as it is",
    )  # fmt: skip
