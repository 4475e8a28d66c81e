"""Small streams of events, the same each time."""

from __future__ import annotations

import random
from collections import Counter

START = 1_700_000_000
"""The first second of every stream."""

Event = tuple[str, int, float]
"""Key, count, instant."""


def events(n: int, seed: int = 0, *, pages: int = 500, late: float = 0.05) -> list[Event]:
    """`n` events of a few pages that get most of the hits; some come late by up to an hour."""
    chance = random.Random(seed)
    found = []
    for i in range(n):
        page = min(int(chance.paretovariate(0.7)), pages)
        behind = chance.randrange(3600) if chance.random() < late else 0
        found.append((f"/page/{page}", chance.choice((1, 1, 1, 4)), START + i // 5 - behind + 0.25))
    return [(key, count, max(at, 0.0)) for key, count, at in found]


def exact(stream: list[Event]) -> Counter[str]:
    """How often each key happened."""
    counted: Counter[str] = Counter()
    for key, count, _ in stream:
        counted[key] += count
    return counted


def columns(stream: list[Event]) -> tuple[list[str], list[int], list[float]]:
    """The same by column."""
    keys, counts, times = zip(*stream, strict=True)
    return list(keys), list(counts), list(times)


def log_line(key: str, at: int) -> bytes:
    """A line of an access log in the COMBINED format."""
    import datetime

    moment = datetime.datetime.fromtimestamp(at, datetime.UTC)
    stamp = f"{moment:%d}/{MONTHS[moment.month - 1]}/{moment:%Y:%H:%M:%S} +0000"
    return f'10.0.0.1 - - [{stamp}] "GET {key} HTTP/1.1" 200 5 "-" "test"\n'.encode()


MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
