"""Models of the time-decaying filter: exact sum <= lazy <= eager; how far expiring errs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bloomtide.reference import DecayedSum, ReferenceTimeDecayingBloomFilter
from bloomtide.reference.decaying import ONE, power
from tests.property.streams import spread

DECAYS = [0.0, 0.1, 0.5, 0.75, 0.9, 0.99, 0.999_999, 1.0]
KEYS = range(12)
Q = 7

steps = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from(KEYS), st.integers(1, 300)), max_size=40
)
"""(epochs that pass first, key, count)."""


def model(decay: float, **options: Any) -> ReferenceTimeDecayingBloomFilter:
    """A small filter of three blocks, the last one not whole."""
    return ReferenceTimeDecayingBloomFilter(spread(300, 3), 300, 3, decay=decay, **options)


def run(stream: list[tuple[int, int, int]], *filters: Any) -> int:
    """Feed the stream to all of them; the last epoch."""
    epoch = 0
    for passed, key, count in stream:
        epoch += passed
        for filled in filters:
            if isinstance(filled, DecayedSum):
                filled.add(key, epoch, count)
            else:
                filled.add(key, count, epoch)
    return epoch


@pytest.mark.parametrize("decay", DECAYS)
def test_a_power_is_never_below_the_exact_one_and_close_to_it(decay: float) -> None:
    for age in [0, 1, 2, 3, 7, 64, 1000, 4097]:
        exact = Fraction(decay) ** age * ONE
        assert exact <= power(decay, age) + (decay == 1) <= exact + age + 1


@settings(deadline=None)
@given(
    stream=steps, decay=st.sampled_from(DECAYS), policy=st.sampled_from(["plain", "conservative"])
)
def test_the_exact_sum_is_below_lazy_and_lazy_below_eager(
    stream: list[tuple[int, int, int]], decay: float, policy: Any
) -> None:
    truth = DecayedSum(decay)
    lazy, eager = model(decay, policy=policy), model(decay, policy=policy, eager=True)
    end = run(stream, truth, lazy, eager)
    for later in (end, end + 1, end + 17):
        for key in KEYS:
            exact, least, most = (
                truth.at(key, later),
                lazy.count(key, later),
                eager.count(key, later),
            )
            assert exact <= Fraction(least)
            assert policy == "conservative" or least <= most


@settings(deadline=None)
@given(stream=steps, decay=st.sampled_from(DECAYS[:-1]), eager=st.booleans())
def test_expiring_is_too_small_by_less_than_its_bound(
    stream: list[tuple[int, int, int]], decay: float, eager: bool
) -> None:
    truth, filled = DecayedSum(decay), model(decay, rounding="expiring", eager=eager)
    end = run(stream, truth, filled)
    bound = Fraction(1, filled.one) / (1 - Fraction(decay))
    for later in (end, end + 1, end + 17):
        for key in KEYS:
            assert truth.at(key, later) - Fraction(filled.count(key, later)) <= bound


@pytest.mark.parametrize(("decay", "left"), [(0.5, 1), (0.9, 10), (0.99, 99)])
def test_strict_eager_sticks_where_rounding_up_gives_a_cell_back(decay: float, left: int) -> None:
    strict = model(decay, eager=True)
    expiring = model(decay, eager=True, rounding="expiring")
    for filled in (strict, expiring):
        filled.add(Q, 1000, 0)
        filled.enter(3000)
    assert strict.count(Q) == left / strict.one
    assert expiring.count(Q) == 0
    assert Q not in expiring


def test_a_lazy_cell_sticks_at_one_unit() -> None:
    filled = model(0.99)
    filled.add(Q, 1000, 0)
    assert filled.count(Q, 10**6) == 1 / filled.one


def test_the_sum_follows_equation_three() -> None:
    filled = model(0.5)
    found = []
    for epoch, hits in enumerate([8, 0, 0, 4]):
        if hits:
            filled.add(Q, hits, epoch)
        found.append(filled.count(Q, epoch))
    assert found == [8, 4, 2, 5]
    assert filled.rate(Q) == 2.5


def test_a_steady_stream_has_the_rate_of_its_hits() -> None:
    filled = model(0.9)
    for epoch in range(300):
        filled.add(Q, 7, epoch)
    assert filled.rate(Q) == pytest.approx(7, abs=0.01)
    with pytest.raises(ValueError, match="no rate"):
        model(1.0).rate(Q)


def test_a_late_event_counts_by_its_own_age() -> None:
    on_time, late = model(0.5), model(0.5)
    for filled, epochs in ((on_time, [2, 5]), (late, [5, 2])):
        for epoch in epochs:
            filled.add(Q, 8, epoch)
    assert on_time.count(Q) == late.count(Q) == 9
    assert (on_time.late, late.late) == (0, 1)
    late.add(Q, 1, -1000)
    assert late.count(Q) == 9 + 1 / late.one  # never lost


def test_a_merge_is_the_filter_of_both_streams_up_to_its_rounding() -> None:
    left, right, joined = model(0.75), model(0.75), model(0.75)
    truth = DecayedSum(0.75)
    for epoch in range(30):
        side = left if epoch % 3 else right
        for filled in (side, joined):
            filled.add(epoch % 5, 1 + epoch, epoch)
        truth.add(epoch % 5, epoch, 1 + epoch)
    left.merge(right)
    assert left.now == 29
    for key in range(5):
        assert truth.at(key, 40) <= Fraction(left.count(key, 40))
        assert left.count(key, 40) == pytest.approx(joined.count(key, 40), abs=0.05)


def test_a_full_cell_is_remembered_after_it_faded() -> None:
    filled = model(0.5, counter_bits=16)
    filled.add(Q, 1000, 0)
    assert filled.count(Q) == (2**16 - 1) / 256
    filled.add(Q + 1, 1, 20)
    assert filled.full == {cell // 128 for cell in filled.positions(Q)}


def test_every_block_is_swept_by_adds_alone() -> None:
    filled = ReferenceTimeDecayingBloomFilter(spread(128 * 40, 3), 128 * 40, 3, decay=0.5)
    filled.now = 0
    for key in range(3000):
        filled.add(key, 1, 1)
    filled.values = [0] * filled.size  # from here on only the sweeper is seen
    filled.stamps = [1] * 40
    for cells in range(3000):
        filled.enter(2)
        filled.sweep(filled.positions(cells)[0])
    assert set(filled.stamps) == {2}
