"""The demonstration's traffic: a second is what its number says, and a site's life is in it."""

from __future__ import annotations

from collections import Counter

import numpy as np

from bloomtide.stream import Traffic

NOON = 1_700_000_000 - 1_700_000_000 % Traffic.CROWD_EVERY


def test_a_second_is_the_same_whenever_it_is_asked_for() -> None:
    one, other = Traffic(seed=3, pages=500), Traffic(seed=3, pages=500)
    other.second(NOON + 7)
    keys, times = one.second(NOON)
    again, instants = other.second(NOON)
    assert keys == again
    assert np.array_equal(times, instants)
    assert one.second(NOON + 1)[0] != keys


def test_some_visits_are_told_of_late_and_none_early() -> None:
    traffic = Traffic(seed=1, pages=500)
    for second in range(NOON, NOON + 20):
        _, times = traffic.second(second)
        assert times.max() < second + 1
        late = times[times < second]
        assert 0 < len(late) < 0.03 * len(times)
        assert late.min() > second - 301


def test_a_crowd_comes_and_goes_and_crawlers_find_new_pages() -> None:
    traffic = Traffic(seed=2, pages=5000)
    before = Counter(traffic.second(NOON)[0]).most_common(1)[0][1]
    page, hits = Counter(traffic.second(NOON + 20)[0]).most_common(1)[0]
    assert hits > 2 * before
    later = Counter(traffic.second(NOON + Traffic.CROWD_EVERY - 1)[0])
    assert later[page] < hits / 5
    seen = {key for second in range(NOON, NOON + 5) for key in traffic.second(second)[0]}
    leaves = {key for key in traffic.second(NOON + 5)[0] if key.startswith("/archive/")}
    assert len(leaves) == traffic.per_second // 25
    assert not leaves & seen
