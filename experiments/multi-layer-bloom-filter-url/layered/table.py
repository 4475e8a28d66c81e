"""The table of classes: which absent URLs each filter accepts, beside what the formulas say.

Paper    FP = (1 - e^(-kn/m))^(kL), which asks every layer about a new segment and forgets X.
Here     FP = the product of the errors of the layers whose part of the URL is new, and that of X.
         With `xor` a part is a segment, and X errs for certain if another URL has the same XOR;
         with the other bindings a part is a prefix.
E4b      Flat filters of the error rate, and of the memory that the layered ones have.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import reduce
from operator import xor
from pathlib import Path
from typing import Any

import numpy as np

import bloomtide
from bloomtide import BloomFilter
from layered.arrays import ERROR_RATE
from layered.classes import absent_urls
from layered.core import flat_filter, url_filter
from layered.urls import LAYERS, Urls, cut, lists
from trials.outcome import Claim, Outcome, Row

SEED = 2011
LAYERED: tuple[Any, ...] = ("xor", "salted_xor", "ordered")
HARD = ("new leaf", "directory", "recombined", "swapped", "swapped known", "x/a/a")
"""Where the site is known."""

New = tuple[tuple[int, ...], bool]
"""The layers to which something of a URL is new, and whether X has not its address for certain."""


def classes(
    data: Path | None, names: tuple[str, ...], count: int, generate: int, asked: int
) -> Outcome:
    """Half of each list is added; URLs of every class, the other half among them, are asked for."""
    rows = [
        row
        for name, urls in lists(data, count, names, generate=generate)
        for row in _rows(name, urls, asked)
    ]
    return Outcome(rows, list(_claims(rows)))


def _rows(name: str, urls: Urls, asked: int) -> Iterator[Row]:
    order = np.random.default_rng(SEED).permutation(len(urls)).tolist()
    half = math.ceil(len(urls) / 2)
    added, others = ([urls[number] for number in part] for part in (order[:half], order[half:]))
    queries = absent_urls(added, others, asked)
    filters: dict[str, Any] = {"flat": BloomFilter(half, ERROR_RATE, layout="classic")}
    for bind in LAYERED:
        filters[bind] = url_filter(bind, half, ERROR_RATE)
        filters[bind].add_many(added)
    for bind in LAYERED[:2]:
        filters[f"flat, bits of {bind}"] = flat_filter(filters[bind].stats().bytes * 8, half)
    for filter in filters.values():
        if isinstance(filter, BloomFilter):
            filter.add_many(added)
    new: dict[tuple[str, str], Counter[New]] = {}
    for bind in LAYERED[:2]:
        exact = Expected(bind, added)
        new |= {(bind, kind): exact.new_parts(absent) for kind, absent in queries.items()}
    new |= {("ordered", kind): new["salted_xor", kind] for kind in queries}  # the same prefixes
    for way, filter in filters.items():
        stats = filter.stats()
        for kind, absent in queries.items():
            accepted = int(np.sum(filter.contains_many(absent))) if absent else 0
            formula = stats.predicted_error
            if way in LAYERED:
                formula = _formula(stats, new[way, kind])
            yield {
                "list": name,
                "added": half,
                "filter": way,
                "bytes": stats.bytes,
                "class": kind,
                "asked": len(absent),
                "accepted": accepted,
                "rate": accepted / max(1, len(absent)),
                "formula": formula,
                "paper_formula": _papers(stats, absent) if way == "xor" else formula,
            }


class Expected:
    """What was added, exactly, and so the error that a layered filter should have."""

    def __init__(self, bind: str, added: Urls) -> None:
        self.bare = bind == "xor"
        self.seen: list[set[bytes]] = []
        self.bound: set[int] = set()
        for url in added:
            for depth, part in enumerate(self.parts(url)):
                if depth == len(self.seen):
                    self.seen.append(set())
                self.seen[depth].add(part)
            if self.bare:
                self.bound.add(self.address(url))

    def parts(self, url: bytes) -> Iterable[bytes]:
        """What each layer holds of it."""
        parts = cut(url)
        return parts if self.bare else (b"/".join(parts[: n + 1]) for n in range(len(parts)))

    def address(self, url: bytes) -> int:
        """What X of the paper holds of it."""
        return reduce(xor, map(bloomtide.digest, cut(url)))

    def new_parts(self, absent: Urls) -> Counter[New]:
        """How many of these URLs have which layers and X against them."""
        return Counter(map(self._new, absent))

    def _new(self, url: bytes) -> New:
        parts = enumerate(self.parts(url))
        new = tuple(
            depth
            for depth, part in parts
            if depth >= len(self.seen) or part not in self.seen[depth]
        )
        return new, not (self.bare and self.address(url) in self.bound)


def _formula(stats: Any, found: Counter[New]) -> float:
    """The mean over these URLs."""
    errors = [layer.predicted_error for layer in stats.layers] + [0.0] * LAYERS
    total = math.fsum(
        count * math.prod(errors[depth] for depth in new) * (stats.predicted_error if x else 1)
        for (new, x), count in found.items()
    )
    return total / max(1, found.total())


def _papers(stats: Any, absent: Urls) -> float:
    """The paper's formula, with the layers that the URLs have."""
    error = (1 - math.exp(-stats.hashes * stats.capacity / stats.layers[0].cells)) ** stats.hashes
    return math.fsum(error ** len(cut(url)) for url in absent) / max(1, len(absent))


def _claims(rows: list[Row]) -> Iterator[Claim]:
    at = {(row["list"], row["filter"], row["class"]): row for row in rows}
    for name in dict.fromkeys(row["list"] for row in rows):
        rates = {key[1:]: row for key, row in at.items() if key[0] == name and row["asked"]}
        kinds = [kind for way, kind in rates if way == "flat"]
        for way in ("salted_xor", "ordered"):
            worst = max(kinds, key=lambda kind: rates[way, kind]["rate"])
            rate = rates[way, worst]["rate"]
            text = f"{name}: {way}, the class with the most errors"
            told = f"{worst}, {rate:.3%} (target {ERROR_RATE:.0%})"
            yield Claim(text, "", told, _at_most(rates[way, worst], ERROR_RATE))
        for kind in ("swapped known", "x/a/a"):
            if ("xor", kind) in rates:
                row = rates["xor", kind]
                theirs, rate = f"{row['paper_formula']:.0e}", row["rate"]
                yield Claim(f"{name}: xor accepts {kind}", theirs, f"{rate:.1%}", rate < 0.1)
        within = [row for row in rates.values() if _near(row)]
        text = f"{name}: rates that are those of the corrected formula, within 4 sigma"
        yield Claim(text, "", f"{len(within)} of {len(rates)}", len(within) == len(rates))
        for bind in LAYERED[:2]:
            better = [
                kind
                for kind in kinds
                if rates[f"flat, bits of {bind}", kind]["rate"] <= rates[bind, kind]["rate"]
            ]
            text = f"{name}: classes in which flat is no worse than {bind} of the same memory"
            yield Claim(text, "", ", ".join(better), set(HARD) & set(kinds) <= set(better))


def _at_most(row: Row, rate: float) -> bool:
    return bool(row["rate"] <= rate + 4 * math.sqrt(rate / row["asked"]))


def _near(row: Row) -> bool:
    """Poisson's sigma, with one more so that none expected and one found is no surprise."""
    expected = row["formula"] * row["asked"]
    return bool(abs(row["accepted"] - expected) <= 4 * math.sqrt(expected + 1))
