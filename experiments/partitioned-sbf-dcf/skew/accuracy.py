"""Right answers: E10 (at the same memory) and E13 (twice as much as was expected)."""

from __future__ import annotations

import numpy as np

from skew.setting import SEED, Counts, Filter, exact_share, make
from trials.outcome import Claim, Outcome, Row
from trials.streams import Keys, zipf


def e10(n: int, mean: int, thetas: tuple[float, ...], partitions: int) -> Outcome:
    """Section 7.2.1: PDCF gets the memory of PSBF, DCF that of SBF, all spent on more counters."""
    rows: list[Row] = []
    for theta in thetas:
        keys = zipf(np.random.default_rng(SEED), n, theta, mean * n)
        true = np.bincount(keys, minlength=n)
        for name, richer in (("SBF", "DCF"), ("PSBF", "PDCF")):
            cut = {"partitions": partitions} if name[0] == "P" else {}
            first = make(name, n, mean * n, **cut)
            first.add_many(keys)
            budget = first.stats().bytes
            rows.append(_accuracy(name, theta, first, true, budget))
            second = _spend(richer, n, mean * n, keys, cut, budget)
            rows.append(_accuracy(richer, theta, second, true, budget))
    claims = []
    for theta in thetas:
        share = {row["filter"]: row["exact_share"] for row in rows if row["theta"] == theta}
        for name, bound, theirs in (("PDCF", 0.987, "98.7 %"), ("DCF", 0.95, "95 %")):
            text = f"theta {theta:g}: exact counts of {name} at the memory of P/SBF"
            claims.append(Claim(text, theirs, f"{share[name]:.2%}", share[name] >= bound))
        ahead = share["PDCF"] - share["PSBF"]
        text = f"theta {theta:g}: PDCF ahead of PSBF by 8 points"
        claims.append(Claim(text, "8", f"{ahead * 100:.1f}", ahead >= 0.08))
    return Outcome(rows, claims)


def _accuracy(name: str, theta: float, counts: Filter, true: Counts, budget: int) -> Row:
    stats = counts.stats()
    return {
        "filter": name,
        "theta": theta,
        "cells": stats.cells,
        "partitions": stats.partitions,
        "bytes": stats.bytes,
        "budget": budget,
        "exact_share": exact_share(counts, true),
    }


def _spend(name: str, n: int, total: int, keys: Keys, cut: dict[str, int], budget: int) -> Filter:
    """The filter with the most counters whose memory, once filled, is within the budget.

    Widths change in whole bits, so memory is not quite in proportion: halve until it is known.
    """
    low, high = 1, 64 * n
    best: Filter = None
    for _ in range(16):
        cells = (low + high) // 2
        counts = make(name, n, total, cells=cells, **cut)
        counts.add_many(keys)
        if counts.stats().bytes <= budget:
            best, low = counts, cells
        else:
            high = cells
    return best


def e13(n: int, mean: int, partitions: int, steps: int) -> Outcome:
    """Fig. 13: built for M occurrences, given 2 M of the same n keys."""
    keys = zipf(np.random.default_rng(SEED), n, 0.0, 2 * mean * n)
    cut = {"partitions": partitions}
    filters = {
        "SBF": make("SBF", n, mean * n),
        "PSBF": make("PSBF", n, mean * n, **cut),
        "PDCF": make("PDCF", n, mean * n, **cut),
    }
    filled = make("PSBF", n, mean * n, **cut)
    filled.add_many(keys)
    equal = _spend("PDCF", n, mean * n, keys, cut, filled.stats().bytes).stats().cells
    filters["PDCF, PSBF's memory"] = make("PDCF", n, mean * n, cells=equal, **cut)
    rows: list[Row] = []
    for step, part in enumerate(np.array_split(keys, 2 * steps), start=1):
        true = np.bincount(keys[: len(keys) * step // (2 * steps)], minlength=n)
        for name, counts in filters.items():
            counts.add_many(part)
            rows.append({"load": step / steps, "filter": name, "bytes": counts.stats().bytes})
            rows[-1] |= {"exact_share": exact_share(counts, true)}

    def seen(name: str, load: float) -> Row:
        return next(row for row in rows if (row["filter"], row["load"]) == (name, load))

    claims = []
    for name in ("PDCF", "PDCF, PSBF's memory"):
        least = min(row["exact_share"] for row in rows if row["filter"] == name)
        text = f"{name} is exact for 95 % throughout"
        claims.append(Claim(text, "95 %", f"{least:.2%}", least >= 0.95))
    for name in ("SBF", "PSBF"):
        at, after = seen(name, 1.0)["exact_share"], seen(name, 2.0)["exact_share"]
        text = f"exact counts of {name} fall beyond the design size"
        claims.append(Claim(text, "sharply", f"{at:.1%} to {after:.1%}", after < at - 0.1))
    grown = seen("PDCF", 2.0)["bytes"] / seen("PDCF", 1.0)["bytes"]
    flat = seen("SBF", 2.0)["bytes"] / seen("SBF", 1.0)["bytes"]
    text = "memory from M to 2 M: PDCF's grows, SBF's does not"
    claims.append(Claim(text, "yes", f"{grown:.2f}x and {flat:.2f}x", grown > 1 >= flat / 1.05))
    return Outcome(rows, claims)
