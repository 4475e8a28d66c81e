"""`compressions`: what merging rows and joining MBFs do to the error and to the space.

The paper says that merging rows halves the space and keeps the error of a query over the whole MBF,
and that joining saves a gate and raises the error.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from bloomtide.reference.history import Sizes, p_cm, p_filter, p_mbf
from spans.arrays import Segment
from spans.formulas import ABSENT, SEED, windows
from trials.outcome import Claim, Outcome, Row

WAYS = ("rows", "MBFs")


def compressions(n2: int, rows: int, rate: float, asked: int, steps: int) -> Outcome:
    """Both ways, for fresh and recurring keys."""
    sizes = Sizes(n2, rows, rate, rate)
    table: list[Row] = []
    for kind in ("fresh", "recurring"):
        table += _rows_merged(kind, sizes, asked, steps)
        table += _joined(kind, sizes, asked, steps)
    fresh, same, gates = (
        [row for row in table if (row["stream"], row["way"]) == chosen]
        for chosen in (("fresh", "rows"), ("recurring", "rows"), ("fresh", "MBFs"))
    )
    claims = [
        _kept("recurring", same),
        _kept("fresh", fresh),
        Claim(
            "fresh keys, after each merge of rows: P_FF over the repaired formula",
            "1",
            ", ".join(f"{row['P_FF'] / row['formula']:.2f}" for row in fresh),
            all(0.8 <= row["P_FF"] / row["formula"] <= 1.25 for row in fresh),
        ),
        Claim(
            "space after merging rows, of the space before",
            "0.5",
            f"{fresh[1]['bits'] / fresh[0]['bits']:.2f}",
            fresh[1]["bits"] / fresh[0]["bits"] <= 0.65,
        ),
        Claim(
            "joining MBFs of fresh keys: P_BF after each doubling",
            "rises",
            ", ".join(f"{row['P_BF']:.2%}" for row in gates),
            all(a["P_BF"] < b["P_BF"] for a, b in pairwise(gates)),
        ),
        Claim(
            "joining two MBFs: space saved, of the two",
            "a gate",
            f"{1 - gates[1]['bits'] / (2 * gates[0]['bits']):.1%}",
            gates[1]["bits"] < 2 * gates[0]["bits"],
        ),
    ]
    return Outcome(table, claims)


def _kept(kind: str, table: list[Row]) -> Claim:
    before, after = table[0]["P_FF"], table[1]["P_FF"]
    text = f"merging rows of {kind} keys keeps the error of the whole MBF"
    return Claim(text, "unchanged", f"{before:.2%} to {after:.2%}", after <= 1.1 * before)


def _segment(kind: str, sizes: Sizes, number: int) -> tuple[Segment, list[np.ndarray]]:
    made, streams = Segment(sizes), list(windows(kind, sizes, SEED + number))
    for keys in streams:
        made.add_row(keys)
    return made, streams


def _row(kind: str, way: str, step: int, segment: Segment, streams: list[np.ndarray]) -> Row:
    keys, truth = np.unique(np.concatenate(streams), return_counts=True)
    upper = segment.counts(keys).sum(axis=1)
    assert (upper >= truth).all(), "a compression lowered a count"
    wrong = float((upper != truth).mean())
    return {"stream": kind, "way": way, "step": step, "rows": len(segment.rows), "P_FF": wrong}


def _rows_merged(kind: str, sizes: Sizes, asked: int, steps: int) -> list[Row]:
    segment, streams = _segment(kind, sizes, 0)
    absent = ABSENT + np.arange(asked)
    table = []
    for step in range(steps + 1):
        row = _row(kind, "rows", step, segment, streams)
        load = sizes.n2 * (2**step if kind == "fresh" else 1)
        count = len(segment.rows) if kind == "fresh" else 1
        row["P_BF"] = float(segment.passes(absent).mean())
        row["formula"] = p_cm(p_filter(sizes.m2, sizes.k2, load), count)
        row["P_FP"] = float((segment.passes(absent) & segment.counts(absent).any(axis=1)).mean())
        table.append(row | {"bits": segment.bits()})
        segment.merge_rows()
    return table


def _joined(kind: str, sizes: Sizes, asked: int, steps: int) -> list[Row]:
    absent = ABSENT + np.arange(asked)
    table = []
    for step in range(steps + 1):
        segment, streams = _segment(kind, sizes, 0)
        for number in range(1, 2**step):
            other, more = _segment(kind, sizes, number if kind == "fresh" else 0)
            segment.join(other)
            streams += more
        row = _row(kind, "MBFs", step, segment, streams)
        load = sizes.n1 * 2**step if kind == "fresh" else sizes.n2
        p_bf = p_filter(sizes.m1, sizes.k1, load)
        count = len(segment.rows) if kind == "fresh" else 1
        row["P_BF"] = float(segment.passes(absent).mean())
        row["formula"] = p_mbf(p_bf, p_cm(p_filter(sizes.m2, sizes.k2, sizes.n2), count))
        row["P_FP"] = float((segment.passes(absent) & segment.counts(absent).any(axis=1)).mean())
        table.append(row | {"bits": segment.bits()})
    return table
