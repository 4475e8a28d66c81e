"""Which columns a guard is for: mapped attributes and columns become columns of one table."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from types import CodeType
from typing import Any, NoReturn

from sqlalchemy import Column, Engine, Table, UniqueConstraint
from sqlalchemy.orm import QueryableAttribute

from bloomtide.errors import ParameterError
from bloomtide.guard.filter.files import FOLLOWS, file_of


def _refuse(got: object, hint: str) -> NoReturn:
    allowed = "a column of a table, or several of one table"
    raise ParameterError(
        f"`column` must be {allowed}, got: {got!r}",
        hint=hint, name="column", got=repr(got), allowed=allowed,
    )  # fmt: skip


def _one(given: Any) -> Column[Any]:
    column = given
    if isinstance(given, QueryableAttribute):
        columns = getattr(given.property, "columns", None)
        if not columns:
            _refuse(given, "a relationship has no value of its own: take its foreign key")
        column = columns[0]
    if not isinstance(column, Column):
        _refuse(given, "for example `Basket.customer_id` or `basket.c.customer_id`")
    if not isinstance(column.table, Table):
        _refuse(given, "a column must belong to a table that can be written to")
    return column


def find_columns(given: Any) -> tuple[tuple[Column[Any], ...], Any]:
    """The columns, and what a query selects: the mapped class, or else the table."""
    several = list(given) if isinstance(given, (tuple, list)) else [given]
    if not several:
        _refuse(given, "name at least one column")
    columns = tuple(_one(each) for each in several)
    if len({column.table for column in columns}) > 1 or len(set(columns)) < len(columns):
        _refuse(given, "the parts of a key are different columns of one table")
    first = several[0]
    entity = first.class_ if isinstance(first, QueryableAttribute) else columns[0].table
    return columns, entity


def is_unique(columns: Sequence[Column[Any]]) -> bool:
    """Whether no two rows may have the same key."""
    wanted = set(columns)
    table = columns[0].table
    if len(columns) == 1 and columns[0].unique:
        return True
    sets = [set(c.columns) for c in table.constraints if isinstance(c, UniqueConstraint)]
    sets.append(set(table.primary_key.columns))
    for index in table.indexes:
        partial = any(
            options.get("where") is not None for options in index.dialect_options.values()
        )
        if index.unique and not partial:
            sets.append(set(index.columns))
    # Unique in a part of the key is unique in all of it.
    return any(each and each <= wanted for each in sets)


def subject_of(
    engine: Engine, columns: Sequence[Column[Any]], follows: Sequence[str], normal: Any = None
) -> dict[str, Any]:
    """Whose keys a guard holds: what must be the same for all who share them."""
    url, table = engine.url, columns[0].table
    place: list[Any] = [url.get_backend_name(), url.host, url.port, url.database]
    if place[0] == "sqlite":
        place[-1] = file_of(None if url.query.get("mode") == "memory" else url.database)
    else:
        # A socket is named here, and options say which schema comes first.
        place += [url.query.get(name) for name in ("host", "port", "service", "options")]
    return {
        "database": place,
        "table": str(table.fullname),
        "columns": [column.name for column in columns],
        "types": [repr(column.type) for column in columns],
        "normal": normal and _name_of(normal),
        FOLLOWS: list(follows),
    }


def _name_of(function: Any) -> str:
    """The name of a function, and what it does if it is written in Python: lambdas share a name."""
    named = function if hasattr(function, "__qualname__") else type(function)
    home = getattr(named, "__module__", None) or getattr(named, "__objclass__", type(named))
    code = getattr(function, "__code__", None)
    body = code and blake2b(repr(_read(code)).encode(), digest_size=8).hexdigest()
    return f"{home}.{named.__qualname__}" + (f" {body}" if body else "")


def _read(code: CodeType) -> list[Any]:
    return [code.co_code.hex(), code.co_names, code.co_freevars, *map(_constant, code.co_consts)]


def _constant(value: Any) -> Any:
    if isinstance(value, CodeType):
        return _read(value)
    # The order of a set is another one in each process.
    return sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)
