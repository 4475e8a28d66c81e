"""How fast counts fade: a half-life and its epochs, and what makes no sense."""

from __future__ import annotations

from typing import Any

import pytest

from bloomtide import TimeDecayingBloomFilter
from bloomtide.errors import ParameterError

T = 1_700_000_000


def plan(**words: Any) -> Any:
    return TimeDecayingBloomFilter.plan(1000, 0.01, **words)


@pytest.mark.parametrize(
    ("half_life", "epoch", "decay"),
    [(10, 10, 0.5), (10, 20, 0.25), (7, 7, 0.5), (1, 1e4, 0.0)]
    + [(1, x, 2.0**-x) for x in (1e-1, 0.3, 0.999, 1.7, 33.3, 600.1)],
)
def test_a_half_life_of_epochs_halves(half_life: float, epoch: float, decay: float) -> None:
    made = plan(half_life=half_life, epoch=epoch)
    assert made.decay == pytest.approx(decay, rel=4e-16, abs=0)
    assert (made.half_life, made.epoch) == (half_life, epoch)


def test_the_epoch_is_a_tenth_of_the_half_life_but_not_below_the_clock() -> None:
    assert plan(half_life="1h").epoch == 360
    assert plan(half_life=0.5).epoch == 0.1


@pytest.mark.parametrize(
    ("name", "words"),
    [("half_life", {"half_life": wrong, "epoch": 1}) for wrong in (0, -1, float("nan"))]
    + [("half_life", {"half_life": 2e11, "epoch": 1}), ("origin", {"half_life": 9, "origin": 2e12})]
    + [("epoch", {"half_life": 10, "epoch": wrong}) for wrong in (0, -1, 0.09, 2e11)]
    + [("decay", {"decay": wrong, "epoch": 1}) for wrong in (-0.1, 1.1, float("nan"))]
    + [("max_jump", {"half_life": 9, "max_jump": wrong}) for wrong in (0, -1, float("nan"))],
)
def test_what_makes_no_sense_is_named(name: str, words: dict[str, Any]) -> None:
    with pytest.raises(ParameterError) as refusal:
        plan(**words)
    assert refusal.value.name == name


def test_an_epoch_begins_where_the_one_before_ends() -> None:
    """With an origin ahead of the events, epochs are below zero."""
    for origin in (30, T + 630):
        made = TimeDecayingBloomFilter(100, 1e-6, decay=0.5, epoch=60, origin=origin, max_jump=1e9)
        made.add("k", 64, at=T + 30)
        counts = [made.count("k", at=T + second) for second in (30, 89.9, 90, 149.9, 150, 209.9)]
        begin = (T + 30 - origin) % 60
        assert made.time == T + 30 - begin
        assert counts[0] == 64
        epochs = [(T + second - origin) // 60 for second in (30, 89.9, 90, 149.9, 150, 209.9)]
        assert counts == [64 * 0.5 ** (epoch - epochs[0]) for epoch in epochs]
