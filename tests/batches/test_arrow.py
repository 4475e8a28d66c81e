"""Arrow batches by the PyCapsule interface: every key type, slices, chunks, nulls, tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from bloomtide import BloomFilter, errors
from tests.batches.agreement import agrees

TEXTS = ["a", "", "ü€😀", "longer than twelve bytes", None, "a", "x" * 300, "twelve bytes", None]
BYTES = [None if text is None else text.encode() + b"\x00\xff" for text in TEXTS]
FOUR = [b"abcd", b"\x00\x00\x00\x00", None, b"abcd", b"wxyz", b"a\x00\x00\x00"]

STRINGS = [pa.string(), pa.large_string(), pa.string_view()]
BINARIES = [pa.binary(), pa.large_binary(), pa.binary_view()]
INTEGERS = [
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.uint8(),
    pa.uint16(),
    pa.uint32(),
    pa.uint64(),
]


def _numbers(kind: Any) -> list[Any]:
    signed, width = str(kind).startswith("int"), kind.bit_width
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)
    return [low, high, 0, None, 1, 100, low + 1, None, *range(20)]


COLUMNS = (
    [pytest.param(kind, TEXTS, id=str(kind)) for kind in STRINGS]
    + [pytest.param(kind, BYTES, id=str(kind)) for kind in BINARIES]
    + [pytest.param(pa.binary(4), FOUR, id="fixed_size_binary")]
    + [pytest.param(kind, _numbers(kind), id=str(kind)) for kind in INTEGERS]
)


@pytest.mark.parametrize(("kind", "values"), COLUMNS)
def test_arrays_equal_their_python_values(kind: Any, values: list[Any]) -> None:
    array = pa.array(values, kind)
    agrees(lambda: array, values)
    full = [value for value in values if value is not None]
    agrees(lambda: pa.array(full, kind), full)
    agrees(lambda: pa.array([], kind), [])
    agrees(lambda: pa.nulls(4, kind), [None] * 4, threads=[1])


@pytest.mark.parametrize(("kind", "values"), COLUMNS)
def test_slices_begin_at_their_offset(kind: Any, values: list[Any]) -> None:
    array = pa.array(values * 3, kind)
    for first in range(len(values)):
        for length in (0, 1, 5, len(values)):
            part = array.slice(first, length)
            agrees(partial(array.slice, first, length), part.to_pylist(), threads=[1])


@pytest.mark.parametrize(("kind", "values"), COLUMNS)
def test_chunks_are_one_batch(kind: Any, values: list[Any]) -> None:
    parts = [values[:2], [], values[2:5], values[5:]]
    chunked = pa.chunked_array([pa.array(part, kind) for part in parts])
    agrees(lambda: chunked, values)
    agrees(lambda: chunked.slice(1, 6), values[1:7])
    agrees(lambda: pa.chunked_array([], kind), [], threads=[1])


@pytest.mark.parametrize(("kind", "values"), COLUMNS)
@pytest.mark.parametrize("index", [pa.int8(), pa.int32(), pa.uint16(), pa.int64()], ids=str)
def test_dictionaries_equal_their_values(kind: Any, values: list[Any], index: Any) -> None:
    known = list(dict.fromkeys(value for value in values if value is not None))
    rows = [None if value is None else known.index(value) for value in values] * 2
    encoded = pa.DictionaryArray.from_arrays(pa.array(rows, index), pa.array(known, kind))
    agrees(lambda: encoded, values * 2, threads=[1, 2])
    agrees(lambda: encoded.slice(3, 6), (values * 2)[3:9], threads=[1])


def test_a_null_inside_the_dictionary_is_a_null_row() -> None:
    words = pa.array(["a", None, "b"])
    encoded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None, 1], pa.int8()), words)
    agrees(lambda: encoded, ["a", None, "b", None, None])
    agrees(
        lambda: pa.chunked_array([encoded, encoded.slice(2)]),
        [
            *["a", None, "b", None, None],
            *["b", None, None],
        ],
    )


def test_chunks_may_have_different_dictionaries() -> None:
    first, second = (pa.array(words).dictionary_encode() for words in (["a", "b"], ["c", "a"]))
    agrees(lambda: pa.chunked_array([first, second]), ["a", "b", "c", "a"])


def test_unused_bytes_between_texts_are_not_read() -> None:
    """Null rows may own bytes, and offsets need not start at zero."""
    offsets = pa.py_buffer(b"".join(i.to_bytes(4, "little") for i in (2, 4, 7, 9)))
    array = pa.Array.from_buffers(
        pa.string(), 3, [pa.py_buffer(b"\x05"), offsets, pa.py_buffer(b"..abXYZcd..")]
    )
    array.validate(full=True)
    agrees(lambda: array, ["ab", None, "cd"])


def test_fixed_size_binary_of_no_width() -> None:
    agrees(lambda: pa.array([b"", b""], pa.binary(0)), [b"", b""], threads=[1])


def test_a_null_row_of_a_one_column_struct_is_a_null() -> None:
    column = pa.array(["a", "hidden", "b"])
    rows = pa.StructArray.from_arrays([column], ["key"], mask=pa.array([False, True, False]))
    agrees(lambda: rows, ["a", None, "b"], threads=[1])


def test_untyped_nulls_are_null_rows() -> None:
    agrees(lambda: pa.nulls(3), [None, None, None], threads=[1])


@pytest.mark.parametrize(("kind", "values"), COLUMNS)
def test_one_column_of_a_table_is_the_batch(kind: Any, values: list[Any]) -> None:
    array = pa.array(values, kind)
    batch = pa.record_batch({"key": array})
    agrees(lambda: batch, values, threads=[1])
    agrees(lambda: batch.slice(2, 5), values[2:7], threads=[1])
    table = pa.table({"key": pa.chunked_array([array, array.slice(1)])})
    agrees(lambda: table, values + values[1:], threads=[1])
    agrees(table.to_reader, values + values[1:], threads=[1])


@pytest.mark.parametrize("columns", [0, 2, 3])
def test_several_columns_are_refused(columns: int) -> None:
    table = pa.table({f"c{i}": pa.array(["a", "b"]) for i in range(columns)})
    made = BloomFilter(100, 0.01)
    for batch in (table, *table.to_batches(), table.to_reader()):
        with pytest.raises((errors.KeyTypeError, errors.ParameterError)) as caught:
            made.add_many(batch)
        assert "column" in str(caught.value)
        assert caught.value.hint
    assert made.stats().fill == 0.0


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1.5, 2.5]),
        pa.array([True, False]),
        pa.array([[1], [2]]),
        pa.array([1, 2], pa.date32()),
        pa.array([1, 2], pa.timestamp("us")),
        pa.array([1, 2], pa.decimal128(10, 2)),
        pa.array([1.5, 1.5]).dictionary_encode(),
    ],
    ids=lambda array: str(array.type).split("[")[0],
)
def test_other_columns_are_refused_by_their_type(array: Any) -> None:
    made = BloomFilter(100, 0.01)
    for nulls in ("refuse", "skip"):
        with pytest.raises((errors.KeyTypeError, errors.ParameterError)) as caught:
            made.add_many(array, nulls=nulls)
        assert caught.value.hint
    assert made.stats().fill == 0.0


def test_a_stream_that_breaks_says_how_many_went_in() -> None:
    schema = pa.schema([("key", pa.string())])

    def batches() -> Iterator[Any]:
        yield pa.record_batch({"key": ["a", "b", "c"]})
        yield pa.record_batch({"key": ["d"]})
        raise OSError("line is dead")

    made, expected = BloomFilter(100, 0.01), BloomFilter(100, 0.01)
    expected.add_many(["a", "b", "c", "d"])
    with pytest.raises(Exception, match="line is dead") as caught:
        made.add_many(pa.RecordBatchReader.from_batches(schema, batches()))
    assert any("4" in note for note in caught.value.__notes__)
    assert made.to_bytes() == expected.to_bytes()


def test_an_array_is_not_used_up() -> None:
    array = pa.array(["a", "b"])
    made = BloomFilter(100, 0.01)
    assert made.add_many(array).tolist() == [True, True]
    assert made.contains_many(array).tolist() == [True, True]
    assert array.to_pylist() == ["a", "b"]
