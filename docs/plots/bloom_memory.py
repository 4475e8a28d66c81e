"""Memory per key of the two layouts by error rate, and the least any set structure needs."""

# ruff: noqa: T201

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from bloomtide import BloomFilter
from docs.plots.style import BLUE, GREY, ORANGE, one_plot, save

CAPACITY = 1_000_000
CHANGE = 1e-4  # from here down the planner takes the classic layout


def bits_per_key(rate: float, layout: Literal["blocked", "classic"]) -> float:
    """What the planner would spend."""
    return BloomFilter.plan(CAPACITY, rate, layout=layout).bytes * 8 / CAPACITY


figure, axes = one_plot()
print(f"bits per key at capacity {CAPACITY}")
for rate in (0.1, 0.05, 0.01, 1e-3, 1e-4, 1e-5, 1e-6):
    blocked, classic = bits_per_key(rate, "blocked"), bits_per_key(rate, "classic")
    hashes = BloomFilter.plan(CAPACITY, rate, layout="blocked").hashes
    print(
        f"{rate:g}: blocked {blocked:.2f} (k = {hashes}), classic {classic:.2f}, "
        f"ratio {blocked / classic:.3f}"
    )

rates = np.logspace(-1, -6, 61)
axes.plot(rates, [bits_per_key(rate, "blocked") for rate in rates], color=ORANGE, label="blocked")
axes.plot(rates, [bits_per_key(rate, "classic") for rate in rates], color=BLUE, label="classic")
least = [math.log2(1 / rate) for rate in rates]
axes.plot(rates, least, color=GREY, linestyle=":", label=r"least possible, $\log_2(1/p)$")
axes.axvline(CHANGE, color=GREY, linestyle="--", linewidth=1)
axes.text(CHANGE * 1.2, 46, "blocked by default", ha="right")
axes.text(CHANGE / 1.2, 46, "classic by default", ha="left")
axes.set(xscale="log", xlabel="error rate p", ylabel="bits per key", ylim=(0, 50))
axes.invert_xaxis()
axes.legend(loc="upper left", bbox_to_anchor=(0, 0.88))
save(figure, "bloom-memory")
