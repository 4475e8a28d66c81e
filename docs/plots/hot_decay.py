"""Three pages that are hot one after the other, in a hot list with a half-life of 10 minutes."""

# ruff: noqa: T201

from __future__ import annotations

import numpy as np

from bloomtide import HotList
from docs.plots.style import BLUE, GREEN, GREY, ORANGE, one_plot, save

MINUTES = 120
PAGES = {"/news": (10, ORANGE), "/shop": (50, BLUE), "/mail": (85, GREEN)}
draw = np.random.default_rng(1)
hot = HotList(20, half_life="10m")
seen: dict[str, list[float]] = {page: [] for page in PAGES}
totals = []
for minute in range(MINUTES):
    at = 1_700_000_000 + 60 * minute
    for page, (peak, _) in PAGES.items():
        visits = draw.poisson(60 * np.exp(-(((minute - peak) / 8) ** 2)))
        if visits:
            hot.add(page, int(visits), at)
    hot.add_many(draw.integers(0, 5000, 40), at=at)
    for page in PAGES:
        seen[page].append(hot.count(page, at=at))
    totals.append(hot.total(at=at) / hot.k)

for minute in (30, 60, 100):
    order = sorted(PAGES, key=lambda page: -seen[page][minute])
    print(f"minute {minute}: hottest {order[0]} with {seen[order[0]][minute]:.0f}")

figure, axes = one_plot()
for page, (_, colour) in PAGES.items():
    axes.plot(seen[page], color=colour, label=page)
axes.plot(totals, "--", color=GREY, label="total / k: above it a key is in the list for certain")
axes.set(xlabel="minute", ylabel="decayed count")
axes.legend(loc="upper left", fontsize=9)
save(figure, "hot-decay")
