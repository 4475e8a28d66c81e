"""Batches with counts: every array, column and table of them equals one add after the other."""

from __future__ import annotations

from collections import Counter, UserDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bloomtide import (
    BloomFilter,
    CountingBloomFilter,
    DynamicCountFilter,
    HotList,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    ScalableBloomFilter,
    SpectralBloomFilter,
    TimeDecayingBloomFilter,
    UrlFilter,
    errors,
)

MAKERS: list[Callable[[], Any]] = [
    lambda: CountingBloomFilter(64, 0.05, counter_bits=32),
    lambda: CountingBloomFilter(64, 0.05, counter_bits=32, layout="classic"),
    lambda: CountingBloomFilter(64, 0.05, counter_bits=32, policy="conservative"),
    lambda: SpectralBloomFilter(64, 0.05, total=64),
    lambda: SpectralBloomFilter(64, 0.05, layout="classic"),
    lambda: DynamicCountFilter(64, 0.05, counter_bits=1, layout="classic"),
    lambda: PartitionedSpectralBloomFilter(64, 0.05, partitions=3, policy="conservative"),
    lambda: PartitionedDynamicCountFilter(64, 0.05, counter_bits=2, partitions=2),
]
KEYS = ["a", "b", "", "ü", "longer than twelve bytes", "a", "x" * 300] * 5
COUNTS = [1 + 17 * row % 101 for row in range(len(KEYS))]
KINDS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def agrees(batch: Callable[[], tuple[Any, ...]], keys: list[Any], counts: list[int]) -> None:
    """`batch()` makes the arguments afresh; added, counted and removed it is as row by row."""
    for make in MAKERS:
        single = make()
        nulls = "skip" if None in keys else "refuse"
        rows = list(zip(keys, counts, strict=True))
        added = [key is not None and single.add(key, count) for key, count in rows]
        for threads in (1, 2):
            many = make()
            answers = many.add_many(*batch(), nulls=nulls, threads=threads)
            assert answers.dtype == np.bool_
            assert answers.tolist() == added
            assert many.to_bytes() == single.to_bytes()
            found = many.count_many(keys, nulls=nulls, threads=threads)
            assert found.dtype == (np.uint32 if "Counting" in type(many).__name__ else np.uint64)
            assert found.tolist() == [0 if key is None else single.count(key) for key in keys]
            if many.policy != "conservative":
                assert many.remove_many(*batch(), nulls=nulls) is None
                assert not many.cells().any()


@pytest.mark.parametrize("kind", KINDS)
def test_numpy_counts_of_every_width(kind: Any) -> None:
    counts = np.array(COUNTS, dtype=kind)
    agrees(lambda: (KEYS, counts), KEYS, COUNTS)
    agrees(lambda: (KEYS, np.repeat(counts, 2)[::2]), KEYS, COUNTS)
    agrees(lambda: (KEYS, counts.astype(counts.dtype.newbyteorder(">"))), KEYS, COUNTS)


@pytest.mark.parametrize("kind", KINDS)
def test_numpy_keys_of_every_width_beside_numpy_counts(kind: Any) -> None:
    keys = np.arange(100).astype(kind)
    counts = np.arange(1, 101, dtype=np.uint32)
    agrees(lambda: (keys, counts), keys.tolist(), counts.tolist())


def test_a_batch_that_threads_share() -> None:
    keys = np.random.default_rng(5).integers(0, 3_000, 40_000)
    counts = np.random.default_rng(6).integers(1, 1_000, 40_000)
    agrees(lambda: (keys, counts), keys.tolist(), counts.tolist())


@pytest.mark.parametrize(
    "form", [list, tuple, iter, np.array, pa.array, pl.Series, pd.Series, pd.array, pd.Index]
)
def test_the_container_of_the_counts_does_not_matter(form: Any) -> None:
    agrees(lambda: (KEYS, form(COUNTS)), KEYS, COUNTS)


@pytest.mark.parametrize("form", [list, tuple, pa.array, pl.Series, pd.Series])
def test_the_container_of_the_keys_does_not_matter(form: Any) -> None:
    agrees(lambda: (form(KEYS), COUNTS), KEYS, COUNTS)
    agrees(lambda: (form(KEYS), np.array(COUNTS)), KEYS, COUNTS)


