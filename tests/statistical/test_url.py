"""UrlFilter: each class of query errs as the analysis says, with every binding.

A query passes a layer for certain if that layer has its prefix, else with the layer's own error;
and X for certain if it has the URL, else with X's. The corrections of the specification, section
7: nothing is multiplied that was seen before.
"""

from __future__ import annotations

from math import prod
from typing import Any

import pytest

from bloomtide import UrlFilter
from tests.statistical.binomial import check, check_at_most

HOSTS, NAMES = 400, 24
RATE = 0.25
"""Errors so frequent that two of them at once can be counted."""
BOUND = ["salted_xor", "ordered"]


def known() -> list[str]:
    """Two in three of the paths host/a/b with a < b, and the root of each host.

    So a name stands at both depths, and every permuted, doubled or cut path is absent.
    """
    paths = [
        f"http://h{host}.example/n{a}/n{b}"
        for host in range(HOSTS)
        for b in range(NAMES)
        for a in range(b)
        if (host + a + b) % 3
    ]
    return paths + [f"http://h{host}.example/" for host in range(HOSTS)]


QUERIES: dict[str, tuple[list[str], tuple[int, ...]]] = {
    # Class -> absent URLs, and the depths at which their prefix is new; host 0 has no n0/n0.
    "permuted": (
        [
            f"http://h{h}.example/n{b}/n{a}"
            for h in range(HOSTS)
            for b in range(2, 22)
            for a in (0, 1)
        ],
        (3,),
    ),
    "repeated": (
        [f"http://h{h}.example/n{a}/n{a}" for h in range(HOSTS) for a in range(22)],
        (3,),
    ),
    "directory": ([f"http://h{h}.example/n{a}" for h in range(HOSTS) for a in range(22)], ()),
    "new leaf": (
        [f"http://h{h}.example/n{a}/new{a}" for h in range(HOSTS) for a in range(22)],
        (3,),
    ),
    "new directory": (
        [f"http://h{h}.example/new{a}/n{a}" for h in range(HOSTS) for a in range(22)],
        (2, 3),
    ),
    "new host": (
        [
            f"http://new{h}.example/n{a}/n{b}"
            for h in range(HOSTS)
            for a in range(9)
            for b in range(9)
        ],
        (1, 2, 3),
    ),
}


def filled(bind: Any, sizes: Any = "uniform", **more: Any) -> UrlFilter:
    """Filled to its capacity."""
    urls = known()
    made = UrlFilter(len(urls), RATE, paper={"bind": bind}, layer_sizes=sizes, **more)
    made.add_many(urls)
    return made


def wrong(made: UrlFilter, name: str) -> tuple[int, int]:
    """False positives of a class of queries, and how many were asked."""
    queries = QUERIES[name][0]
    return int(made.contains_many(queries).sum()), len(queries)


@pytest.fixture(scope="module", params=BOUND)
def bound(request: pytest.FixtureRequest) -> UrlFilter:
    """Layers of exactly as many prefixes as there are, so that all of them err."""
    return filled(request.param, UrlFilter.measure(known()))


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_errs_as_its_new_prefixes_say(bound: UrlFilter, name: str) -> None:
    stats = bound.stats()
    new = [stats.layers[depth - 1].predicted_error for depth in QUERIES[name][1]]
    expected = prod(new) * stats.predicted_error
    assert expected > 1e-3
    hits, trials = wrong(bound, name)
    check(hits, trials, expected, name)
    check_at_most(hits, trials, RATE, "the promise")


@pytest.mark.parametrize("bind", BOUND)
def test_the_promise_holds_when_the_layers_are_full(bind: Any) -> None:
    made = filled(bind, [1])
    assert all(layer.fill == 1 for layer in made.stats().layers[1:])
    for name in QUERIES:
        hits, trials = wrong(made, name)
        check_at_most(hits, trials, RATE, name)


DEEP, ASKED = 3_000, 20_000
"""URLs that share nothing but the scheme, so that every depth has as many prefixes as URLs."""


def deep(number: int, depth: int = 8) -> str:
    """A URL of so many segments, each of them of its own."""
    return f"http://h{number}.example" + "".join(f"/{d}-{number}" for d in range(2, depth + 1))


def absent_prefixes(made: UrlFilter, depth: int) -> int:
    """How many prefixes are called seen whose last segment is new; those above it were added."""
    urls = (f"{deep(i % DEEP, depth - 1)}/new{i}" for i in range(ASKED))
    hosts = (f"http://new{i}.example/" for i in range(ASKED))
    return sum(made.seen_prefix(url, depth) for url in (urls if depth > 1 else hosts))


