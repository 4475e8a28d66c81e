"""The error of a Bloom filter while it fills: measured beside the formula, for both layouts."""

# ruff: noqa: T201

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from bloomtide import BloomFilter
from docs.plots.formulas import blocked_error, classic_error
from docs.plots.style import BLUE, GREY, ORANGE, one_plot, save

CAPACITY = 100_000
ERROR = 0.01
STEPS = 20  # up to twice the capacity
PROBES = 2_000_000  # absent keys asked for at each step

Layout = Literal["classic", "blocked"]
# Rings for one and dots for the other, since they meet.
LOOKS: list[tuple[Layout, Callable[[float, int, int], float], str, str, int]] = [
    ("classic", classic_error, BLUE, "full", 5),
    ("blocked", blocked_error, ORANGE, "none", 10),
]

figure, axes = one_plot()
print(f"capacity {CAPACITY}, error_rate {ERROR}, {PROBES} absent keys at each step")
absent = np.arange(PROBES) + 10**12

for layout, formula, colour, fillstyle, size in LOOKS:
    filled = BloomFilter(CAPACITY, ERROR, layout=layout)
    loads, measured, expected = [], [], []
    for step in range(1, STEPS + 1):
        inside = step * CAPACITY // 10
        filled.add_many(np.arange(inside - CAPACITY // 10, inside))
        loads.append(inside / CAPACITY)
        measured.append(float(filled.contains_many(absent).mean()))
        expected.append(formula(inside, filled.bits, filled.hashes))
        if step % 5 == 0:
            stats = filled.stats()
            print(
                f"{layout}: {inside} keys, fill {stats.fill:.3f}, formula {expected[-1]:.3%}, "
                f"stats() {stats.predicted_error:.3%}, measured {measured[-1]:.3%}"
            )
    axes.plot(loads, expected, color=colour, label=f"{layout}, formula")
    (dots,) = axes.plot(loads, measured, "o", color=colour, label=f"{layout}, measured")
    dots.set(fillstyle=fillstyle, markersize=size)

axes.axhline(ERROR, color=GREY, linestyle="--", linewidth=1)
axes.axvline(1, color=GREY, linestyle="--", linewidth=1)
axes.text(0.98, 7e-6, "capacity", ha="right")
axes.text(2, ERROR * 0.9, "error rate asked for", ha="right", va="top")
axes.set(yscale="log", xlabel="keys inside / capacity", ylabel="false-positive rate")
axes.set(xlim=(0.25, 2.05), ylim=(5e-6, 1))
axes.legend(loc="lower right")
save(figure, "bloom-error")
