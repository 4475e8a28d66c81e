"""What the paper's multi-layer filter gets wrong, and that the repaired bindings get it right.

On the models, whose cells are so many that no address meets another by chance; and the core
answers as they do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from bloomtide import UrlFilter
from bloomtide.reference import positions as model
from bloomtide.reference.url import (
    ReferenceMultiLayerBloomFilter,
    ReferenceUrlFilter,
    segments,
)

BITS, HASHES = 2**14, 4
Bind = Literal["xor", "salted_xor", "ordered"]


def literal(max_layers: int) -> ReferenceMultiLayerBloomFilter:
    def positions(segment: bytes) -> list[int]:
        return model.enhanced(xxhash.xxh3_128_intdigest(segment), BITS, HASHES)

    return ReferenceMultiLayerBloomFilter(positions, BITS, HASHES, max_layers)


def repaired(bind: Literal["salted_xor", "ordered"], max_layers: int) -> ReferenceUrlFilter:
    return ReferenceUrlFilter(
        xxhash.xxh3_128_intdigest,
        lambda address, depth: model.enhanced(address, BITS, HASHES),
        lambda depth: (BITS, HASHES),
        bind,
        max_layers,
    )


def made(bind: Bind, max_layers: int = 8) -> Any:
    return literal(max_layers) if bind == "xor" else repaired(bind, max_layers)


def cells(filter: Any) -> list[list[bool]]:
    return [getattr(layer, "cells", layer) for layer in (*filter.layers, filter.x)]


BINDS = get_args(Bind)
URLS = st.lists(
    st.lists(st.sampled_from([b"a", b"b", b"c", b"", b"d?x=/y"]), min_size=1, max_size=6).map(
        lambda path: b"https://h/" + b"/".join(path)
    ),
    max_size=12,
)


@pytest.mark.parametrize("bind", BINDS)
@pytest.mark.parametrize("max_layers", [1, 2, 3, 8])
@given(urls=URLS)
def test_every_url_that_was_added_is_there_with_its_prefixes(
    bind: Bind, max_layers: int, urls: list[bytes]
) -> None:
    filter = made(bind, max_layers)
    for url in urls:
        new = url not in filter
        assert filter.add(url) == new
        assert not filter.add(url)
    for url in urls:
        assert url in filter
        for depth in range(1, len(segments(url, max_layers)) + 1):
            assert filter.seen_prefix(url, depth)


@pytest.mark.parametrize("bind", BINDS)
@given(mine=URLS, theirs=URLS)
def test_a_merge_is_the_filter_of_both(bind: Bind, mine: list[bytes], theirs: list[bytes]) -> None:
    one, other, both = made(bind), made(bind), made(bind)
    for url in mine:
        one.add(url)
    for url in theirs:
        other.add(url)
    for url in mine + theirs:
        both.add(url)
    one.merge(other)
    assert cells(one) == cells(both)


CONFUSED = {
    "swapped": ([b"http://h/a/b", b"http://h/b/c"], b"http://h/b/a"),
    "a pair that cancels": ([b"http://x", b"http://y/a", b"http://y/b/a"], b"http://x/a/a"),
    "host and leaf exchanged": ([b"http://h/a", b"http://a/h/x"], b"http://a/h"),
}


@pytest.mark.parametrize("case", CONFUSED)
def test_the_papers_xor_confuses_what_the_repairs_tell_apart(case: str) -> None:
    added, asked = CONFUSED[case]
    # Where the layers would stop it, another URL brings the segment at that depth.
    for bind in BINDS:
        filter = made(bind)
        for url in [*added, b"http://z/b/a", b"http://z/a/b"]:
            filter.add(url)
        assert (asked in filter) == (bind == "xor")


@pytest.mark.parametrize("bind", BINDS)
def test_layers_of_prefixes_know_which_directories_belong_together(bind: Bind) -> None:
    filter = made(bind)
    filter.add(b"http://one/a/1")
    filter.add(b"http://two/b/2")
    assert filter.seen_prefix(b"http://one/a/new", 2)
    assert filter.seen_prefix(b"http://one/b/new", 2) == (bind == "xor")
    assert not filter.seen_prefix(b"http://three/a", 1)


@pytest.mark.parametrize("bind", BINDS)
def test_deeper_than_every_layer_is_absent(bind: Bind) -> None:
    filter = made(bind)
    filter.add(b"http://h/a")
    assert b"http://h/a/a/a" not in filter
    assert not filter.seen_prefix(b"http://h/a/a/a", 4)


@pytest.mark.parametrize("bind", ["salted_xor", "ordered"])
@pytest.mark.parametrize(("error_rate", "cells"), [(0.01, model.blocked), (1e-5, model.enhanced)])
@pytest.mark.parametrize("seed", [0, 2**64 - 5])
@given(urls=URLS)
def test_the_core_has_the_cells_of_the_model(
    bind: Literal["salted_xor", "ordered"],
    error_rate: float,
    cells: Callable[[int, int, int], list[int]],
    seed: int,
    urls: list[bytes],
) -> None:
    core = UrlFilter(60, error_rate, 5, paper={"bind": bind}, layer_sizes=[7, 60], seed=seed)
    plan = UrlFilter.plan(60, error_rate, 5, paper={"bind": bind}, layer_sizes=[7, 60])
    sizes = [(layer.cells, layer.hashes) for layer in plan.layers]
    sizes.insert(0, (plan.cells - sum(layer.cells for layer in plan.layers), plan.hashes))
    filter = ReferenceUrlFilter(
        xxhash.xxh3_128_intdigest,
        lambda address, depth: cells(address, *sizes[depth]),
        sizes.__getitem__,
        bind,
        5,
        seed,
    )
    for url in urls:
        addresses = filter.addresses(url)
        expected = [filter.positions(address, d) for d, address in enumerate(addresses, 1)]
        expected.append(filter.positions(filter.mixed(addresses[-1], 2**64 - 1), 0))
        assert core.positions(url) == expected
    assert core.add_many(urls).tolist() == filter.add_many(urls)
    asked = [url + b"/x" for url in urls] + urls
    assert core.contains_many(asked).tolist() == filter.contains_many(asked)
    for url in asked:
        for depth in range(1, min(len(segments(url, 5)), 4) + 1):
            assert core.seen_prefix(url, depth) == filter.seen_prefix(url, depth)


def test_segments_are_the_host_and_the_path_with_the_query_at_its_end() -> None:
    assert segments(b"https://h:81/a/b?q=/x", 8) == [b"h:81", b"a", b"b?q=/x"]
    assert segments(b"http://h/", 8) == [b"h", b""]
    assert segments(b"http://h/a/b/c?q", 3) == [b"h", b"a", b"b/c?q"]
    assert segments(b"ftp://h/a", 8) == [b"ftp://h", b"a"]
    assert segments(b"http://h/a/b", 1) == [b"h/a/b"]


def test_the_papers_xor_needs_a_power_of_two() -> None:
    with pytest.raises(ValueError, match="power of two"):
        ReferenceMultiLayerBloomFilter(lambda segment: [0], 1000, 1)