@pytest.mark.parametrize("bind", BOUND)
@pytest.mark.parametrize("error_rate", [0.01, 0.05])
def test_an_absent_prefix_is_called_seen_at_the_rate_that_was_asked_for(
    bind: Any, error_rate: float
) -> None:
    made = UrlFilter(DEEP, error_rate, paper={"bind": bind})
    made.add_many([deep(i) for i in range(DEEP)])
    stats = made.stats()
    assert stats.warnings == ()
    for depth in range(1, 8):
        hits = absent_prefixes(made, depth)
        layer = stats.layers[depth - 1]
        assert layer.items == pytest.approx(DEEP, rel=0.05)
        check(hits, ASKED, layer.predicted_error, f"depth {depth}")
        check_at_most(hits, ASKED, error_rate, f"the promise at depth {depth}")


def test_a_layer_made_for_fewer_prefixes_errs_more_often_and_is_warned_of() -> None:
    sizes = [DEEP] * 8
    sizes[4] = DEEP // 5
    made = UrlFilter(DEEP, 0.01, layer_sizes=sizes)
    made.add_many([deep(i) for i in range(DEEP)])
    stats = made.stats()
    (warning,) = stats.warnings
    assert warning.startswith("depth 5 holds about ")
    assert f"made for {DEEP // 5}" in warning
    hits = absent_prefixes(made, 5)
    check(hits, ASKED, stats.layers[4].predicted_error, "depth 5")
    with pytest.raises(AssertionError, match="the promise"):
        check_at_most(hits, ASKED, 0.01, "the promise")


@pytest.mark.parametrize("seed", [1, 2])
def test_the_paper_accepts_every_permutation_of_what_it_knows(seed: int) -> None:
    """Where each segment was seen at its new depth, XOR has nothing left to tell them apart."""
    made = filled("xor", seed=seed)
    inside = set(known())
    swapped = [
        url
        for url in QUERIES["permuted"][0]
        if "/".join([*url.split("/")[:3], *url.split("/")[:2:-1]]) in inside
    ]
    names = [url.split("/")[3:] for url in swapped]
    assert len(swapped) > 5000
    assert all(b not in ("n0", "n23") for b, _ in names)
    accepted = [url for url in swapped if url.rsplit("/", 1)[1] != "n0"]  # n0 is never at depth 3
    assert len(accepted) > 2000
    assert made.contains_many(accepted).all()


def test_the_paper_accepts_pairs_that_cancel_each_other() -> None:
    made = filled("xor")
    made.add("http://other.example/n1/n2/")  # so that depth 4 has the empty segment
    pairs = [f"http://h{h}.example/n{a}/n{a}/" for h in range(HOSTS) for a in range(1, 22)]
    assert made.contains_many(pairs).all(), "h/a/a/ has the address of h/"
    for bind in BOUND:
        sound = filled(bind)
        sound.add("http://other.example/n1/n2/")
        check_at_most(int(sound.contains_many(pairs).sum()), len(pairs), RATE, "cancelled pairs")


# Each check above must refuse a filter that is wrong on purpose.


@pytest.mark.parametrize("name", ["permuted", "repeated"])
def test_broken_binding_that_ignores_the_order_fails_the_check(name: str) -> None:
    paper = filled("xor")
    stats = paper.stats()
    expected = stats.layers[2].predicted_error * stats.predicted_error
    hits, trials = wrong(paper, name)
    with pytest.raises(AssertionError, match=name):
        check(hits, trials, expected, name)


def test_broken_filter_without_x_fails_the_check(bound: UrlFilter) -> None:
    """What the layers alone would say of directories: all of them were seen."""
    queries = QUERIES["directory"][0]
    hits = sum(bound.seen_prefix(url, 2) for url in queries)
    with pytest.raises(AssertionError, match="directory"):
        check_at_most(hits, len(queries), RATE, "directory")


def test_broken_layers_that_err_with_x_fail_the_check(bound: UrlFilter) -> None:
    """If the last layer and X had the same cells, a new leaf would pass both at once."""
    hits, trials = wrong(bound, "new leaf")
    with pytest.raises(AssertionError, match="new leaf"):
        check(hits, trials, bound.stats().predicted_error, "new leaf")
