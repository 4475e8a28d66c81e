"""Columns of keys: what they may be, refused on the driver before any task starts."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, types
from pyspark.sql import functions as sql

from bloomtide.distributed import Recipe
from bloomtide.errors import ParameterError, require

WHOLE = (types.LongType, types.IntegerType, types.ShortType, types.ByteType)
KEYS = (types.StringType, types.BinaryType, *WHOLE)


def rows(
    df: DataFrame,
    column: str,
    recipe: Recipe,
    *,
    count: str | None = None,
    at: str | None = None,
    more: dict[str, Any] | None = None,
) -> DataFrame:
    """The columns that a build takes, under the names that it knows; `more` are others."""
    if recipe.kind == "url":
        _require_type(df, "column", column, (types.StringType, types.BinaryType), "text or binary")
    words = f"a structure of kind `{recipe.kind}` does not"
    require("count", count, "left out", count is None or recipe.counts, hint=f"{words} take counts")
    require("at", at, "left out", at is None or recipe.fades, hint=f"{words} fade")
    return keys(df, column, count=count, at=at, more=more)


def keys(
    df: DataFrame,
    column: str,
    *,
    count: str | None = None,
    at: str | None = None,
    more: dict[str, Any] | None = None,
) -> DataFrame:
    """Keys with their counts and instants, as `key`, `count` and `at`."""
    _require_type(df, "column", column, KEYS, "text, binary or whole numbers")
    chosen = [sql.col(column).alias("key")]
    if count is not None:
        _require_type(df, "count", count, WHOLE, "whole numbers")
        chosen.append(sql.col(count).cast("long").alias("count"))
    if at is not None:
        instants = (types.TimestampType, types.DoubleType, *WHOLE)
        _require_type(df, "at", at, instants, "instants: a timestamp, or seconds since 1970")
        chosen.append(sql.col(at).alias("at"))
    return df.select(*chosen, *(col.alias(name) for name, col in (more or {}).items()))


def _require_type(
    df: DataFrame, name: str, column: str, allowed: tuple[type[types.DataType], ...], words: str
) -> None:
    """The column is there, and of a type that can be used."""
    found = dict(zip(df.columns, df.schema.fields, strict=True)).get(column)
    if found is None:
        raise ParameterError(
            f"`{name}` must be a column of the DataFrame, got: {column}",
            hint=f"it has {', '.join(df.columns)}", name=name, got=column,
            allowed=", ".join(df.columns),
        )  # fmt: skip
    if not isinstance(found.dataType, allowed):
        kind = found.dataType.simpleString()
        raise ParameterError(
            f"`{name}` must hold {words}, got: `{column}` of type {kind}",
            hint=f"cast it, such as {column}.cast('string')", name=name, got=kind, allowed=words,
        )  # fmt: skip
