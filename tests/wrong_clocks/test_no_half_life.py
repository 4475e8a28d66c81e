"""Where counts do not fade, a wrong time cannot make one too low, and is believed."""

from __future__ import annotations

from typing import Any

import pytest

from bloomtide import HotList, TimeDecayingBloomFilter
from bloomtide.errors import ParameterError

T, DAY = 1_700_000_000, 86_400


def counting(kind: str, **words: Any) -> Any:
    if kind == "list":
        return HotList(10, clock=lambda: T + 60 * DAY, **words)
    words |= {"decay": 1.0, "epoch": "1m", "clock": lambda: T + 60 * DAY}
    return TimeDecayingBloomFilter(1000, 0.01, **words)


@pytest.mark.parametrize("kind", ["list", "filter"])
def test_where_counts_do_not_fade_a_far_time_is_believed_and_no_count_is_too_low(kind: str) -> None:
    made = counting(kind)
    made.add("k", 355, at=T)
    made.add("wrong", at=T + 30 * DAY)
    assert made.stats().aside == 0
    assert made.count("k") == 355
    assert made.count("wrong") == 1
    with pytest.raises(ParameterError):
        made.count("k", at=T + 1)


@pytest.mark.parametrize("kind", ["list", "filter"])
def test_with_max_jump_one_event_moves_no_time_there_either(kind: str) -> None:
    made = counting(kind, max_jump="1h")
    made.add("k", 355, at=T)
    made.add("wrong", at=T + 30 * DAY)
    assert made.stats().aside == 1
    assert made.count("k", at=T + 1) == 355
    assert made.count("wrong") == 1


@pytest.mark.parametrize("kind", ["list", "filter"])
def test_what_the_clock_does_not_allow_counts_as_of_the_clock(kind: str) -> None:
    made = counting(kind)
    made.add("k", 355, at=T)
    made.add("wrong", at=T + 90 * DAY)
    assert made.stats().ahead == 1
    assert made.time <= T + 61 * DAY
    assert made.count("k") == 355
