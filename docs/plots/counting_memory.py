"""Counters per key of the two layouts by error rate: what it costs to keep a key in one block."""

# ruff: noqa: T201

from __future__ import annotations

from typing import Literal

import numpy as np

from bloomtide import CountingBloomFilter, Plan
from docs.plots.style import BLUE, GREY, ORANGE, one_plot, save

CAPACITY = 1_000_000
CHANGE = 0.005  # below it the planner takes the classic layout


def planned(rate: float, layout: Literal["blocked", "classic"]) -> Plan:
    """What the planner would make."""
    return CountingBloomFilter.plan(CAPACITY, rate, layout=layout)


figure, axes = one_plot()
print(f"counters per key at capacity {CAPACITY}")
for rate in (0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 1e-3, 1e-4, 1e-6):
    blocked, classic = planned(rate, "blocked"), planned(rate, "classic")
    print(
        f"{rate:g}: blocked {blocked.cells / CAPACITY:.2f} (k = {blocked.hashes}), "
        f"classic {classic.cells / CAPACITY:.2f} (k = {classic.hashes}), "
        f"ratio {blocked.cells / classic.cells:.3f}"
    )

rates = np.logspace(np.log10(0.2), -4, 61)
for layout, colour in (("blocked", ORANGE), ("classic", BLUE)):
    cells = [planned(rate, layout).cells / CAPACITY for rate in rates]  # type: ignore[arg-type]
    axes.plot(rates, cells, color=colour, label=layout)
axes.axvline(CHANGE, color=GREY, linestyle="--", linewidth=1)
axes.text(CHANGE * 1.1, 31, "blocked by default", ha="right")
axes.text(CHANGE / 1.1, 31, "classic by default", ha="left")
axes.set(xscale="log", xlabel="error rate p", ylabel="counters per key", ylim=(0, 34))
axes.invert_xaxis()
axes.legend(loc="upper left", bbox_to_anchor=(0, 0.88))
save(figure, "counting-memory")
