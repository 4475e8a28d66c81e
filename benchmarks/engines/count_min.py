"""The shape given to the count-min sketches so that they compare with a counting filter.

A counting filter of m cells with k cells a key becomes k rows of m/k cells: the same number of
cells, the same number touched by one key.
"""

from __future__ import annotations

import math


def shape(distinct: int, error_rate: float) -> tuple[int, int]:
    """(rows, cells in a row) of a counting filter for that many keys at that error rate."""
    cells = distinct * math.log(1 / error_rate) / math.log(2) ** 2
    rows = round(cells / distinct * math.log(2))
    return rows, math.ceil(cells / rows)
