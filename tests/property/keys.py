"""Keys for the state machines: every kind, and a small pool so that keys meet again."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

POOL: list[Any] = ["", "a", b"a", "b", b"\xff", "ключ", 0, 1, -1, 2**63, 2**64 - 1, -(2**63)]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.integers(-(2**63), 2**64 - 1)
bytes_like = st.binary(max_size=300).flatmap(
    lambda data: st.sampled_from([data, bytearray(data), memoryview(data)])
)
keys: st.SearchStrategy[Any] = st.sampled_from(POOL) | texts | bytes_like | numbers
batches = st.lists(keys, max_size=30)
threads = st.integers(1, 3)
