"""`StreamTime`, the rule by which times are believed, step by step. Times are microseconds."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from bloomtide import HotList
from bloomtide._core import StreamTime

FAR, MOST_ASIDE, DAY = 10, 1024, 86_400 * 10**6


def stream(*parts: Iterable[int], far: float = FAR) -> StreamTime:
    made = StreamTime(far)
    for part in parts:
        for at in part:
            made.note(at)
    return made


def noted(made: StreamTime, *times: int) -> tuple[int | None, int | None]:
    """The stream's time and the presumed one after these."""
    for at in times:
        made.note(at)
    return made.now, made.presumed


@pytest.mark.parametrize("place", [0, 1, 2, 15, 16, 17, 50, 99])
def test_one_event_far_ahead_moves_nothing_wherever_it_comes(place: int) -> None:
    made = stream(range(place), [10**6], range(place, 100))
    assert (made.now, made.presumed, made.aside) == (99, 99, 1)


def test_a_silent_stream_goes_on_as_if_it_had_not_been_silent() -> None:
    made = stream(range(100), range(1000, 1002))
    assert noted(made) == (99, 99)
    assert noted(made, 1002) == (99, 1002)
    assert noted(made, *range(1003, 1063)) == (99, 1062)
    assert noted(made, 1063) == (1063, 1063), "sixty-four votes"
    assert (made.aside, made.late, made.clock_jumps, made.ahead) == (0, 0, 0, 0)


def test_a_third_of_wrong_clocks_is_never_believed_and_what_is_dropped_is_told() -> None:
    made, random, wrong = stream(), 9, 0
    for at in range(20_000):
        random = (random * 6_364_136_223_846_793_005 + 1) % 2**64
        if random >> 33 < 1 << 29:
            made.note(10**6 + at)
            wrong += 1
        else:
            made.note(at)
    assert made.now is not None
    assert made.now <= 19_999
    assert (made.aside, made.ahead) == (MOST_ASIDE, wrong - MOST_ASIDE)
    assert 3000 < made.ahead < 6000


def test_an_event_near_the_streams_time_takes_the_oldest_vote_back() -> None:
    made = stream(range(100))
    for step in range(200):
        assert noted(made, 10**6 + step, 100 + step) == (100 + step, 100 + step)


def test_sparse_events_move_the_time_too() -> None:
    made = stream(range(0, 20_000, 100))
    assert made.presumed == 19_700, "the last one that three have reached"
    assert made.now is not None
    assert made.now >= 13_000
    assert made.late == 0


def test_what_is_aside_goes_in_when_its_time_comes() -> None:
    made = stream(range(100), [150], range(100, 150))
    assert made.aside == 1
    assert noted(made, 150) == (150, 150)
    assert (made.aside, made.late) == (0, 0)


def test_later_than_the_clock_by_more_than_a_day_takes_the_time_of_the_clock() -> None:
    made = StreamTime(FAR * DAY)
    made.clock_is_at(105 * DAY)
    assert [made.note(at * DAY) for at in range(100)] == [at * DAY for at in range(100)]
    assert made.note(10**4 * DAY) == 105 * DAY
    assert (made.now, made.ahead) == (105 * DAY, 1)
    # In an old log the clock is far ahead itself.
    old = StreamTime(FAR * DAY)
    old.clock_is_at(10**5 * DAY)
    for at in (10**6, *range(100), 10**6):
        old.note(at * DAY)
    assert (old.now, old.ahead, old.aside) == (99 * DAY, 2, 2)


def test_what_the_clock_confirms_is_believed_at_once() -> None:
    second = 10**6
    made = stream(range(0, 100 * second, second), far=10 * second)
    made.clock_is_at(1000 * second)
    assert noted(made, 650 * second) == (99 * second, 99 * second)
    assert noted(made, 750 * second) == (750 * second, 750 * second)
    assert made.aside == 0


def test_the_last_of_few_events_are_presumed_to_be_right() -> None:
    made = stream(range(8), [100, 101])
    assert noted(made) == (7, 7)
    assert noted(made, 102) == (7, 102)
    assert noted(made, 9999) == (7, 102), "one alone says more"
    assert noted(made, 8, 8) == (8, 8)


def test_half_of_the_first_events_is_no_majority() -> None:
    made = stream([100, 50])
    assert (made.now, made.late, made.earliest) == (100, 1, 50)
    made.note(51)
    assert (made.now, made.late) == (51, 0)
    assert noted(made, 101, 102) == (102, 102)


def test_where_time_does_no_harm_every_time_is_believed() -> None:
    made = stream([0, 10**9, 5], far=float("inf"))
    assert (made.now, made.late) == (10**9, 1)


def test_of_the_first_events_those_that_are_due_go_in_in_their_order() -> None:
    """A list that took them in another order would call the earlier of the two late."""
    one, other = (HotList(10, half_life=5, max_jump=10) for _ in range(2))
    for at in (100, 109, 118, 105):
        one.add(f"k{at}", at=at)
    other.add_many(["k100", "k109", "k118", "k105"], at=[100, 109, 118, 105])
    assert one == other
    assert one.stats().late == 1


def test_the_oldest_of_too_many_aside_counts_as_of_the_streams_time() -> None:
    made = HotList(5000, half_life=3600)
    for second in range(100):
        made.add("k", at=1_700_000_000 + second)
    for number in range(MOST_ASIDE + 60):
        made.add(f"wrong {number}", at=1_750_000_000 + number)
        made.add("k", at=1_700_000_100)
    assert made.stats().aside == MOST_ASIDE
    assert made.stats().ahead == 60
    assert made.count("wrong 59", at=1_700_000_100) == pytest.approx(1)
    assert made.count("wrong 60", at=1_700_000_100) == 0