def test_iterators_and_generators() -> None:
    def stream() -> Iterator[str]:
        yield from KEYS

    agrees(lambda: (iter(KEYS), iter(COUNTS)), KEYS, COUNTS)
    agrees(lambda: (stream(), COUNTS), KEYS, COUNTS)
    agrees(lambda: (stream(), (count for count in COUNTS)), KEYS, COUNTS)
    agrees(lambda: (dict(zip(range(35), KEYS, strict=True)).values(), COUNTS), KEYS, COUNTS)
    long = [f"key {i % 900}" for i in range(5_000)]  # more than one piece of an iterator
    counts = [1 + i % 7 for i in range(5_000)]
    agrees(lambda: (iter(long), counts), long, counts)


NULLS = [None if row % 4 == 1 else key for row, key in enumerate(KEYS)]


@pytest.mark.parametrize("form", [list, iter, pa.array, pl.Series, pd.Series])
def test_weights_stay_with_their_rows_when_nulls_are_skipped(form: Any) -> None:
    agrees(lambda: (form(NULLS), COUNTS), NULLS, COUNTS)
    agrees(lambda: (form(NULLS), np.array(COUNTS)), NULLS, COUNTS)


def test_dictionary_encoded_keys() -> None:
    encoded = pa.array(NULLS).dictionary_encode()
    agrees(lambda: (encoded, COUNTS), NULLS, COUNTS)
    agrees(lambda: (pl.Series(NULLS, dtype=pl.Categorical), COUNTS), NULLS, COUNTS)
    agrees(lambda: (pd.Series(NULLS, dtype="category"), COUNTS), NULLS, COUNTS)
    table = pa.table({"key": encoded, "count": COUNTS})
    agrees(lambda: (table,), NULLS, COUNTS)


@pytest.mark.parametrize("kind", KINDS)
def test_arrow_tables_of_two_columns(kind: Any) -> None:
    counts = np.array(COUNTS, dtype=kind)
    columns = {"url": KEYS, "hits": counts}
    agrees(lambda: (pa.table(columns),), KEYS, COUNTS)
    agrees(lambda: (pa.record_batch(columns),), KEYS, COUNTS)
    agrees(lambda: (pl.DataFrame(columns),), KEYS, COUNTS)
    agrees(lambda: (pd.DataFrame(columns),), KEYS, COUNTS)


def test_a_table_in_chunks_and_slices() -> None:
    table = pa.table({"key": NULLS, "count": COUNTS})
    pieces = pa.concat_tables([table.slice(0, 3), table.slice(3, 0), table.slice(3)])
    assert pieces["key"].num_chunks > 1
    agrees(lambda: (pieces,), NULLS, COUNTS)
    agrees(lambda: (table.slice(5, 9),), NULLS[5:14], COUNTS[5:14])
    agrees(lambda: (pieces["key"], pieces["count"]), NULLS, COUNTS)


def test_the_names_of_the_columns_do_not_matter() -> None:
    agrees(lambda: (pa.table({"count": KEYS, "key": COUNTS}),), KEYS, COUNTS)
    numbers = list(range(35))
    agrees(lambda: (pa.table({"a": numbers, "b": COUNTS}),), numbers, COUNTS)


@pytest.mark.parametrize("module", ["pyarrow", "polars", "pandas"])
def test_a_table_of_three_columns_is_refused(module: str) -> None:
    columns = {"a": ["x"], "b": [1], "c": [2]}
    make: Any = {"pyarrow": pa.table, "polars": pl.DataFrame, "pandas": pd.DataFrame}[module]
    for made in (make() for make in MAKERS):
        before = made.to_bytes()
        with pytest.raises((errors.KeyTypeError, errors.ParameterError), match="column"):
            made.add_many(make(columns))
        assert made.to_bytes() == before


@pytest.mark.parametrize("module", ["pyarrow", "polars", "pandas"])
def test_a_table_is_no_question(module: str) -> None:
    """Only `add_many` and `remove_many` have something to do with counts."""
    make: Any = {"pyarrow": pa.table, "polars": pl.DataFrame, "pandas": pd.DataFrame}[module]
    table = make({"key": ["x"], "count": [1]})
    for made in (make() for make in MAKERS):
        for ask in (made.count_many, made.contains_many):
            with pytest.raises((errors.KeyTypeError, errors.ParameterError), match="column"):
                ask(table)


