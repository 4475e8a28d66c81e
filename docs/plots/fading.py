"""A burst and a steady key under three half-lives; memory of the layouts under Zipf traffic."""

# ruff: noqa: T201

from __future__ import annotations

from typing import Literal

import numpy as np

from bloomtide import TimeDecayingBloomFilter
from docs.plots.style import BLUE, GREEN, GREY, ORANGE, save, two_plots

HOUR = 3600
DAY = 1_700_000_000 // 86_400 * 86_400
LAYOUTS: tuple[Literal["basic", "optimized"], ...] = ("basic", "optimized")

figure, (left, right) = two_plots()

# A page that is asked for 60 times an hour, and 600 times an hour between 6 and 8 o'clock.
hits = [(minute, 10 if 6 * 60 <= minute < 8 * 60 else 1) for minute in range(24 * 60)]
left.step([m / 60 for m, _ in hits], [60 * c for _, c in hits], color=GREY, label="true")
for half_life, colour in (("15m", ORANGE), ("1h", BLUE), ("4h", GREEN)):
    page = TimeDecayingBloomFilter(1000, half_life=half_life)
    seen = []
    for minute, count in hits:
        moment = DAY + minute * 60
        page.add("/", count, at=moment)
        seen.append(page.rate("/", "1h", at=moment))
    left.plot([m / 60 for m, _ in hits], seen, color=colour, label=f"half-life {half_life}")
    print(f"half-life {half_life}: rate at 8:00 {seen[8 * 60 - 1]:.0f}, at 9:00 {seen[9 * 60]:.0f}")
left.set(xlabel="hour of the day", ylabel="rate per hour", title="two busy hours")
left.legend()

# Pages of a Zipf law; the filter is full, and thirty epochs have passed.
KEYS, EVENTS = 50_000, 100_000
weights = 1 / np.arange(1, KEYS + 1) ** 1.1
draw = np.random.default_rng(20_260_131)
epochs = [draw.choice(KEYS, EVENTS, p=weights / weights.sum()) for _ in range(30)]
decays = (0.1, 0.3, 0.5, 0.7, 0.9, 0.97)
for layout, colour in zip(LAYOUTS, (GREY, BLUE), strict=True):
    bits = []
    for decay in decays:
        made = TimeDecayingBloomFilter(KEYS, decay=decay, epoch=HOUR, storage=layout)
        for number, pages in enumerate(epochs):
            made.add_many(pages, at=DAY + number * HOUR)
        stats = made.stats(made.time)
        bits.append(stats.bytes * 8 / stats.cells)
    right.plot(decays, bits, color=colour, marker="o", label=layout)
    told = ", ".join(f"{d}: {b:.1f}" for d, b in zip(decays, bits, strict=True))
    print(f"{layout}: bits a cell at decay {told}")
right.set(xlabel="decay of an epoch", ylabel="bits a cell", title="memory, everything counted")
right.set_ylim(0)
right.legend()

save(figure, "fading")
