"""A dynamic count filter rebuilds exactly when its model does, and is as wide."""

from __future__ import annotations

from typing import Any

import pytest

from tests.property.growing import filters, models
from tests.property.streams import mixed

CELLS: dict[str, Any] = {"cells": 61, "hashes": 3, "layout": "classic"}


@pytest.mark.parametrize("shrink", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("counter_bits", [1, 2, 5])
def test_every_growth_and_every_shrink_comes_when_the_model_has_it(
    counter_bits: int, shrink: float
) -> None:
    made = filters(CELLS, "plain", partitions=4, counter_bits=counter_bits, shrink=shrink)
    expected = models(made, counter_bits, shrink, 0.1)
    memory: dict[int, set[int]] = {}
    for verb, key, count in mixed(3_000, 30, seed=counter_bits):
        for name in ("dcf", "pdcf"):
            getattr(made[name], verb)(key, count)
            getattr(expected[name], verb)(key, count)
            assert made[name].stats().rebuilds == expected[name].rebuilds, (verb, key, count)
        memory.setdefault(expected["dcf"].store.y, set()).add(made["dcf"].stats().bytes)
    assert made["pdcf"].stats().rebuilds > made["dcf"].stats().rebuilds > 10
    # One memory for each width y of the model, and another for another.
    assert all(len(found) == 1 for found in memory.values())
    assert len(set.union(*memory.values())) == len(memory) > 3
