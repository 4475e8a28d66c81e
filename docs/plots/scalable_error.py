"""A scalable filter while it grows: its error beside that of a plain filter, and its memory."""

# ruff: noqa: T201

from __future__ import annotations

import numpy as np

from bloomtide import BloomFilter, ScalableBloomFilter
from docs.plots.style import BLUE, GREY, ORANGE, save, two_plots

FIRST = 1024
ERROR = 0.01
MOST = 2_000_000
PROBES = 500_000

growing = ScalableBloomFilter(FIRST, ERROR)
fixed = BloomFilter(FIRST, ERROR)
absent = np.arange(PROBES) + 10**12
# Before and after each new layer, where the memory jumps, and some between. Keys that were taken
# for known ones fill no layer, so a layer lasts a little longer than its capacity.
before_jump = FIRST * (2 ** np.arange(1, 11) - 1)
after_jump = (before_jump * 1.01).astype(int)
between = np.logspace(2, np.log10(MOST), 40).astype(int)
points = np.unique(np.concatenate([before_jump, after_jump, between]))

measured, expected, overfull, spent, known = [], [], [], [], []
before = 0
print(f"capacity {FIRST}, error_rate {ERROR}, {PROBES} absent keys at each step")
for inside in points:
    keys = np.arange(before, inside)
    growing.add_many(keys)
    fixed.add_many(keys)
    before = inside
    stats = growing.stats()
    measured.append(float(growing.contains_many(absent).mean()))
    expected.append(stats.predicted_error)
    overfull.append(float(fixed.contains_many(absent).mean()))
    spent.append(stats.bytes * 8 / inside)
    known.append(BloomFilter.plan(int(inside), ERROR).bytes * 8 / inside)

print(f"largest measured error {max(measured):.3%}, largest prediction {max(expected):.3%}")
print(f"{MOST} keys: {len(stats.layers)} layers, measured {measured[-1]:.3%}")
print(f"{MOST} keys: {spent[-1]:.1f} bits a key, a filter planned for them {known[-1]:.1f}")
for moment in (before_jump[-1], after_jump[-1]):
    print(f"{moment} keys: {spent[list(points).index(moment)]:.1f} bits a key")
for layer in stats.layers:
    print(
        f"layer of {layer.capacity}: share {layer.error_rate:.6f}, "
        f"now {layer.predicted_error:.6f}, {layer.bytes * 8 / (layer.capacity or 1):.1f} bits a key"
    )

print(f"bits a key when {MOST} keys are inside, error_rate {ERROR}:")
for first in (FIRST, 100_000):
    for growth, tightening in ((2, 0.5), (2, 0.85), (4, 0.5), (4, 0.85)):
        other = ScalableBloomFilter(first, ERROR, growth=growth, tightening=tightening)
        other.add_many(np.arange(MOST))
        total = other.stats()
        print(
            f"capacity {first}, growth {growth}, tightening {tightening}: "
            f"{total.bytes * 8 / MOST:.1f}, {len(total.layers)} layers"
        )

figure, (left, right) = two_plots()
left.plot(points, overfull, color=BLUE, label=f"BloomFilter made for {FIRST}")
left.plot(points, expected, color=ORANGE, label="scalable, stats()")
left.plot(points, measured, "o", color=ORANGE, markersize=4, label="scalable, measured")
left.axhline(ERROR, color=GREY, linestyle="--", linewidth=1)
left.text(MOST, ERROR * 1.25, "error rate asked for", ha="right")
left.set(xscale="log", yscale="log", xlabel="keys inside", ylabel="false-positive rate")
left.set_ylim(1e-5, 2)
left.legend(loc="lower right")

right.plot(points, spent, color=ORANGE, label="scalable")
right.plot(points, known, color=BLUE, label="BloomFilter planned for the number")
right.set(xscale="log", xlabel="keys inside", ylabel="bits per key", ylim=(0, 70))
right.legend(loc="upper right")
save(figure, "scalable-error")
