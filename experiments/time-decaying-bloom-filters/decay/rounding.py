"""How the pass rounds: section 3.1 multiplies whole numbers by lambda and does not say how.

A table of ways to round, each on the same cells and the same traffic: which counts are too small,
by how much, and what is left of pages that nobody visits any more.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil

import numpy as np

from decay.claims import down_at_last, up
from decay.setting import SEED, Fading
from decay.truth import DecayedSums, EagerFilter, Pass, undercounts
from trials.outcome import Claim, Outcome, Row
from trials.streams import zipf

HASHES, CELLS_PER_PAGE = 4, 10
SKEW = 1.0


def _single(decay: float) -> Pass:
    return lambda values: (values.astype(np.float32) * np.float32(decay)).astype(np.float64)


def _stochastic(decay: float) -> Pass:
    random = np.random.default_rng(SEED)
    return lambda values: np.floor(values * decay + random.random(len(values)))


WAYS: dict[str, tuple[int, Callable[[float], Pass]]] = {
    "float64": (0, lambda decay: lambda values: values * decay),
    "float32": (0, _single),
    "down": (0, lambda decay: lambda values: np.floor(values * decay)),
    "nearest": (0, lambda decay: lambda values: np.rint(values * decay)),
    "random": (0, _stochastic),
    "up": (0, up),
    "up, 8 fraction bits": (8, up),
    "expiring, 8 fraction bits": (8, down_at_last),
}
"""Fraction bits and the pass."""

LAZY = {"ours, strict": "strict", "ours, expiring": "expiring"}

EXPECTED: dict[str, tuple[float, float, float]] = {
    "float64": (0, 0, 0),
    "float32": (0.22, 0.5, 0),
    "down": (0.5, 0.79, 1),
    "nearest": (0.41, 0.2, 0.19),
    "random": (0.43, 0.71, 0.86),
    "up": (0, 0, 0),
    "up, 8 fraction bits": (0, 0, 0),
}
"""Shares of pages that are counted too low at lambda 0.5, 0.9, 0.99, by an earlier simulation."""


def residue(decay: float) -> int:
    """The largest value that rounding up never makes smaller: less than 1 / (1 - lambda).

    Of lambda as it is: 0.9 in binary is a little more, so that 10 sticks as well.
    """
    return ceil(1 / (1 - Fraction(decay))) - 1


def rounding(pages: int, epochs: int, decays: tuple[float, ...]) -> Outcome:
    """`pages` visits in each epoch; the colder half of the pages is visited in the first half."""
    rows = [row for decay in decays for row in _rows(pages, epochs, decay)]
    claims: list[Claim] = []
    for way, shares in EXPECTED.items():
        of = [row for row in rows if row["cells"] == way]
        ours = ", ".join(f"{row['undercounted']:.0%}" for row in of)
        theirs = ", ".join(f"{share:.0%}" for share in shares)
        alike = all(
            (row["undercounted"] > 0) == (share > 0) for row, share in zip(of, shares, strict=False)
        )
        claims.append(Claim(f"{way}: pages counted too low", theirs, ours, alike))
    for way in ("up", "up, 8 fraction bits"):
        of = [row for row in rows if row["cells"] == way]
        ours = ", ".join(f"{row['left']:.3g}" for row in of)
        theirs = ", ".join(f"{row['residue']:.3g}" for row in of)
        sticks = all(0 < row["left"] <= row["residue"] for row in of)
        claims.append(Claim(f"{way}: what sticks in forgotten pages", theirs, ours, sticks))
    for way in LAZY:
        of = [row for row in rows if row["cells"] == way]
        worst = ", ".join(f"{row['worst_deficit']:.2g}" for row in of)
        bound = ", ".join("0" if way == "ours, strict" else f"{row['bound']:.2g}" for row in of)
        kept = all(row["worst_deficit"] <= float("expiring" in way) * row["bound"] for row in of)
        claims.append(Claim(f"{way}: worst deficit", f"at most {bound}", worst, kept))
    return Outcome(rows, claims)


def _rows(pages: int, epochs: int, decay: float) -> list[Row]:
    random = np.random.default_rng(SEED)
    cells = CELLS_PER_PAGE * pages
    options = {"cells": cells, "hashes": HASHES, "layout": "classic", "storage": "basic"}
    ours = {name: Fading(pages, decay, rounding=mode, **options) for name, mode in LAZY.items()}
    positions = ours["ours, strict"].positions()
    eager = {
        name: EagerFilter(positions, cells, bits, fade(decay))
        for name, (bits, fade) in WAYS.items()
    }
    truth = DecayedSums(pages, decay)
    filters: dict[str, EagerFilter | Fading] = {**eager, **ours}
    for epoch in range(epochs):
        visits = zipf(random, pages, SKEW, pages)
        if 2 * epoch >= epochs:
            visits = visits[visits < pages // 2]
        truth.add_many(epoch, visits)
        for filter in filters.values():
            filter.add_many(epoch, visits)
    rows: list[Row] = []
    for name, filter in filters.items():
        bits = WAYS[name][0] if name in WAYS else 8
        counts = filter.counts()
        deficit = undercounts(counts, truth.sums)
        forgotten = (counts - truth.sums)[pages // 2 :]
        rows.append(
            {
                "cells": name,
                "decay": decay,
                "undercounted": float(np.mean(deficit > 0)),
                "worst_deficit": float(deficit.max()),
                "mean_excess": float(np.mean(counts - truth.sums)),
                "left": float(np.median(np.maximum(forgotten, 0))),
                "bound": 2.0**-bits / (1 - decay),
                "residue": residue(decay) / 2**bits,
            }
        )
    return rows
