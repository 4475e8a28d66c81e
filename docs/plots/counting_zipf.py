"""Counts of a skewed stream, true beside estimated, plain beside conservative.

The pictures show the blocked layout; the numbers of both are printed.
"""

# ruff: noqa: T201

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from bloomtide import CountingBloomFilter
from docs.plots.style import BLUE, GREY, ORANGE, save, two_plots

KEYS = 100_000
VISITS = 1_000_000
SEED = 20_000_711
SHOWN = 250  # keys in the left picture
SQUEEZE = 8  # how many times too small the filter of the left picture is
Policy = Literal["plain", "conservative"]
Layout = Literal["blocked", "classic"]
Counts = npt.NDArray[np.int64]
POLICIES: list[tuple[Policy, str]] = [("plain", BLUE), ("conservative", ORANGE)]

# Zipf(1.1) by its inverse: key r is visited in proportion to 1 / (r + 1)^1.1.
generator = np.random.default_rng(SEED)
weights = 1 / np.arange(1, KEYS + 1) ** 1.1
visits = np.searchsorted(np.cumsum(weights) / weights.sum(), generator.random(VISITS))
true = np.bincount(visits, minlength=KEYS)
seen = np.flatnonzero(true)
print(f"{VISITS} visits to {len(seen)} of {KEYS} keys, the busiest {true.max()} times")

shown = np.unique(np.logspace(0, np.log10(len(seen)), SHOWN).astype(int)) - 1
shown = seen[np.argsort(true[seen])[::-1][shown]]


def excess(capacity: int, policy: Policy, layout: Layout) -> tuple[Counts, Counts]:
    """Estimated counts of all keys, and by how much those of the seen ones are too high."""
    counting = CountingBloomFilter(capacity, 0.01, counter_bits=32, policy=policy, layout=layout)
    counting.add_many(visits)
    estimated = counting.count_many(np.arange(KEYS)).astype(np.int64)
    over = (estimated - true)[seen]
    assert over.min() >= 0, "a count below the truth"
    print(
        f"capacity {capacity}, {layout}, {policy}: {np.mean(over > 0):.2%} of counts wrong, "
        f"mean excess {over.mean():.3f}, 99th percentile {np.quantile(over, 0.99):.0f}, "
        f"worst {over.max()}"
    )
    return estimated, over


figure, (left, right) = two_plots()
for share, style in ((1, "--"), (SQUEEZE, "-")):
    for policy, colour in POLICIES:
        estimated, over = excess(len(seen) // share, policy, "blocked")
        if share == SQUEEZE:
            left.plot(true[shown], estimated[shown], "o", color=colour, markersize=3, label=policy)
        steps = np.arange(1, 200)
        shares = [np.mean(over >= step) for step in steps]
        label = f"{policy}, {'sized for the keys' if share == 1 else 'an eighth of that'}"
        right.plot(steps, shares, style, color=colour, label=label)
        excess(len(seen) // share, policy, "classic")

limits = [1, true.max()]
left.plot(limits, limits, color=GREY, linewidth=1, label="the truth")
left.set(xscale="log", yscale="log", xlabel="true count", ylabel="estimated count")
left.set_title("an eighth of the memory", fontsize=11)
left.legend(loc="upper left")
right.set(xscale="log", yscale="log", xlabel="too high by at least", ylabel="share of the keys")
right.set(xlim=(0.9, 900), ylim=(5e-6, 1))
right.legend(loc="upper right", fontsize=9)
save(figure, "counting-zipf")
