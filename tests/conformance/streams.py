"""The keys that the laws feed: every kind, every length, with repeats."""

from __future__ import annotations

import array
from typing import Any
from urllib.parse import quote
from zlib import crc32

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


def url_of(key: Any) -> Any:
    """A URL for each key, of one to six segments; as text, or as bytes of the key's own type."""
    if isinstance(key, int):
        return f"http://number.example/{key % 7}/{key}"
    name = key if isinstance(key, str) else bytes(key)
    mark = crc32(name.encode() if isinstance(name, str) else name)
    above = "".join(f"/{mark >> shift & 3}" for shift in range(0, 2 * (mark % 5), 2))
    url = f"https://site{mark % 11}.example{above}/{quote(name, safe='')}"
    return url if isinstance(key, str) else type(key)(url.encode())


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
