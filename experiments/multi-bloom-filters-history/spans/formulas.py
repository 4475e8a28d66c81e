"""`e14`: every formula of section 3.3 against what is measured.

Fresh      every row has keys of its own.
Recurring  all rows have the same keys: they err together.
Zipf       as many arrivals, drawn by Zipf's law from 2 n2 keys, as it takes until a row has n2
           distinct ones: each comes about five times, and rows share some of their keys.

A formula is computed for the distinct keys that a row and an MBF really have. The paper's rows end
after n2 arrivals; then it is an upper bound.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bloomtide.reference.history import Sizes, p_cm, p_filter, p_mbf
from spans.arrays import Numbers, Segment
from trials.outcome import Claim, Outcome, Row
from trials.streams import zipf

SEED = 2008
ABSENT = 1 << 40
"""Keys from here on were never added."""

KINDS = ("fresh", "recurring", "Zipf")


def windows(kind: str, sizes: Sizes, seed: int) -> Iterator[Numbers]:
    """The events of each row."""
    random = np.random.default_rng(seed)
    base = seed << 24
    for row in range(sizes.rows):
        if kind == "Zipf":
            drawn = zipf(random, 2 * sizes.n2, 1.0, 20 * sizes.n2)
            _, first_times = np.unique(drawn, return_index=True)
            yield base + drawn[: np.sort(first_times)[sizes.n2 - 1] + 1]
        else:
            first = base + (row * sizes.n2 if kind == "fresh" else 0)
            yield np.arange(first, first + sizes.n2)


def measure(kind: str, sizes: Sizes, asked: int, runs: int) -> Row:
    """All rates of one setting, over `runs` streams and `asked` absent keys for each."""
    found = dict.fromkeys(("P_BF", "P_CBF", "P_CM", "P_FP", "P_FF"), 0.0)
    distinct_row = distinct_all = 0.0
    for run in range(runs):
        segment, streams = Segment(sizes), list(windows(kind, sizes, SEED + run))
        for keys in streams:
            segment.add_row(keys)
        absent = ABSENT + np.arange(run * asked, (run + 1) * asked)
        passed, rows = segment.passes(absent), segment.counts(absent) > 0
        some = rows.any(axis=1)
        keys, truth = np.unique(np.concatenate(streams), return_counts=True)
        upper = segment.counts(keys).sum(axis=1)
        assert (upper >= truth).all(), "an upper bound below the truth"
        rates = (passed, rows, some, passed & some, upper != truth)
        for name, rate in zip(found, rates, strict=True):
            found[name] += float(rate.mean()) / runs
        distinct_row += sum(len(np.unique(keys)) for keys in streams) / sizes.rows / runs
        distinct_all += len(keys) / runs
    p_cbf = p_filter(sizes.m2, sizes.k2, round(distinct_row))
    p_bf = p_filter(sizes.m1, sizes.k1, round(distinct_all))
    p_rows = p_cm(p_cbf, sizes.rows)
    formula = {
        "P_BF": p_bf, "P_CBF": p_cbf, "P_CM": p_rows, "P_FP": p_mbf(p_bf, p_rows), "P_FF": p_rows,
    }  # fmt: skip
    return {
        "stream": kind,
        "k2": sizes.k2,
        "rows": sizes.rows,
        "distinct_in_a_row": distinct_row,
        **{f"{name}_measured": rate for name, rate in found.items()},
        **{f"{name}_formula": rate for name, rate in formula.items()},
    }


def e14(n2: int, rows: tuple[int, ...], rates: tuple[float, ...], asked: int, runs: int) -> Outcome:
    """Every setting, and how far the formulas are from what is measured."""
    table = [
        measure(kind, Sizes(n2, count, rate, rate), asked, runs)
        for kind in KINDS
        for rate in rates
        for count in rows
    ]
    claims = [
        _claim("fresh", table, ("P_BF", "P_CBF", "P_CM", "P_FP", "P_FF")),
        _claim("recurring", table, ("P_CBF",)),
        _claim("Zipf", table, ("P_BF", "P_CBF")),
        _apart("recurring", table),
        _apart("Zipf", table),
    ]
    return Outcome(table, claims)


def _ratios(row: Row, name: str) -> float:
    return float(row[f"{name}_measured"]) / float(row[f"{name}_formula"])


def _enough(row: Row, name: str) -> bool:
    """Some 500 errors among 100,000 keys, so that the ratio says something."""
    return float(row[f"{name}_formula"]) >= 0.005


def _claim(kind: str, table: list[Row], names: tuple[str, ...]) -> Claim:
    """Formulas that must hold, wherever they are not too small to be measured."""
    of = [row for row in table if row["stream"] == kind]
    ratios = {name: [_ratios(row, name) for row in of if _enough(row, name)] for name in names}
    told = "; ".join(
        f"{name} {min(some):.2f} to {max(some):.2f}" for name, some in ratios.items() if some
    )
    holds = all(some and _near(some) for some in ratios.values())
    return Claim(f"{kind} keys: measured over formula", "1", told, holds)


def _apart(kind: str, table: list[Row]) -> Claim:
    """P_CM and P_FF where rows share keys: the paper's equality is a bound there."""
    of = [row for row in table if row["stream"] == kind and row["rows"] > 1]
    names = ("P_CM", "P_FF")
    ratios = [_ratios(row, name) for row in of for name in names if _enough(row, name)]
    text = f"{kind} keys: P_CM and P_FF over their formula, more than one row"
    told = f"{min(ratios):.2f} to {max(ratios):.2f}"
    return Claim(text, "1", told, _near(ratios))


def _near(ratios: list[float]) -> bool:
    return all(0.8 <= ratio <= 1.25 for ratio in ratios)
