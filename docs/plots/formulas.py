"""The error formulas of the documentation, written out once more, apart from the library."""

from __future__ import annotations

import math


def classic_error(keys: float, bits: int, hashes: int) -> float:
    """fill^k with the expected fill 1 - (1 - 1/m)^(kn)."""
    fill = -math.expm1(hashes * keys * math.log1p(-1 / bits))
    return fill**hashes


def blocked_error(keys: float, bits: int, hashes: int) -> float:
    """The mean over blocks that hold Poisson(n / blocks) keys each."""
    load = keys / (bits / 512)
    total = 0.0
    for held in range(int(load + 12 * math.sqrt(load) + 30)):
        chance = math.exp(held * math.log(load) - load - math.lgamma(held + 1))
        fill = 1 - (1 - hashes / 512) ** held
        total += chance * fill**hashes
    return total
