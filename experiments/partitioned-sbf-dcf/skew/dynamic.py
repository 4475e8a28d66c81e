"""Filters in use: E9 (mixed operations in random order) and the longest pause of a long stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from skew.setting import SEED, Counts, Filter, even_partitions, make, rebuild_figures
from trials.outcome import Claim, Outcome, Row
from trials.streams import Keys, zipf
from trials.timing import timed

SEGMENTS = 30
"""Memory is looked at this often; its peak is the largest seen."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Operations, one after the other: 1 inserts, -1 deletes, 0 asks."""

    changes: Counts
    keys: Keys


def mixed(n: int, operations: int, step: int, draw: int = 0) -> Workload:
    """Section 7.2: in each time step theta is drawn from 0 to 2 and the mix of verbs at random.

    The paper does not say what is deleted. Here it is any occurrence that is present, each with the
    same chance, so that hot keys go as they come. What is asked for follows the inserts.
    """
    random = np.random.default_rng(SEED + draw)
    present: list[int] = []
    changes: list[int] = []
    keys: list[int] = []
    for _ in range(operations // step):
        theta = float(random.integers(41)) / 20  # a grid, so that the sums over ranks are kept
        kinds = random.choice(3, step, p=random.dirichlet([1, 1, 1])).tolist()
        drawn = zipf(random, n, theta, step).tolist()
        for verb, key, chance in zip(kinds, drawn, random.random(step).tolist(), strict=True):
            if verb == 1 and present:
                at = int(chance * len(present))
                present[at], present[-1] = present[-1], present[at]
                changes.append(-1)
                keys.append(present.pop())
                continue
            if verb != 2:
                present.append(key)
            changes.append(1 if verb != 2 else 0)
            keys.append(key)
    return Workload(np.array(changes), np.array(keys))


def run(counts: Filter, workload: Workload) -> Row:
    """One operation after the other: their order is the point. Memory is sampled off the clock."""
    length = -(-len(workload.keys) // SEGMENTS)
    seconds, peak = 0.0, 0
    for start in range(0, len(workload.keys), length):
        part = slice(start, start + length)
        seconds += timed(counts.change_many, workload.keys[part], workload.changes[part])
        peak = max(peak, counts.stats().bytes)
    return {"seconds": seconds, **rebuild_figures(counts), "bytes": peak}


def e9(
    sizes: tuple[int, ...], operations: int, steps: tuple[int, ...], many: int, draws: int
) -> Outcome:
    """Inserts, deletes and queries in random order on all four, DCF and PDCF in two modes.

    c is Eq. 3's for the rebuild time and the rate seen with one partition; `many` is a number of
    partitions far above it. How often a hot counter
    crosses a power of two is luck: the first step length is drawn several times.
    """
    rows: list[Row] = []
    for n in sizes:
        for step in steps:
            for draw in range(draws if step == steps[0] else 1):
                workload = mixed(n, operations, step, draw)
                for mode in ("paper", "ours"):
                    label = {"n": n, "step": step, "draw": draw, "mode": mode}
                    rows += [{**label, **row} for row in _four(n, workload, mode, many)]
    return Outcome(rows, _dynamic_claims(rows))


def _four(n: int, workload: Workload, mode: str, many: int) -> Iterator[Row]:
    """DCF, PDCF with few and with many partitions; SBF, PSBF, which have no mode but ours."""
    dcf: dict[str, Any] = {"shrink": 1.0 if mode == "paper" else 0.5}
    counts = make("DCF", n, 10 * n, **dcf)
    row = run(counts, workload)
    yield {"filter": "DCF", **row}
    rate = len(workload.keys) / (row["seconds"] - row["rebuild_seconds"])
    cells = counts.stats().cells
    c = even_partitions(cells, row["mean_rebuild_us"] * 1e-6, rate)
    others: list[tuple[str, dict[str, Any]]] = [
        ("PDCF", {**dcf, "partitions": c}),
        ("PDCF", {**dcf, "partitions": min(many, cells)}),
    ]
    if mode == "ours":
        others += [("SBF", {}), ("PSBF", {"partitions": c})]
    for name, options in others:
        yield {"filter": name, **run(make(name, n, 10 * n, **options), workload)}


def _dynamic_claims(rows: list[Row]) -> list[Claim]:
    claims = []
    n, step = rows[-1]["n"], rows[0]["step"]

    def of(mode: str, filters: int) -> list[list[Row]]:
        those = [row for row in rows if (row["n"], row["step"], row["mode"]) == (n, step, mode)]
        return [those[place::filters] for place in range(filters)]

    *_, sbf, psbf = of("ours", 5)
    for mode, filters in (("paper", 3), ("ours", 5)):
        dcf, few, many, *_ = of(mode, filters)
        claims += [_faster(mode, dcf, parts, 9) for parts in (few, many)]
        if mode == "ours":
            claims.append(_faster(mode, sbf, psbf, 15))
        for parts in (few, many):
            share = max(row["bytes"] for row in parts) / max(row["bytes"] for row in psbf)
            text = f"{mode} mode: peak memory of PDCF (c = {parts[0]['partitions']}) over PSBF's"
            claims.append(Claim(text, "under 0.2", f"{share:.2f}", share < 0.2))
    return claims


def _faster(mode: str, one: list[Row], parts: list[Row], bound: int) -> Claim:
    theirs = {("DCF", "paper"): "9.1x", ("SBF", "ours"): "15.8x"}.get((one[0]["filter"], mode), "")
    gains = [a["seconds"] / b["seconds"] for a, b in zip(one, parts, strict=True)]
    text = (
        f"{mode} mode, step {one[0]['step']}: {parts[0]['filter']} (c = {parts[0]['partitions']}) "
        f"at least {bound}x faster than {one[0]['filter']}"
    )
    # The figures in brackets are those of the draw in the middle.
    at = sorted(range(len(gains)), key=lambda draw: gains[draw])[len(gains) // 2]
    a, b = one[at], parts[at]
    alone = a["rebuild_seconds"] / max(b["rebuild_seconds"], 1e-9)
    ours = (
        f"{gains[at]:.1f}x, {min(gains):.1f}x to {max(gains):.1f}x over {len(gains)} draws "
        f"({a['seconds']:.2f} s with {a['rebuilds']} rebuilds, {b['seconds']:.2f} s with "
        f"{b['rebuilds']}); rebuilds alone {a['rebuild_seconds']:.3f} s and "
        f"{b['rebuild_seconds']:.3f} s, {alone:.1f}x"
    )
    return Claim(text, theirs, ours, gains[at] >= bound)


def pause(
    n: int, operations: int, runs: int, theta: float, partitions: tuple[int | str, ...]
) -> Outcome:
    """The longest rebuild in a long skewed stream, best of some runs: the rest is the system's."""
    random = np.random.default_rng(SEED)
    keys = zipf(random, n, theta, operations * 8 // 10)
    gone = random.permutation(keys)[: operations - len(keys)]
    rows: list[Row] = []
    for name, options in [("DCF", {}), *(("PDCF", {"partitions": c}) for c in partitions)]:
        best: Row = {}
        for number in range(runs):
            counts = make(name, n, len(keys), **{"shrink": 0.5, **options})
            seconds = timed(counts.add_many, keys)
            seconds += timed(counts.remove_many, gone)
            row = {"filter": name, "run": number, "seconds": seconds, **rebuild_figures(counts)}
            if not best or row["longest_rebuild_us"] < best["longest_rebuild_us"]:
                best = row
        rows.append(best)
    whole = rows[0]["longest_rebuild_us"]
    claims = []
    for row in rows[1:]:
        gain = whole / row["longest_rebuild_us"]
        text = f"longest pause of PDCF (c = {row['partitions']}) at least 20x shorter than DCF's"
        ours = f"{gain:.0f}x ({whole:.0f} us and {row['longest_rebuild_us']:.0f} us)"
        claims.append(Claim(text, "", ours, gain >= 20))
    return Outcome(rows, claims)
