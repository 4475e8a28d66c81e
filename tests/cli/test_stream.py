"""The generated traffic: deterministic, distinct, skewed, drifting."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import numpy as np
import pytest

from bloomtide.errors import ParameterError
from bloomtide.stream import HOSTS, MAX_PAGES, distinct_urls, web_stream


def visits(n: int, **options: float) -> list[str]:
    return list(chain.from_iterable(web_stream(n, **options)))  # type: ignore[arg-type]


def test_the_catalogue_is_the_same_for_ever() -> None:
    assert distinct_urls(2, 0) == [
        "https://blog.silvertrail.example/sport/garden-pillow-b86a781527",
        "https://lanternbay.example/tag/marble-garden-feea399003",
    ]
    assert distinct_urls(1, 1, start=10**9) == [
        "https://lanternbay.example/sport/ember-jasmine-774b6ebdac"
    ]


def test_urls_are_distinct_and_look_like_urls() -> None:
    urls = distinct_urls(300_000, 5)
    assert len(set(urls)) == 300_000
    assert 55 < sum(map(len, urls)) / len(urls) < 60
    assert all(url.startswith("https://") and url.isascii() for url in urls[:1000])
    assert {url.split("/")[2] for url in urls} == set(HOSTS)


def test_a_part_of_the_catalogue_is_that_part() -> None:
    assert distinct_urls(1000, 9)[400:] == distinct_urls(600, 9, start=400)


def test_parts_that_do_not_overlap_share_nothing() -> None:
    assert not set(distinct_urls(100_000, 2)) & set(distinct_urls(100_000, 2, start=100_000))


def test_other_seeds_make_other_pages_and_other_visits() -> None:
    assert not set(distinct_urls(1000, 1)) & set(distinct_urls(1000, 2))
    ranks = [
        [pages.index(url) for url in visits(500, seed=seed, pages=50)]
        for seed, pages in ((seed, distinct_urls(50, seed)) for seed in (1, 2))
    ]
    assert ranks[0] != ranks[1]


def test_the_stream_does_not_depend_on_its_batches() -> None:
    whole = visits(10_000, seed=4, pages=500, drift=0.3)
    assert visits(10_000, seed=4, pages=500, drift=0.3, batch_size=777) == whole
    assert len(whole) == 10_000


def test_popularity_follows_the_power_law() -> None:
    n, pages = 200_000, 1000
    count = Counter(visits(n, seed=6, pages=pages, skew=1.0))
    shares = 1 / np.arange(1, pages + 1)
    shares /= shares.sum()
    for rank, url in enumerate(distinct_urls(20, 6)):
        expected = n * shares[rank]
        # Six standard deviations of a binomial count.
        assert abs(count[url] - expected) < 6 * (expected * (1 - shares[rank])) ** 0.5


def test_without_skew_all_pages_are_alike() -> None:
    count = Counter(visits(100_000, seed=6, pages=100, skew=0.0))
    assert len(count) == 100
    assert all(abs(times - 1000) < 6 * 1000**0.5 for times in count.values())


def test_drift_changes_the_most_popular_page_and_no_drift_does_not() -> None:
    for drift, moves in ((0.0, False), (0.5, True)):
        stream = visits(40_000, seed=8, pages=1000, drift=drift)
        early, late = (
            Counter(part).most_common(1)[0][0] for part in (stream[:2000], stream[-2000:])
        )
        assert (early != late) is moves


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("n", {"n": -1}),
        ("pages", {"pages": 0}),
        ("pages", {"pages": MAX_PAGES + 1}),
        ("skew", {"skew": -1.0}),
        ("skew", {"skew": float("nan")}),
        ("drift", {"drift": 1.1}),
        ("batch_size", {"batch_size": 0}),
    ],
)
def test_a_wrong_parameter_is_named_at_the_call(name: str, options: dict[str, float]) -> None:
    with pytest.raises(ParameterError) as refusal:
        web_stream(**{"n": 10, **options})  # type: ignore[arg-type]
    assert refusal.value.name == name


def test_pages_past_the_catalogue_are_refused() -> None:
    assert len(distinct_urls(1, start=MAX_PAGES - 1)) == 1
    with pytest.raises(ParameterError):
        distinct_urls(2, start=MAX_PAGES - 1)
    with pytest.raises(ParameterError):
        distinct_urls(1, start=-1)


def test_no_visits_are_no_batches() -> None:
    assert list(web_stream(0)) == []
