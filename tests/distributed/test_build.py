"""Partials: any cut, any tree of merges, and the filter of one machine comes out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import bloomtide
from bloomtide import BloomFilter, CountingBloomFilter, HotList, ScalableBloomFilter, UrlFilter
from bloomtide.distributed import Recipe, build_partition, combine, finish, merge
from bloomtide.distributed.partial import LIMIT, unpack
from bloomtide.errors import (
    CapacityError,
    ChecksumError,
    IncompatibleError,
    KindError,
    NotASnapshotError,
    NullKeyError,
    ParameterError,
    SnapshotError,
    TruncatedError,
    UnsupportedError,
    VersionError,
)
from bloomtide.format import seal, unseal
from tests.distributed.recipes import (
    BOUNDS,
    EXACT,
    NOW,
    SIZE,
    columns,
    exactly,
    key_of,
    one_machine,
)
from tests.files.crafted import with_version
from tests.golden.make_golden import PARTIALS

PLAN = BloomFilter.plan(10_000, 0.01)


def tree(parts: list[bytes], fan_in: int) -> bytes:
    """Merges in a tree."""
    while len(parts) > 1:
        parts = [merge(parts[i : i + fan_in]) for i in range(0, len(parts), fan_in)]
    return parts[0]


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=12, deadline=None)
@given(
    numbers=st.lists(st.integers(0, 400), max_size=1200),
    cuts=st.lists(st.integers(0, 1200), max_size=6),
    fan_in=st.integers(2, 4),
    alone=st.booleans(),
)
def test_any_cut_and_any_tree_make_the_filter_of_one_machine(
    name: str, numbers: list[int], cuts: list[int], fan_in: int, alone: bool
) -> None:
    recipe = EXACT[name]
    rows = columns(recipe, numbers)
    if alone and not recipe.fades:
        rows = {"key": rows["key"]}
    types = {"key": pa.string(), "count": pa.int64(), "at": pa.float64()}
    table = pa.table({column: pa.array(rows[column], types[column]) for column in rows})
    edges = [0, *sorted(min(cut, len(numbers)) for cut in cuts), len(numbers)]
    parts = [
        build_partition(table.slice(start, stop - start).to_batches(max_chunksize=100), recipe)
        for start, stop in pairwise(edges)
    ]
    merged = tree(parts[::-1], fan_in)
    expected = one_machine(recipe, rows)
    assert finish(merged).to_bytes() == expected.to_bytes()
    assert unpack(merged).rows == len(numbers)


@pytest.mark.parametrize("name", BOUNDS)
def test_counts_that_do_not_add_up_exactly_are_never_too_small(name: str) -> None:
    recipe = BOUNDS[name]
    numbers = [n * n % 1009 for n in range(6000)]
    rows = columns(recipe, numbers)
    table = pa.table(rows)
    parts = [build_partition([table.slice(i * 1500, 1500)], recipe) for i in range(4)]
    made = finish(tree(parts, 2))
    exact = exactly(recipe, rows)
    words = {"at": NOW} if recipe.fades else {}
    counted = [made.count(key, **words) for key in exact]
    for key, count in zip(exact, counted, strict=True):
        assert count >= exact[key] * (1 - 1e-9) or made.estimate(key, **words).saturated
    assert sum(counted) < 1.5 * sum(exact.values())


@pytest.mark.parametrize("kind", [list, np.array, pa.array, lambda keys: pa.chunked_array([keys])])
def test_keys_may_come_in_every_form(kind: Any) -> None:
    for keys in ([key_of(n) for n in range(900)], list(range(900))):
        expected = BloomFilter.from_plan(PLAN)
        expected.add_many(keys)
        parts = [build_partition([kind(keys[:400]), kind(keys[400:])], PLAN)]
        assert finish(merge(parts)).to_bytes() == expected.to_bytes()


def test_keys_of_several_types_go_in_too() -> None:
    keys = ["a", b"b", 3, -4]
    made = finish(build_partition([keys, ["c"]], PLAN))
    assert made.contains_many([*keys, "c"]).all()
    assert made.estimated_items() == pytest.approx(5, abs=0.1)


def test_a_few_keys_ship_a_few_bytes_and_need_no_filter() -> None:
    plan = BloomFilter.plan(10**9, 0.01)
    keys = [key_of(n) for n in range(1000)]
    parts = [build_partition([keys[i::4]], plan) for i in range(4)]
    assert all(unpack(part).has_keys for part in parts)
    merged = merge(parts)
    assert unpack(merged).has_keys
    assert len(merged) < 16_000 < plan.bytes / 1000
    assert len(build_partition([], plan)) < 2000


def test_many_keys_ship_the_filter() -> None:
    part = build_partition([np.arange(20_000)], PLAN)
    assert not unpack(part).has_keys
    assert len(part) < 1.2 * PLAN.bytes
    few = build_partition([np.arange(10)], PLAN)
    assert unpack(few).has_keys
    assert not unpack(merge([few, part])).has_keys
    assert finish(merge([few, part])).to_bytes() == finish(merge([part, few])).to_bytes()


def test_finished_filters_and_partials_combine_alike() -> None:
    keys = np.arange(9000)
    expected = one_machine(Recipe.of(PLAN), {"key": keys.tolist()})
    parts = [build_partition([keys[i::3]], PLAN) for i in range(3)]
    assert combine(parts) == expected
    assert combine(finish(part).to_bytes() for part in parts) == expected
    with pytest.raises(ParameterError, match="at least one"):
        combine([])


# --- hot lists: equal where nothing was pushed out, and bounds that hold where something was ------


def facts(made: Any) -> set[tuple[Any, float, float]]:
    """What a hot list says, whatever the order in which it came to know it."""
    return {(item.key, item.count, item.lower) for item in made.top()}


def test_a_hot_list_with_room_says_what_one_machine_says() -> None:
    recipe = Recipe.hot_list(500)
    numbers = [n * n % 487 for n in range(5000)]
    rows = columns(recipe, numbers)
    parts = [
        build_partition([pa.table({name: rows[name][i::3] for name in rows})], recipe)
        for i in range(3)
    ]
    made, expected = finish(merge(parts)), one_machine(recipe, rows)
    assert facts(made) == facts(expected)
    assert made.total() == expected.total()


@pytest.mark.parametrize("half_life", [None, "1h"])
def test_a_hot_list_that_is_too_small_keeps_its_bounds(half_life: str | None) -> None:
    at = None if half_life is None else NOW
    recipe = Recipe.hot_list(40, half_life=half_life, at=at)
    numbers = [min(n * 7919 % 1009, n % 50) for n in range(6000)]
    rows = columns(recipe, numbers)
    exact = exactly(recipe, rows)
    parts = [
        build_partition([pa.table({name: rows[name][i::5] for name in rows})], recipe)
        for i in range(5)
    ]
    made = finish(tree(parts, 2))
    for item in made.top(at=at):
        assert item.lower <= exact[item.key] * (1 + 1e-9)
        assert exact[item.key] <= item.count * (1 + 1e-9)
    listed = {item.key for item in made.top(at=at)}
    assert {key for key, count in exact.items() if count > sum(exact.values()) / 40} <= listed


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("kind", Recipe.of(CountingBloomFilter.plan(10_000, 0.01))),
        ("capacity", Recipe.of(BloomFilter.plan(20_000, 0.01))),
        ("error_rate", Recipe.of(BloomFilter.plan(10_000, 0.02))),
        ("layout", Recipe.of(BloomFilter.plan(10_000, 0.01, layout="classic"))),
        ("seed", Recipe.of(PLAN, seed=1)),
        ("hash", Recipe.of(PLAN, hash="keyed", secret=bytes(16))),
    ],
)
def test_partials_of_other_parameters_are_refused_by_the_name_that_differs(
    field: str, other: Recipe
) -> None:
    with pytest.raises(IncompatibleError, match=f"`{field}`") as caught:
        merge([build_partition([["a"]], PLAN), build_partition([["a"]], other)])
    assert caught.value.field == field


def test_a_keyed_recipe_needs_its_secret() -> None:
    """Without one, every task made up another, and no two parts would merge."""
    makers: tuple[Callable[[], object], ...] = (
        lambda: Recipe.of(PLAN, hash="keyed"),
        lambda: Recipe.hot_list(5, hash="keyed"),
        lambda: Recipe(plan=PLAN, hash="keyed"),
    )
    for make in makers:
        with pytest.raises(ParameterError) as caught:
            make()
        assert caught.value.name == "secret"
        assert "token_bytes(16)" in caught.value.hint


def test_two_secrets_are_told_apart_and_not_told() -> None:
    parts = [
        build_partition([["a"]], Recipe.of(PLAN, hash="keyed", secret=bytes([n]) * 16))
        for n in (1, 2)
    ]
    with pytest.raises(IncompatibleError, match="`secret`: one secret and another"):
        merge(parts)


@pytest.mark.parametrize("keys", [10, 20_000])
def test_every_flipped_byte_and_every_cut_is_refused(keys: int) -> None:
    part = build_partition([np.arange(keys)], PLAN)
    for place in [*range(60), len(part) // 2, len(part) - 1]:
        broken = bytearray(part)
        broken[place] ^= 0x10
        with pytest.raises(
            (
                ChecksumError,
                VersionError,
                TruncatedError,
                NotASnapshotError,
                bloomtide.BloomtideError,
            )
        ):
            unpack(bytes(broken))
    for length in (0, 8, 51, 60, len(part) - 1):
        with pytest.raises((TruncatedError, NotASnapshotError)):
            unpack(part[:length])
    with pytest.raises(TruncatedError):
        unpack(part + b"x")


def _resealed(part: bytes, body: bytes) -> bytes:
    """The same partial with another body, as somebody would forge it."""
    added, _ = unseal(part, "partial")
    return seal("partial", added, body)


def test_a_body_that_claims_too_much_is_refused_before_it_is_unpacked() -> None:
    claimed = zstandard.ZstdCompressor().compressobj(size=2**40)
    lie = claimed.compress(b"x") + claimed.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    part = _resealed(build_partition([["a"]], PLAN), lie)
    with pytest.raises(SnapshotError, match="claims"):
        finish(part)


def test_keys_that_arrow_cannot_trust_are_refused() -> None:
    part = build_partition([["a", "b"]], PLAN)
    assert unpack(part).has_keys
    raw = zstandard.ZstdDecompressor().decompress(unpack(part).body)
    text = raw.index(b"ab")
    for place in range(text - 16, text - 4):  # three offsets of four bytes, and padding
        damaged = bytearray(raw)
        damaged[place] ^= 0x40
        with pa.ipc.open_stream(bytes(damaged)) as reader:
            assert len(list(reader)) == 1, "Arrow reads it without a word"
        body = zstandard.ZstdCompressor().compress(bytes(damaged))
        with pytest.raises(SnapshotError, match=r"cannot be unpacked: .*[Oo]ffset"):
            unpack(_resealed(part, body)).tables()


def test_another_version_is_refused_as_such() -> None:
    part = with_version(build_partition([["a"]], PLAN), 2)
    with pytest.raises(VersionError) as caught:
        merge([part])
    assert (caught.value.expected, caught.value.got) == (1, 2)


def test_a_finished_filter_is_no_partial() -> None:
    with pytest.raises(KindError, match="this is a `bloom` filter, not a partial"):
        merge([BloomFilter(10, 0.1).to_bytes()])
    with pytest.raises(NotASnapshotError, match="no partial"):
        merge([b"PAR1" * 20])


def test_no_partials_are_refused() -> None:
    with pytest.raises(ParameterError, match="at least one"):
        merge([])


@pytest.mark.parametrize(("recipe"), [Recipe.of(PLAN), EXACT["url"], Recipe.hot_list(5)])
def test_nulls_are_refused_or_skipped(recipe: Recipe) -> None:
    batch = pa.array([key_of(1), None, key_of(2)])
    with pytest.raises(NullKeyError):
        build_partition([batch], recipe)
    part = build_partition([batch], recipe, nulls="skip")
    assert unpack(part).rows == 2
    assert key_of(1) in finish(part)
    with pytest.raises(ParameterError, match="nulls"):
        build_partition([batch], recipe, nulls="maybe")


@pytest.mark.parametrize("column", [pa.array([1.5]), pa.array([[1]]), pa.array([True])])
def test_a_column_that_holds_no_keys_is_refused_where_it_is_read(column: Any) -> None:
    with pytest.raises(ParameterError, match="`keys` must be text"):
        build_partition([column], PLAN)


def test_numbers_are_no_urls() -> None:
    with pytest.raises(ParameterError, match="`keys`"):
        build_partition([np.arange(3)], UrlFilter.plan(**SIZE))  # type: ignore[arg-type]


def test_columns_that_a_structure_does_not_take_are_named() -> None:
    batch = pa.record_batch({"key": ["a"], "count": [2]})
    with pytest.raises(ParameterError, match="takes no column `count`"):
        build_partition([batch], PLAN)
    with pytest.raises(ParameterError, match="a column `key`"):
        build_partition([pa.record_batch({"url": ["a"]})], PLAN)


def test_a_filter_that_no_value_can_hold_is_refused_before_it_is_built() -> None:
    plan = BloomFilter.plan(2 * 10**9, 0.01)
    with pytest.raises(CapacityError, match="shards") as caught:
        build_partition([["a"]], plan)
    assert caught.value.limit == LIMIT < caught.value.needed == plan.bytes


def test_what_does_not_merge_has_no_recipe() -> None:
    with pytest.raises(UnsupportedError, match="scalable"):
        Recipe.of(ScalableBloomFilter.plan(100, 0.01))
    with pytest.raises(ParameterError, match="a Plan or a Recipe"):
        Recipe.of(HotList(5))  # type: ignore[arg-type]


def test_an_instant_is_for_what_fades_and_nothing_else() -> None:
    with pytest.raises(ParameterError, match="`at`"):
        Recipe.of(PLAN, at=NOW)
    with pytest.raises(ParameterError, match="`at`"):
        Recipe.hot_list(5, half_life="1h")


@pytest.mark.parametrize("name", EXACT)
def test_a_recipe_comes_back_from_its_bytes(name: str) -> None:
    recipe = EXACT[name]
    again = Recipe.from_json(recipe.to_json())
    assert again == recipe
    assert again.fingerprint == recipe.fingerprint
    assert again.make().to_bytes() == recipe.make().to_bytes()


def test_an_event_after_the_instant_of_the_counts_is_refused() -> None:
    recipe = Recipe.hot_list(5, half_life="1h", at=NOW)
    batch = pa.record_batch({"key": ["a", "b"], "at": [NOW - 5.0, NOW + 5.0]})
    with pytest.raises(ParameterError, match="after") as caught:
        build_partition([batch], recipe)
    assert caught.value.name == "at"


def test_partials_of_every_version_are_read_for_ever() -> None:
    of_keys = (PARTIALS / "v1-keys.partial").read_bytes()
    of_cells = (PARTIALS / "v1-filter.partial").read_bytes()
    keys, cells = unpack(of_keys), unpack(of_cells)
    assert (keys.has_keys, keys.rows, cells.has_keys, cells.rows) == (True, 3, False, 500)
    assert finish(of_keys).contains_many(["/a", "/b", "/c"]).all()
    assert finish(of_cells).contains_many(np.arange(500)).all()
