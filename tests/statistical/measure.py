"""What the statistics tests measure on a filter, and the checks that right and broken ones share.

Two random sources are judged apart. The *fill* is compared with its expectation for the keys that
went in; the *false positives* are compared with the error predicted from the fill as it is. A rate
alone has few teeth: six probes for seven move it by one percent, but given the fill by a factor
of two.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bloomtide.records import Stats
from tests.statistical.binomial import check

# Keys that are probed start far above the keys that are added, so none of them is inside.
FIRST_ABSENT = 1 << 40
BATCH = 1 << 20


class Measurable(Protocol):
    """Any filter: membership in batches, and what its cells are like."""

    def contains_many(self, keys: Any, /) -> npt.NDArray[np.bool_]: ...
    def stats(self) -> Stats: ...


def present_keys(count: int) -> npt.NDArray[np.int64]:
    """The first `count` integers: as regular as keys get, so a weak hash would show."""
    return np.arange(count, dtype=np.int64)


def count_false_positives(filter: Measurable, trials: int) -> int:
    """How many of `trials` absent keys the filter calls present."""
    end = FIRST_ABSENT + trials
    return sum(
        int(filter.contains_many(np.arange(first, min(first + BATCH, end))).sum())
        for first in range(FIRST_ABSENT, end, BATCH)
    )


def check_fill(stats: Stats, keys: int, hashes: int) -> None:
    """Set cells against Binomial(m, 1 - (1 - 1/m)^(k n)).

    Cells compete for the same probes, so the true spread is below the binomial's (about half of it
    at fill 1/2): the interval is on the safe side.
    """
    expected = 1.0 - (1.0 - 1.0 / stats.cells) ** (hashes * keys)
    check(round(stats.fill * stats.cells), stats.cells, expected, "set cells")


def check_errors(filter: Measurable, predicted: float, trials: int) -> None:
    """False positives against Binomial(trials, the error predicted from the measured cells)."""
    check(count_false_positives(filter, trials), trials, predicted, "false positives")