BAD_COLUMNS: list[Any] = [
    pa.array([1, None], pa.int64()),
    pa.chunked_array([[1], [None]], pa.int64()),
    pa.array([1.0, 2.0]),
    pa.array(["1", "2"]),
    pl.Series([1, None], dtype=pl.Int64),
    pl.Series([1.0, 2.0]),
    pd.Series([1, None], dtype="Int64"),
    pd.Series([1.0, None]),
    pa.array([1, 0]),
    pl.Series([1, -1]),
    pd.Series([0, 1]),
]


@pytest.mark.parametrize("counts", BAD_COLUMNS, ids=lambda counts: f"{type(counts).__name__}")
def test_a_column_that_has_no_counts_is_refused(counts: Any) -> None:
    for made in (make() for make in MAKERS):
        made.add_many(["a", "b"], [5, 5])
        before = made.to_bytes()
        for verb in (made.add_many, made.remove_many):
            with pytest.raises(errors.ParameterError) as caught:
                verb(["a", "b"], counts)
            assert caught.value.name == "counts"
        assert made.to_bytes() == before


def test_a_mapping_of_keys_adds_its_counts() -> None:
    words = Counter({"a": 3, "b": 1, "": 40})
    agrees(lambda: (words,), list(words), list(words.values()))
    agrees(lambda: (UserDict(words),), list(words), list(words.values()))
    with pytest.raises(errors.ParameterError, match="whole numbers"):
        DynamicCountFilter(64, 0.05).add_many({"a": 1.5})


@pytest.mark.parametrize("mapping", [{"a": 2}, Counter("aab"), UserDict(a=2)])
def test_a_filter_without_counts_refuses_a_mapping(mapping: Any) -> None:
    seen = BloomFilter(64, 0.05)
    with pytest.raises(errors.ParameterError, match="keys alone") as caught:
        seen.add_many(mapping)
    assert caught.value.name == "keys"
    assert seen == BloomFilter(64, 0.05)


def test_counts_in_an_array_of_objects_and_changes_from_an_iterator_are_read() -> None:
    agrees(lambda: (["a", "b"], np.array([3, 2**31], object)), ["a", "b"], [3, 2**31])
    for wrong in (1.5, None, "2"):
        with pytest.raises(errors.ParameterError, match="row 1"):
            DynamicCountFilter(64, 0.05).add_many(["a", "b"], np.array([3, wrong], object))
    counted = DynamicCountFilter(64, 0.05)
    assert counted.change_many(["a", "b", "a"], iter([3, 1, -1])).tolist() == [3, 1, 2]


def test_pairs_of_key_and_count_are_refused() -> None:
    for make in MAKERS:
        counted = make()
        with pytest.raises(errors.KeyTypeError, match=r"keys\[0\].*tuple") as caught:
            counted.add_many([("a", 3)])
        assert caught.value.index == 0
        assert "counts=" in caught.value.hint
        assert "mapping" in caught.value.hint
        assert not counted.cells().any()


def test_every_structure_adds_the_counts_of_a_mapping_or_refuses_it() -> None:
    now = 1_700_000_000
    fading = TimeDecayingBloomFilter(64, half_life="1h", clock=lambda: now)
    hot = HotList(4, clock=lambda: now)
    for made in (*(make() for make in MAKERS), fading, hot):
        made.add_many({"a": 3, "b": 1})
        assert made.count("a") == 3
        with pytest.raises(errors.KeyTypeError, match=r"keys\[0\]"):
            made.add_many([("a", 3)])
    for seen in (BloomFilter(64), ScalableBloomFilter(64), UrlFilter(64)):
        with pytest.raises(errors.ParameterError, match="keys alone"):
            seen.add_many({"http://a/": 3})
        assert "http://a/" not in seen


def test_rows_without_a_key_count_as_done_when_a_batch_ends() -> None:
    for counted in (CountingBloomFilter(64), DynamicCountFilter(64), SpectralBloomFilter(64)):
        counted.add("a", 5)
        with pytest.raises(errors.AbsentKeyError) as absent:
            counted.remove_many([None, "a", "zz"], nulls="skip")
        with pytest.raises(errors.KeyTypeError) as wrong:
            counted.remove_many([None, "a", 3.5], nulls="skip")
        assert absent.value.added == wrong.value.added == 2
        assert counted.count("a") == 3


def test_counts_that_are_no_column_are_named() -> None:
    for make in MAKERS:
        with pytest.raises(errors.ParameterError) as caught:
            make().add_many(["a", "b"], 3)
        assert caught.value.name == "counts"
