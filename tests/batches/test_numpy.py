"""NumPy batches: every integer type and stride, byte strings, and shapes that are no batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bloomtide import BloomFilter, errors
from tests.batches.agreement import agrees

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def _extremes(dtype: str) -> np.ndarray[Any, Any]:
    info = np.iinfo(dtype)
    ends = [info.min, info.max, 0, 1, info.max // 2, info.min // 2]
    return np.array(ends + list(range(100)), dtype=dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_equal_their_python_values(dtype: str) -> None:
    array = _extremes(dtype)
    agrees(lambda: array, array.tolist())
    agrees(lambda: array[1::3], array[1::3].tolist())
    agrees(lambda: array[::-1], array[::-1].tolist())
    agrees(lambda: array[:0], [])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_one_column_of_a_table_is_read_with_its_stride(dtype: str) -> None:
    table = np.arange(120).reshape(40, 3).astype(dtype)
    agrees(lambda: table[:, 1], table[:, 1].tolist(), threads=[1])


@pytest.mark.parametrize("dtype", [">i2", ">i4", ">i8", ">u2", ">u4", ">u8"])
def test_big_endian_integers_are_read_right(dtype: str) -> None:
    array = np.array([1, 258, 5, 1], dtype=dtype)
    agrees(lambda: array, array.tolist())


def test_read_only_and_unaligned_arrays() -> None:
    frozen = np.arange(50)
    frozen.setflags(write=False)
    agrees(lambda: frozen, frozen.tolist(), threads=[1])
    packed = np.zeros(20, dtype=np.dtype([("flag", "u1"), ("key", "<i8")]))
    packed["key"] = np.arange(20) * 1000 - 7
    agrees(lambda: packed["key"], packed["key"].tolist(), threads=[1])


def test_byte_strings_drop_their_trailing_nulls_as_numpy_does() -> None:
    array = np.array([b"a", b"", b"abc", b"a\x00b", b"abcdef", b"a"], dtype="S6")
    assert array.tolist()[3] == b"a\x00b"
    agrees(lambda: array, array.tolist())
    agrees(lambda: array[::2], array[::2].tolist())
    agrees(lambda: array[::-1], array[::-1].tolist())
    agrees(lambda: np.array([], dtype="S4"), [])
    agrees(lambda: np.array([b"", b""], dtype="S1"), [b"", b""])


def test_text_arrays_equal_their_texts() -> None:
    array = np.array(["a", "ü", "long text", ""])
    agrees(lambda: array, array.tolist(), threads=[1])


def test_numpy_scalars_in_a_list_are_their_python_values() -> None:
    scalars = [np.int64(5), np.uint8(7), np.int64(-3), np.str_("a"), np.bytes_(b"b")]
    agrees(lambda: scalars, [5, 7, -3, "a", b"b"])


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((3, 2), dtype=np.int64),
        np.zeros((0, 2), dtype=np.int64),
        np.array(5),
        np.array([[b"a"], [b"b"]]),
        np.array([1.0, 2.0]),
        np.array([], dtype=np.float64),
        np.array([True, False]),
        np.array([1 + 2j]),
        np.array(["2024-01-01"], dtype="datetime64[D]"),
        np.array([5], dtype="timedelta64[s]"),
        np.zeros(3, dtype=[("a", "i4"), ("b", "i4")]),
    ],
    ids=lambda array: f"{array.dtype}-{array.ndim}d-{array.size}",
)
def test_other_arrays_are_refused_with_a_way_out(array: Any) -> None:
    made = BloomFilter(100, 0.01)
    for verb in (made.add_many, made.contains_many):
        with pytest.raises((errors.KeyTypeError, errors.ParameterError)) as caught:
            verb(array)
        assert caught.value.hint
    assert made.stats().fill == 0.0


def test_a_mask_is_never_overlooked() -> None:
    """Masked entries are nulls; to add them as keys would be silently wrong."""
    masked = np.ma.masked_array([1, 2, 3], mask=[False, True, False])
    made = BloomFilter(100, 1e-6)
    with pytest.raises(errors.BloomtideError):
        made.add_many(masked)
    assert 2 not in made
