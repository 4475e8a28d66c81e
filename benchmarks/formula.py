"""The least memory each layout needs for an error rate, computed apart from the library.

The planner's sizes are compared with these numbers, so nothing here calls bloomtide.
"""

from __future__ import annotations

import math

LINE = 512
"""Bits in a block of the blocked layout: one cache line, eight words of 64."""


def classic_bits_per_key(error_rate: float) -> float:
    """k independent positions at the best real k: ln(1/P) / (ln 2)**2 (Bloom 1970)."""
    return math.log(1 / error_rate) / math.log(2) ** 2


def blocked_error(bits_per_key: float, hashes: int) -> float:
    """Error rate of the blocked layout: one bit in each of `hashes` of a line's eight words.

    A line receives Poisson(LINE / bits_per_key) keys (Putze, Sanders, Singler 2007, eq. 3). After
    i keys a given bit is set with probability 1 - (1 - hashes / LINE)**i, as each key sets
    `hashes` of the line's 512 bits.
    """
    load = LINE / bits_per_key
    largest = int(load + 12 * math.sqrt(load)) + 20
    weight = math.exp(-load)
    total = 0.0
    for keys in range(1, largest + 1):
        weight *= load / keys
        total += weight * (1 - (1 - hashes / LINE) ** keys) ** hashes
    return total


def blocked_bits_per_key(error_rate: float) -> float:
    """The least bits a key with which some number of hashes up to eight meets the rate."""
    return min(_least_bits(error_rate, hashes) for hashes in range(1, 9))


def _least_bits(error_rate: float, hashes: int) -> float:
    low, high = 1.0, 512.0
    if blocked_error(high, hashes) > error_rate:
        return math.inf
    while high - low > 1e-9:
        middle = (low + high) / 2
        if blocked_error(middle, hashes) > error_rate:
            low = middle
        else:
            high = middle
    return high


def bits_per_key(layout: str, error_rate: float) -> float:
    """The least bits a key for a layout by its name."""
    return {"classic": classic_bits_per_key, "blocked": blocked_bits_per_key}[layout](error_rate)
