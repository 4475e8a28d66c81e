"""E2, figure 3: bytes of basic and optimized layout by lambda; `space`: by length of the stream."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log2
from pathlib import Path

import numpy as np
import numpy.typing as npt

from decay.setting import LAYOUTS, SETTINGS, Fading
from decay.traffic import Traffic, generated, logs
from trials.outcome import Claim, Outcome, Row
from trials.timing import timed

REAL = ("web server 2018", "news links 2022")
SAMPLES = 20
"""Memory is looked at this often; the largest is kept."""


def paper_bytes(units: npt.NDArray[np.int64]) -> tuple[float, float]:
    """What the paper's layout takes for these cells: without the links, and with them.

    Section 4.1: for each cell a bit and a digit of 4 bits, and a pool of m/2 digits, more if that
    is not enough. A link in the lookup table names a cell and a digit of the pool.
    """
    cells = len(units)
    extra = sum(float(np.sum(units >= 16**digit)) for digit in range(1, 9))
    bits = 5 * cells + 4 * max(cells / 2, extra)
    link = ceil(log2(cells)) + ceil(log2(max(cells / 2, extra)))
    return bits / 8, (bits + link * extra) / 8


def _watched(stream: Traffic) -> Iterator[tuple[int, npt.NDArray[np.int64], bool]]:
    """Epoch, visits, and whether to look."""
    epochs = list(stream.by_epoch())
    step = -(-len(epochs) // SAMPLES)
    for number, (epoch, pages) in enumerate(epochs, 1):
        yield epoch, pages, number % step == 0 or number == len(epochs)


def _figures(stream: Traffic, setting: str, decay: float) -> Row:
    """The layouts side by side: their memory, and every answer beside that of the first."""
    options = SETTINGS[setting]
    filters = {
        layout: Fading(stream.distinct, decay, storage=layout, **options) for layout in LAYOUTS
    }
    first = filters["basic"]
    seen: dict[str, list[float]] = {}
    compared = different = 0
    for epoch, pages, look in _watched(stream):
        for filter in filters.values():
            filter.add_many(epoch, pages)
        keys = first.keys if look else np.unique(pages)
        basic, *others = (filter.counts_of(keys) for filter in filters.values())
        compared += len(keys) * len(others)
        different += sum(int(np.sum(basic != other)) for other in others)
        if not look:
            continue
        units = first.units(options["fraction_bits"])
        bare, linked = paper_bytes(units)
        figures = {f"{name}_bytes": filter.stats().bytes for name, filter in filters.items()}
        figures |= {"paper_bytes": bare, "paper_linked_bytes": linked}
        figures["extended"] = float(np.mean(units > 15))
        for name, value in figures.items():
            seen.setdefault(name, []).append(value)
    return {
        "stream": stream.name,
        "setting": setting,
        "decay": decay,
        "cells": len(units),
        "saturated": int(bool(first.stats().saturated)),
        **{name: max(values) for name, values in seen.items()},
        "compared": compared,
        "different": different,
    }


def _create(stream: Traffic, setting: str, decay: float, layout: str) -> float:
    """Seconds for all visits."""
    filter = Fading(stream.distinct, decay, storage=layout, **SETTINGS[setting])
    epochs = list(stream.by_epoch())

    def create() -> None:
        for epoch, pages in epochs:
            filter.add_many(epoch, pages)

    return timed(create)


def e2(
    data: Path | None,
    limit: int,
    shape: tuple[int, int, int],
    decays: tuple[float, ...],
    runs: int,
) -> Outcome:
    """Figure 3 from real logs and generated traffic, answers, creation time: the best of `runs`."""
    rows: list[Row] = []
    claims: list[Claim] = []
    for stream in (generated(*shape), *logs(data, REAL, limit)):
        for setting in SETTINGS:
            of = []
            for decay in decays:
                row = _figures(stream, setting, decay)
                tries = [
                    [_create(stream, setting, decay, layout) for layout in LAYOUTS]
                    for _ in range(runs)
                ]
                for layout, seconds in zip(LAYOUTS, zip(*tries, strict=True), strict=True):
                    row[f"{layout}_seconds"] = min(seconds)
                of.append(row)
            rows += of
            claims += _claims(f"{stream.name}, {setting}", of)
    return Outcome(rows, claims)


def _claims(name: str, rows: list[Row]) -> list[Claim]:
    fading = [row for row in rows if row["decay"] <= 0.5]
    bare = [row["paper_bytes"] / row["basic_bytes"] for row in fading]
    linked = [row["paper_linked_bytes"] / row["basic_bytes"] for row in fading]
    lost = [row["decay"] for row in rows if row["paper_linked_bytes"] > row["basic_bytes"]]
    told = f"from {lost[0]:g} on" if lost else f"not up to {rows[-1]['decay']:g}"
    up_to = "lambda up to 0.5"
    claims = [
        Claim(f"{name}: the paper's layout over basic, no links, {up_to}", "0.5", *_span(bare)),
        Claim(f"{name}: the same with links", "0.5", *_span(linked)),
        Claim(f"{name}: lambda from which it needs more than basic", "none", told, not lost),
    ]
    for layout in LAYOUTS[1:]:
        ratios = [row[f"{layout}_bytes"] / row["basic_bytes"] for row in rows]
        slower = [row[f"{layout}_seconds"] / row["basic_seconds"] for row in rows]
        different = sum(row["different"] for row in rows)
        answers = f"{different} of {sum(row['compared'] for row in rows) / 1e6:.1f} M"
        most, middle = max(ratios), float(np.median(slower))
        spread = f"{middle:.2f}x, at most {max(slower):.2f}x"
        claims += [
            Claim(f"{name}: {layout} over basic, {up_to}", "0.5", *_span(ratios[: len(fading)])),
            Claim(f"{name}: at any lambda", "", f"at most {most:.2f}", most <= 1.1),
            Claim(f"{name}: creation over basic's", "1.1x", spread, middle <= 1.25),
            Claim(f"{name}: answers that differ", "none", answers, different == 0),
        ]
    return claims


def _span(ratios: list[float]) -> tuple[str, bool]:
    """From the smallest to the largest, and whether that is about a half."""
    return f"{min(ratios):.2f} to {max(ratios):.2f}", max(ratios) <= 0.55


def space(shape: tuple[int, int, int], decays: tuple[float, ...], drift: float) -> Outcome:
    """Section 2, goal 3: memory does not depend on the length of the stream."""
    stream = generated(*shape, drift=drift)
    rows: list[Row] = []
    claims: list[Claim] = []
    for decay in decays:
        for layout in LAYOUTS:
            filter = Fading(stream.distinct, decay, storage=layout, rounding="expiring")
            visits = 0
            of: list[Row] = []
            for epoch, pages, look in _watched(stream):
                filter.add_many(epoch, pages)
                visits += len(pages)
                if look:
                    size = filter.stats().bytes
                    of.append({"decay": decay, "storage": layout, "visits": visits, "bytes": size})
            rows += of
            half = len(of) // 2
            first = max(row["bytes"] for row in of[:half])
            growth = max(row["bytes"] for row in of[half:]) / first
            text = f"lambda {decay:g}, {layout}: bytes in the second half over the first"
            claims.append(Claim(text, "1", f"{growth:.3f}", growth <= 1.02))
    return Outcome(rows, claims)
