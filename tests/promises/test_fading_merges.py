"""A merge of filters that fade is the filter of both streams, up to rounding."""

from __future__ import annotations

import random
from typing import Literal

import pytest

from bloomtide import TimeDecayingBloomFilter

T = 1_700_000_040
"""Where an epoch of a minute begins."""


@pytest.mark.parametrize("storage", ["basic", "optimized"])
@pytest.mark.parametrize(
    ("decay", "rounding"),
    [(0.5, "strict"), (0.9, "strict"), (0.99, "strict"), (1.0, "strict"), (0.5, "expiring"),
     (0.9, "expiring"), (0.99, "expiring")],
)  # fmt: skip
def test_a_merge_of_fading_filters_is_the_joined_stream_up_to_rounding(
    decay: float,
    rounding: Literal["strict", "expiring"],
    storage: Literal["basic", "optimized"],
) -> None:
    differ = 0
    for seed in range(20):
        draw = random.Random(seed)
        here, there, joined = (
            TimeDecayingBloomFilter(
                1000, 0.001, decay=decay, epoch=60, rounding=rounding, storage=storage,
                max_jump=float("inf"),
            )
            for _ in range(3)
        )  # fmt: skip
        exact, now = [0.0] * 5, 0
        for _ in range(200):
            passed, key, count = draw.choice([0, 0, 1, 3]), draw.randrange(5), draw.choice([1, 5])
            now += passed
            exact = [sum_ * decay**passed for sum_ in exact]
            exact[key] += count
            for made in (draw.choice([here, there]), joined):
                made.add(key, count, T + 60 * now)
        here.merge(there)
        at = T + 60 * now
        if decay == 1.0:
            assert here.cells(at).tolist() == joined.cells(at).tolist()
            continue
        of_one = 2**-8 / (1 - decay)
        for key, true in enumerate(exact):
            merged, one = here.count(key, at), joined.count(key, at)
            assert abs(merged - one) <= 2 * of_one
            if rounding == "strict":
                assert true * (1 - 1e-9) <= merged <= true + 2 * of_one + 1e-9
            differ += merged != one
    # Else the promise could be the plain one.
    assert (differ > 0) == (decay < 1)
