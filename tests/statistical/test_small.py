"""Up to 1024 cells the textbook formula is too low; the exact occupancy law is not.

One probe is made into each of many tiny filters that differ only in their seed, so the probes are
independent trials with exactly the law's chance. The "slices" derivation on a power of two gives
truly independent positions, which the law assumes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from bloomtide import BloomFilter
from tests.statistical.binomial import check
from tests.statistical.measure import FIRST_ABSENT, present_keys

# cells, keys, hashes, filters, and the known ratio of the exact law to the textbook formula.
CASES = [
    (64, 8, 6, 500_000, 1.07),
    (256, 32, 6, 100_000, 1.02),
    (1024, 128, 6, 100_000, 1.004),
]


def _occupancy(cells: int, throws: int) -> npt.NDArray[np.float64]:
    """Pr[i of the cells are set] after `throws` uniform throws, one throw after the other."""
    chance = np.zeros(cells + 1)
    chance[0] = 1.0
    stay = np.arange(cells + 1) / cells
    for _ in range(throws):
        moved = chance * (1.0 - stay)
        chance *= stay
        chance[1:] += moved[:-1]
    return chance


def _exact_error(cells: int, keys: int, hashes: int) -> float:
    shares = np.arange(cells + 1) / cells
    return float(_occupancy(cells, keys * hashes) @ shares**hashes)


def _textbook_error(cells: int, keys: int, hashes: int) -> float:
    return float((1.0 - (1.0 - 1.0 / cells) ** (keys * hashes)) ** hashes)


def _count_errors(cells: int, keys: int, hashes: int, filters: int) -> int:
    inside = present_keys(keys)
    wrong = 0
    for seed in range(filters):
        tiny = BloomFilter(bits=cells, hashes=hashes, paper={"derivation": "slices"}, seed=seed)
        tiny.add_many(inside)
        wrong += FIRST_ABSENT in tiny
    return wrong


@pytest.mark.parametrize(("cells", "keys", "hashes", "filters", "ratio"), CASES)
def test_tiny_filters_follow_the_exact_law(
    cells: int, keys: int, hashes: int, filters: int, ratio: float
) -> None:
    exact, textbook = _exact_error(cells, keys, hashes), _textbook_error(cells, keys, hashes)
    assert exact / textbook == pytest.approx(ratio, abs=0.005)
    wrong = _count_errors(cells, keys, hashes, filters)
    check(wrong, filters, exact, "false positives")
    if ratio > 1.05:
        # The sibling: half a million trials are enough to refuse a formula that is 7 % low.
        with pytest.raises(AssertionError, match="false positives"):
            check(wrong, filters, textbook, "false positives")


def test_broken_half_the_probes_fails_at_1024_cells() -> None:
    cells, keys, hashes, filters, _ = CASES[-1]
    wrong = _count_errors(cells, keys, hashes // 2, filters)
    with pytest.raises(AssertionError, match="false positives"):
        check(wrong, filters, _exact_error(cells, keys, hashes), "false positives")
