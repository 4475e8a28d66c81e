"""What the three derivations cost in a small classic filter: measured error over fill^k.

`enhanced` and `double` know m^2 different sets of cells, one for each start and step. So of n keys
one has the very cells of an absent key with the chance n/m^2, whatever k is.
"""

# ruff: noqa: T201

from __future__ import annotations

from typing import Literal

import numpy as np

from bloomery import BloomFilter
from docs.plots.style import BLUE, GREEN, GREY, ORANGE, one_plot, save

HASHES = 13
SIZES = [2**b for b in range(10, 20)]
PROBES = 4_000_000

Derivation = Literal["double", "enhanced", "slices"]
LOOKS: list[tuple[Derivation, str]] = [("double", BLUE), ("enhanced", ORANGE), ("slices", GREEN)]


def wrong(filled: BloomFilter, probes: int) -> float:
    """The share of absent keys called present."""
    pieces = range(0, probes, PROBES)
    absent = np.arange(PROBES) + 10**12
    return sum(int(filled.contains_many(absent + start).sum()) for start in pieces) / probes


figure, axes = one_plot()
print(f"bits given, hashes {HASHES}, keys for a fill of one half, {PROBES} absent keys")
for derivation, colour in LOOKS:
    ratios = []
    for bits in SIZES:
        keys = round(bits * np.log(2) / HASHES)
        filled = BloomFilter(bits=bits, hashes=HASHES, derivation=derivation)
        filled.add_many(np.arange(keys))
        predicted, measured = filled.stats().predicted_error, wrong(filled, PROBES)
        ratios.append(measured / predicted)
        print(
            f"{derivation}, {keys} keys in {bits} bits: fill^k {predicted:.3e}, "
            f"measured {measured:.3e}, ratio {ratios[-1]:.2f}"
        )
    axes.plot(SIZES, ratios, "o-", color=colour, markersize=5, label=derivation)

print("planned filters")
for capacity, rate, probes in ((100, 1e-6, PROBES), (1000, 1e-6, 10 * PROBES)):
    filled = BloomFilter(capacity, rate)
    filled.add_many(np.arange(capacity))
    print(
        f"BloomFilter({capacity}, {rate:g}) of {filled.bits} bits: "
        f"stats() {filled.stats().predicted_error:.2e}, n/m^2 {capacity / filled.bits**2:.2e}, "
        f"measured {wrong(filled, probes):.2e} of {probes} absent keys"
    )

axes.axhline(1, color=GREY, linestyle="--", linewidth=1)
axes.set_xscale("log", base=2)
axes.set(yscale="log", xlabel="bits m", ylabel=r"measured error / fill$^k$", yticks=[1, 2, 5, 10])
axes.set_yticklabels(["1", "2", "5", "10"])
axes.set_ylim(0.7, 6)
axes.minorticks_off()
axes.legend()
save(figure, "derivations")
