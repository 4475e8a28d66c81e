"""The keys that the laws feed: every kind, every length, with repeats."""

from __future__ import annotations

import array
from typing import Any

EDGES: list[Any] = [
    "",
    "a",
    "a\0",
    "naïve",
    "日本語",
    "🍎" * 5,
    "x" * 10_000,
    b"\xff\xfe",
    bytearray(b"mutable"),
    memoryview(b"a view"),
    0,
    1,
    -1,
    2**63 - 1,
    2**63,
    2**64 - 1,
    -(2**63),
]
"""One key of every shape that a filter takes; no two are the same key."""

BAD_KEYS: list[Any] = [
    None,
    1.5,
    True,
    [],
    ("a",),
    object(),
    "\ud800",
    2**64,
    -(2**63) - 1,
    memoryview(b"every other byte")[::2],
    array.array("d", [1.5]),
]
"""Nothing of this is a key."""


def words(n: int, prefix: str = "key") -> list[str]:
    """n distinct strings; another prefix gives n other ones."""
    return [f"{prefix}-{i}" for i in range(n)]


def mixed(n: int, prefix: str = "key") -> list[Any]:
    """About n keys of all kinds; a third of them repeats an earlier key, near or far."""
    stream: list[Any] = list(EDGES)
    for i in range(n - len(EDGES)):
        kind = i % 6
        if kind == 0:
            stream.append(f"{prefix}-{i}")
        elif kind == 1:
            stream.append(f"{prefix}-{i}".encode())
        elif kind == 2:
            stream.append(i * 2_654_435_761)
        elif kind == 3:
            stream.append(-i)
        elif kind == 4:
            stream.append(stream[i // 2])
        else:
            stream.append(stream[-1])
    return stream
