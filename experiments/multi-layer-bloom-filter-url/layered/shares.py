"""How many distinct prefixes there are at each depth, for each distinct URL."""

from __future__ import annotations

from pathlib import Path

from bloomtide import UrlFilter
from layered.urls import LAYERS, lists
from trials.outcome import Claim, Outcome, Row


def shares(data: Path | None, count: int, generate: int) -> Outcome:
    """Of every real list up to `count` URLs, and of the generated ones."""
    rows: list[Row] = []
    claims: list[Claim] = []
    for name, urls in lists(data, count, generate=generate):
        found = UrlFilter.measure(urls, max_layers=LAYERS)
        found += [0] * (LAYERS - len(found))
        rows += [
            {"list": name, "urls": len(urls), "depth": depth, "prefixes": n, "share": n / len(urls)}
            for depth, n in enumerate(found, start=1)
        ]
        told = ", ".join(f"{n / len(urls):.2f}" for n in found)
        text = f"{name}, {len(urls):,} URLs: prefixes for each URL, depth 1 to {LAYERS}"
        claims.append(Claim(text, "1 everywhere", told, max(found[:-1]) <= len(urls)))
    return Outcome(rows, claims)
