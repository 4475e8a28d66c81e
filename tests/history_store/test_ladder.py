"""The ladder of windows and the grammar of retention."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomtide.errors import ParameterError
from bloomtide.history.ladder import (
    DAY,
    MICRO,
    MOST,
    YEAR,
    Rule,
    build_ladder,
    levels_of,
    micros,
    parse_retention,
)

MINUTE, HOUR = 60 * MICRO, 3600 * MICRO


def test_a_minute_climbs_by_hours_days_and_months_of_32_days() -> None:
    assert build_ladder(MINUTE) == (MINUTE, HOUR, DAY, 32 * DAY, 1024 * DAY)


@given(st.integers(min_value=1000, max_value=400 * DAY))
def test_every_window_is_a_whole_multiple_of_the_one_below(window: int) -> None:
    ladder = build_ladder(window)
    assert ladder[0] == window
    for finer, coarser in pairwise(ladder):
        assert coarser % finer == 0
        assert 2 <= coarser // finer <= MOST


def test_the_windows_of_the_rules_are_steps_of_the_ladder() -> None:
    rules = parse_retention("10s for 1h, 5m for 2d, 1w for 5y, 4w")
    ladder = build_ladder(10 * MICRO, rules)
    assert {rule.window for rule in rules} <= set(ladder[:-1])


def test_a_retention_reads_finest_first_and_its_last_rule_may_be_for_ever() -> None:
    assert parse_retention("1m for 1d, 1h for 30d, 1d for 10y") == (
        Rule(MINUTE, DAY),
        Rule(HOUR, 30 * DAY),
        Rule(DAY, 10 * YEAR),
    )
    assert parse_retention("1m for 1d, 1h") == (Rule(MINUTE, DAY), Rule(HOUR, None))
    assert parse_retention(None) == ()


def test_a_level_is_kept_as_long_as_the_coarsest_rule_that_is_not_wider() -> None:
    rules = parse_retention("1m for 1d, 1d for 10y")
    levels = levels_of(build_ladder(MINUTE, rules), rules)
    assert [(level.window, level.keep) for level in levels] == [
        (MINUTE, DAY),
        (HOUR, DAY),
        (DAY, 10 * YEAR),
        (32 * DAY, 10 * YEAR),
    ]


def test_no_segment_spans_more_than_is_ever_kept() -> None:
    rules = parse_retention("1m for 2d")
    assert build_ladder(MINUTE, rules) == (MINUTE, HOUR, DAY)


@pytest.mark.parametrize("keep", [2, 31, 32, 33, 1023])
@pytest.mark.parametrize("finer", ["", "1m for 1h, ", "1h for 1d, "])
def test_a_rule_may_end_before_a_segment_of_its_windows_does(finer: str, keep: int) -> None:
    rules = parse_retention(f"{finer}1d for {keep}d")
    levels = levels_of(build_ladder(MINUTE, rules), rules)
    assert [level.keep for level in levels if level.window == DAY] == [rules[-1].keep]


@pytest.mark.parametrize(
    "text",
    ["", "1m for", "for 1d", "1h for 30d, 1m for 1d", "1m for 2d, 1h for 1d", "1m, 1h for 1d",
     "1m for 1d, 90s for 2d", "1h for 1m", "often", "1m for 1d,"],
)  # fmt: skip
def test_a_retention_that_makes_no_sense_is_refused_by_name(text: str) -> None:
    with pytest.raises(ParameterError, match="retention"):
        parse_retention(text)


def test_a_later_retention_must_keep_to_the_ladder() -> None:
    with pytest.raises(ParameterError, match="ladder: 60, 3600, 86400"):
        levels_of(build_ladder(MINUTE), parse_retention("1m for 1d, 2h for 30d"))


@pytest.mark.parametrize("zero", ["0s", "0", 0, 0.0, " 0 m "])
def test_zero_is_a_length_of_time_only_where_it_is_meant(zero: object) -> None:
    assert micros(zero, "lateness", zero=True) == 0
    with pytest.raises(ParameterError, match="lateness"):
        micros(zero, "lateness")
