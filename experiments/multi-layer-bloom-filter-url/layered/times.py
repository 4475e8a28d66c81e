"""E5: figures 4 and 5 of the paper, and its section 1.1: how long adding and asking take.

The authors read their lists from files and call a filter once for each URL. Here the list is in
memory; one run calls for each URL as they do, another hands all of them over at once.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from bloomtide import BloomFilter
from layered.arrays import ERROR_RATE
from layered.core import url_filter
from layered.urls import Urls, lists
from trials.outcome import Claim, Outcome, Row
from trials.timing import timed

SEED = 2012
THEIRS = {"add": 12_380 / 4120, "ask": 8050 / 1680}
"""MLBF over a Bloom filter at the largest size, read from the figures."""


class Hashed(set[bytes]):
    """The paper's hash table: Python's own set."""

    add_many = set.update

    def contains_many(self, urls: Urls) -> list[bool]:
        """An answer for each."""
        return [url in self for url in urls]


class Linear(list[bytes]):
    """Compares with one URL after the other."""

    add = list.append
    add_many = list.extend

    def contains_many(self, urls: Urls) -> list[bool]:
        """An answer for each."""
        return [url in self for url in urls]


class Binary(Linear):
    """In order; to add, all that follow move."""

    def add(self, url: bytes) -> None:
        """At its place."""
        insort(self, url)

    def add_many(self, urls: Iterable[bytes]) -> None:
        """All, then in order."""
        self.extend(urls)
        self.sort()

    def __contains__(self, url: Any) -> bool:
        place = bisect_left(self, url)
        return place < len(self) and bool(self[place] == url)


WAYS: dict[str, Callable[[int], Any]] = {
    "set": lambda urls: Hashed(),
    "flat": lambda urls: BloomFilter(urls, ERROR_RATE, layout="classic"),
    "flat, blocked": lambda urls: BloomFilter(urls, ERROR_RATE),
    "xor": lambda urls: url_filter("xor", urls, ERROR_RATE),
    "salted_xor": lambda urls: url_filter("salted_xor", urls, ERROR_RATE),
    "linear search": lambda urls: Linear(),
    "binary search": lambda urls: Binary(),
}


def e5(
    data: Path | None, sizes: tuple[int, ...], searched: tuple[int, ...], rounds: int
) -> Outcome:
    """A list at each size; linear and binary search only at the small ones."""
    name, urls = next(lists(data, sizes[-1], ("npm",)))
    random = np.random.default_rng(SEED)
    rows: list[Row] = []
    for size in [*searched, *sizes]:
        asked = [urls[number] for number in random.choice(size, size // 2, replace=False).tolist()]
        for way, make in WAYS.items():
            if way.endswith("search") and size not in searched:
                continue
            times = _times(make, urls[:size], asked, rounds)
            rows.append({"list": name, "urls": size, "way": way, **times})
    return Outcome(rows, _claims(rows, searched[-1], sizes[-1]))


def _times(make: Callable[[int], Any], urls: Urls, asked: Urls, rounds: int) -> Row:
    """The best of the rounds, in milliseconds."""
    best: dict[str, float] = {}
    for _ in range(rounds):
        one, many = make(len(urls)), make(len(urls))
        for what, seconds in (
            ("add", timed(_add, one, urls)),
            ("ask", timed(_ask, one, asked)),
            ("add_many", timed(many.add_many, urls)),
            ("ask_many", timed(many.contains_many, asked)),
        ):
            best[f"{what}_ms"] = min(best.get(f"{what}_ms", seconds * 1000), seconds * 1000)
    return best


def _add(filter: Any, urls: Urls) -> None:
    add = filter.add
    for url in urls:
        add(url)


def _ask(filter: Any, urls: Urls) -> None:
    for url in urls:
        url in filter  # noqa: B015 (only the time counts)


def _claims(rows: list[Row], small: int, large: int) -> list[Claim]:
    at = {(row["urls"], row["way"]): row for row in rows}
    claims = []
    for what, theirs in THEIRS.items():
        for batch in ("", "_many"):
            column = f"{what}{batch}_ms"
            for way in ("xor", "salted_xor"):
                by = at[large, way][column] / at[large, "flat"][column]
                text = f"{column}, {large:,} URLs: {way} over flat"
                told = (
                    f"{at[large, way][column]:.0f} and {at[large, 'flat'][column]:.0f}, {by:.1f}x"
                )
                claims.append(Claim(text, f"{theirs:.1f}x" if way == "xor" else "", told, by > 1))
    for way in ("linear search", "binary search"):
        for column in ("add_ms", "ask_ms"):
            by = at[small, way][column] / at[small, "flat"][column]
            text = f"{column}, {small:,} URLs: {way} over flat"
            claims.append(Claim(text, "", f"{by:.1f}x", by > 1))
    return claims
