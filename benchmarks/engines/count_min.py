"""The shape given to the count-min sketches so that they compare with a counting filter.

A counting filter of m cells with k cells a key becomes k rows of m/k cells: the same number of
cells, the same number touched by one key. Against counters that grow, which take less memory, a
peer is also measured with as much memory as those: `EQUAL_BITS` a key, in as many rows.
"""

from __future__ import annotations

import math

EQUAL_BITS = 144
"""Bits a key for the peers of PDCF. It needs 140 on this stream, which each run checks."""
EQUAL = ", PDCF's memory"
"""What the names of those peers end with."""


def shape(distinct: int, error_rate: float) -> tuple[int, int]:
    """(rows, cells in a row) of a counting filter for that many keys at that error rate."""
    cells = distinct * math.log(1 / error_rate) / math.log(2) ** 2
    rows = round(cells / distinct * math.log(2))
    return rows, math.ceil(cells / rows)


def equal_shape(distinct: int, error_rate: float, cell_bits: int) -> tuple[int, int]:
    """The same number of rows in `EQUAL_BITS` a key."""
    rows, _ = shape(distinct, error_rate)
    return rows, math.ceil(distinct * EQUAL_BITS / cell_bits / rows)
