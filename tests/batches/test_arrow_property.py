"""Any Arrow array, however typed, sliced, chunked and holed, equals its plain list."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.batches.agreement import agrees

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
BLOB = st.binary(max_size=20)


def _integers(kind: Any) -> st.SearchStrategy[int]:
    width = kind.bit_width
    if str(kind).startswith("uint"):
        return st.integers(0, 2**width - 1)
    return st.integers(-(2 ** (width - 1)), 2 ** (width - 1) - 1)


TYPES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    *[(kind, TEXT) for kind in (pa.string(), pa.large_string(), pa.string_view())],
    *[(kind, BLOB) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())],
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    *[(kind, _integers(kind)) for kind in (pa.int8(), pa.int32(), pa.int64())],
    *[(kind, _integers(kind)) for kind in (pa.uint8(), pa.uint16(), pa.uint64())],
]


@st.composite
def columns(draw: st.DrawFn) -> tuple[Any, list[Any]]:
    """A sliced array or chunked array, plain or dictionary-encoded, and its values."""
    kind, element = draw(st.sampled_from(TYPES))
    encode = draw(st.booleans()) and not str(kind).endswith("view")
    chunks = []
    for values in draw(
        st.lists(st.lists(st.none() | element, max_size=30), min_size=1, max_size=3)
    ):
        array = pa.array(values, kind)
        if encode:
            array = array.dictionary_encode()
        first = draw(st.integers(0, len(values)))
        chunks.append(array.slice(first, draw(st.integers(0, len(values) - first))))
    column = chunks[0] if len(chunks) == 1 and draw(st.booleans()) else pa.chunked_array(chunks)
    return column, column.to_pylist()


@given(columns())
def test_any_array_agrees_with_its_list(column: tuple[Any, list[Any]]) -> None:
    array, values = column
    agrees(lambda: array, values, threads=[1])
