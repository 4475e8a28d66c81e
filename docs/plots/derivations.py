"""What a derivation costs in a small classic filter: measured error over fill^k.

Enhanced double hashing as published has a start and a step, so m^2 different sets of cells. One of
n keys has the very cells of an absent key with the chance n/m^2, whatever k is. The library has
four start values instead; the published formula is computed here, from random digests.
"""

# ruff: noqa: T201

from __future__ import annotations

from typing import Literal

import numpy as np

from bloomtide import BloomFilter
from docs.plots.style import BLUE, GREEN, GREY, ORANGE, one_plot, save

HASHES = 16
SIZES = [2**b for b in range(8, 18)]
PIECE = 1_000_000
PROBES = 12 * PIECE
SEEDS = 1000
SEED = 20_040_615

Derivation = Literal["double", "enhanced", "slices"]
LOOKS: list[tuple[Derivation, str]] = [("double", BLUE), ("slices", GREEN), ("enhanced", ORANGE)]

generator = np.random.default_rng(SEED)


def wrong(filled: BloomFilter, probes: int) -> float:
    """The share of absent keys called present."""
    pieces = range(0, probes, PIECE)
    absent = np.arange(PIECE) + 10**12
    return sum(int(filled.contains_many(absent + start).sum()) for start in pieces) / probes


def published(keys: int, bits: int, hashes: int, probes: int) -> tuple[float, float]:
    """x + i y + (i^3 - i)/6 mod m with random x and y: fill^k, and the share called present."""
    cells = np.zeros(bits, dtype=bool)
    x, y = generator.integers(0, bits, (2, keys))
    for i in range(hashes):
        cells[(x + i * y + (i**3 - i) // 6) % bits] = True
    present = 0
    for _ in range(0, probes, PIECE):
        x, y = generator.integers(0, bits, (2, PIECE))
        for i in range(hashes):
            found = cells[(x + i * y + (i**3 - i) // 6) % bits]
            x, y = x[found], y[found]
        present += len(x)
    return float(cells.mean()) ** hashes, present / probes


figure, axes = one_plot()
print(f"bits given, hashes {HASHES}, keys for a fill of one half, {PROBES} absent keys")
ratios = []
for bits in SIZES:
    keys = round(bits * np.log(2) / HASHES)
    expected, measured = published(keys, bits, HASHES, PROBES)
    ratios.append(measured / expected)
    print(f"published, {keys} keys in {bits} bits: fill^k {expected:.3e}, ratio {ratios[-1]:.2f}")
axes.plot(SIZES, ratios, "o--", color=GREY, markersize=5, label="enhanced as published")
for derivation, colour in LOOKS:
    ratios = []
    for bits in SIZES:
        keys = round(bits * np.log(2) / HASHES)
        filled = BloomFilter(bits=bits, hashes=HASHES, paper={"derivation": derivation})
        filled.add_many(np.arange(keys))
        stats, measured = filled.stats(), wrong(filled, PROBES)
        expected = stats.fill**HASHES
        ratios.append(measured / expected)
        print(
            f"{derivation}, {keys} keys in {bits} bits: fill^k {expected:.3e}, "
            f"stats() {stats.predicted_error:.3e}, measured {measured:.3e}, ratio {ratios[-1]:.2f}"
        )
    axes.plot(SIZES, ratios, "o-", color=colour, markersize=5, label=derivation)

print("planned filters, filled to capacity")
for capacity, rate, probes in (
    (100, 1e-6, 40 * PIECE),
    (1000, 1e-6, 40 * PIECE),
    (1000, 1e-9, 40 * PIECE),
    (10, 1e-9, 80 * PIECE),
):
    filled = BloomFilter(capacity, rate)
    filled.add_many(np.arange(capacity))
    _, before = published(capacity, filled.bits, filled.hashes, probes)
    print(
        f"BloomFilter({capacity}, {rate:g}) of {filled.bits} bits: n/m^2 "
        f"{capacity / filled.bits**2:.2e}, published formula {before:.2e}; "
        f"stats() {filled.stats().predicted_error:.2e}, measured {wrong(filled, probes):.2e} "
        f"of {probes} absent keys"
    )

# Steps that are multiples of m/2, m/3, ... meet few cells. With k = 40 nothing else is seen. The
# planner takes only sizes like the second of each pair, without small divisors.
print("enhanced, 40 hashes, half full, ten seeds")
for bits in (360, 367, 720, 727):
    measured = said = 0.0
    for seed in range(10):
        filled = BloomFilter(bits=bits, hashes=40, seed=seed)
        filled.add_many(np.arange(round(bits * np.log(2) / 40)))
        measured += wrong(filled, 2 * PIECE) / 10
        said += filled.stats().predicted_error / 10
    print(f"{bits} bits: stats() {said:.2e}, measured {measured:.2e} of {20 * PIECE}")

# The planner works with the expected fill; one filter's fill lies beside it.
print(f"stats() of full filters over the error rate asked for, {SEEDS} seeds")
for capacity, rate in ((10, 1e-5), (100, 1e-5), (1000, 1e-5)):
    errors = []
    for seed in range(SEEDS):
        filled = BloomFilter(capacity, rate, seed=seed)
        filled.add_many(np.arange(capacity))
        errors.append(filled.stats().predicted_error / rate)
    low, high = np.quantile(errors, [0.05, 0.95])
    print(
        f"BloomFilter({capacity}, {rate:g}): mean {np.mean(errors):.2f}, "
        f"nine of ten from {low:.2f} to {high:.2f}"
    )

axes.axhline(1, color=GREY, linewidth=1)
axes.set_xscale("log", base=2)
axes.set(yscale="log", xlabel="bits m", ylabel=r"measured error / fill$^k$", yticks=[1, 10, 100])
axes.set_yticklabels(["1", "10", "100"])
axes.set_ylim(0.5, 200)
axes.minorticks_off()
axes.legend()
save(figure, "derivations")
