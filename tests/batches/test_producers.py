"""The programs whose columns people hold: Polars, pandas and DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bloomtide import BloomFilter, errors
from tests.batches.agreement import agrees

TEXTS = ["a", None, "longer than twelve bytes", "", "ü", "a", None]
NUMBERS = [5, -3, None, 2**40, 0, 5]


@pytest.mark.parametrize("values", [TEXTS, NUMBERS], ids=["texts", "numbers"])
def test_polars_series(values: list[Any]) -> None:
    series = pl.Series("key", values)
    agrees(lambda: series, values)
    agrees(lambda: series.slice(2, 3), values[2:5])
    agrees(lambda: pl.concat([series, series[1:]], rechunk=False), values + values[1:])
    agrees(lambda: series[:0], [], threads=[1])
    agrees(lambda: pl.DataFrame({"key": series}), values, threads=[1])


@pytest.mark.parametrize(
    "dtype", [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]
)
def test_polars_integers(dtype: Any) -> None:
    series = pl.Series([0, 1, 100, None, 7], dtype=dtype)
    agrees(lambda: series, series.to_list(), threads=[1])


def test_polars_categories_and_bytes() -> None:
    categories = pl.Series(TEXTS, dtype=pl.Categorical)
    agrees(lambda: categories, TEXTS, threads=[1])
    enum = pl.Series(["b", "a", None, "b"], dtype=pl.Enum(["a", "b"]))
    agrees(lambda: enum, ["b", "a", None, "b"], threads=[1])
    blobs = pl.Series([b"a\x00", None, b"\xff" * 40], dtype=pl.Binary)
    agrees(lambda: blobs, blobs.to_list(), threads=[1])


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (TEXTS, "str"),
        (TEXTS, "string"),
        (TEXTS, pd.ArrowDtype(pa.string())),
        (TEXTS, pd.ArrowDtype(pa.large_string())),
        (TEXTS, "category"),
        ([1, -2, 3], "int64"),
        ([1, 2, 3], "uint8"),
        (NUMBERS, "Int64"),
        (NUMBERS, pd.ArrowDtype(pa.int64())),
    ],
    ids=str,
)
def test_pandas_series(values: list[Any], dtype: Any) -> None:
    series = pd.Series(values, dtype=dtype)
    agrees(lambda: series, values)
    agrees(lambda: series.iloc[1:3], values[1:3])
    agrees(lambda: series.iloc[:0], [], threads=[1])


def test_a_pandas_index_label_is_not_a_key() -> None:
    series = pd.Series(["a", "b"], index=["x", "y"])
    agrees(lambda: series, ["a", "b"], threads=[1])
    assert "x" not in _with(series)


def test_a_pandas_table_of_one_column() -> None:
    frame = pd.DataFrame({"key": ["a", "b", "c"]})
    agrees(lambda: frame, ["a", "b", "c"], threads=[1])


@pytest.mark.parametrize("module", ["polars", "pandas"])
def test_a_table_of_two_columns_is_refused(module: str) -> None:
    table: Any = {"polars": pl, "pandas": pd}[module].DataFrame({"a": ["x"], "b": ["y"]})
    made = BloomFilter(100, 0.01)
    with pytest.raises((errors.KeyTypeError, errors.ParameterError), match="column") as caught:
        made.add_many(table)
    assert caught.value.hint
    assert made.stats().fill == 0.0


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("select unnest(['a', null, 'longer than twelve bytes', ''])", ["a", None, TEXTS[2], ""]),
        ("select unnest([1, -2, null])", [1, -2, None]),
        ("select range::varchar from range(5000)", [str(i) for i in range(5000)]),
        ("select unnest(['a', 'b', 'a']::enum('a', 'b')[])", ["a", "b", "a"]),
        ("select 'a'::blob", [b"a"]),
    ],
)
def test_duckdb_relations_and_readers(query: str, values: list[Any]) -> None:
    with duckdb.connect() as database:
        agrees(lambda: database.sql(query), values, threads=[1])
        agrees(lambda: database.sql(query).to_arrow_reader(1000), values, threads=[1])
        agrees(lambda: database.sql(query).to_arrow_table(), values, threads=[1, 2])


def test_a_duckdb_relation_of_two_columns_is_refused() -> None:
    made = BloomFilter(100, 0.01)
    with duckdb.connect() as database, pytest.raises(errors.BloomtideError, match="column"):
        made.add_many(database.sql("select 1 as a, 2 as b"))
    assert made.stats().fill == 0.0


def _with(keys: Any) -> BloomFilter:
    made = BloomFilter(100, 1e-6)
    made.add_many(keys)
    return made
