"""Shards: each key has one owner, and a directory of them answers as one filter."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bloomtide
from bloomtide import (
    BloomFilter,
    CountingBloomFilter,
    DynamicCountFilter,
    HotList,
    RecentFilter,
    ScalableBloomFilter,
    TimeDecayingBloomFilter,
    UrlFilter,
)
from bloomtide.distributed import Recipe, ShardedFilter, write_shard
from bloomtide.distributed.directory import write_manifest
from bloomtide.distributed.sharded import shard_capacity
from bloomtide.errors import (
    ChecksumError,
    KeyTypeError,
    KindError,
    NotASnapshotError,
    NullKeyError,
    ParameterError,
    StorageError,
    TruncatedError,
    UnsupportedError,
    VersionError,
)
from tests.distributed.recipes import NOW
from tests.files.crafted import with_fields

KEYS = [f"key-{n}" for n in range(20_000)]


def filled(shards: int = 7) -> ShardedFilter:
    made = ShardedFilter.of(BloomFilter, len(KEYS), 0.01, shards=shards)
    made.add_many(KEYS)
    return made


def test_a_shard_is_the_filter_of_its_own_keys() -> None:
    made = filled()
    belongs = made.shards_of(KEYS)
    for number in range(made.shards):
        expected = made.recipe.make()
        expected.add_many(
            [key for key, shard in zip(KEYS, belongs, strict=True) if shard == number]
        )
        assert made.shard(number).to_bytes() == expected.to_bytes()
        assert expected.estimated_items() > len(KEYS) / 10


def test_every_key_is_found_and_the_error_is_that_of_a_shard() -> None:
    made = filled()
    assert made.contains_many(KEYS).all()
    assert KEYS[5] in made
    wrong = int(made.contains_many(np.arange(100_000)).sum())
    rate = max(made.shard(n).stats().predicted_error for n in range(made.shards))
    assert rate < 0.012
    assert wrong < 100_000 * rate + 4 * (100_000 * rate) ** 0.5
    assert wrong > 300  # a filter that said no to everything would be a wonder


@pytest.mark.parametrize("shards", [1, 2, 64])
def test_keys_spread_over_all_shards_by_chance_alone(shards: int) -> None:
    made = ShardedFilter.of(BloomFilter, len(KEYS), 0.01, shards=shards)
    sizes = np.bincount(made.shards_of(KEYS), minlength=shards)
    mean = len(KEYS) / shards
    assert abs(sizes - mean).max() <= 5 * mean**0.5
    assert sizes.max() <= shard_capacity(len(KEYS), shards)


def test_a_key_has_the_same_shard_in_every_form() -> None:
    made = filled()
    expected = made.shards_of(KEYS).tolist()
    assert made.shards_of(np.array(KEYS)).tolist() == expected
    assert made.shards_of(pa.array(KEYS)).tolist() == expected
    assert made.shards_of([key.encode() for key in KEYS]).tolist() == expected
    assert [made.shard_of(key) for key in KEYS[:50]] == expected[:50]


def test_counts_are_those_of_the_stream() -> None:
    made = ShardedFilter.of(DynamicCountFilter, 1000, 1e-4, shards=3)
    numbers = np.arange(600)
    made.add_many(numbers, counts=1 + numbers % 5)
    made.add_many(pa.array(numbers))
    made.add(5)
    expected = 2 + numbers % 5
    expected[5] += 1
    assert made.count_many(numbers).tolist() == expected.tolist()
    assert made.count(5) == 3


def test_fading_counts_are_asked_at_their_instant() -> None:
    made = ShardedFilter.of(
        TimeDecayingBloomFilter, 1000, 1e-4, shards=3, half_life="1h", epoch="1h", at=NOW
    )
    made.add_many(["a", "b"], at=[NOW, NOW - 3600])
    made.add_many(["a", "b"])
    assert made.count_many(["a", "b", "c"]).tolist() == [2.0, 1.5, 0.0]


def test_a_directory_of_shards_answers_alike_and_reads_what_it_needs(tmp_path: Path) -> None:
    made = filled()
    made.save(tmp_path / "seen")
    loaded = ShardedFilter.load(tmp_path / "seen")
    assert loaded.recipe == made.recipe
    assert KEYS[0] in loaded
    assert list(loaded._filters) == [made.shard_of(KEYS[0])]
    questions = np.arange(3000)
    assert (loaded.contains_many(questions) == made.contains_many(questions)).all()
    loaded.validate()
    [third] = (tmp_path / "seen").glob("shard-00003-*.bloom")
    assert bloomtide.load(third) == made.shard(3)


def test_tasks_that_own_shards_make_the_same_directory(tmp_path: Path) -> None:
    made = filled(shards=3)
    made.save(tmp_path / "one")
    belongs = made.shards_of(KEYS)
    reports = []
    for number in (2, 0, 1, 2):  # a task may run again
        keys = pa.array([key for key, s in zip(KEYS, belongs, strict=True) if s == number])
        batches = [keys[:100], pa.record_batch({"key": keys[100:]})]
        reports.append(write_shard(tmp_path / "many", number, batches, made.recipe))
    with pytest.raises(StorageError, match="no manifest"):
        ShardedFilter.load(tmp_path / "many")
    write_manifest(tmp_path / "many", made.recipe, reports[1:])
    names = sorted(path.name for path in (tmp_path / "one").iterdir() if path.name != "lock")
    assert names == sorted(path.name for path in (tmp_path / "many").iterdir())
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "many" / name).read_bytes()


def test_a_shard_of_another_build_is_refused(tmp_path: Path) -> None:
    made = filled()
    made.save(tmp_path)
    made.shard(2).add("one more")
    [second] = tmp_path.glob("shard-00002-*.bloom")
    made.shard(2).save(second)
    with pytest.raises(ChecksumError, match="shard-00002"):
        ShardedFilter.load(tmp_path).contains_many(KEYS)


def test_a_manifest_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    filled().save(tmp_path)
    path = tmp_path / "manifest.json"
    data = path.read_bytes()
    shards = json.loads(data)["shards"]
    for broken, error in (
        (b"[]", NotASnapshotError),
        (b"{", NotASnapshotError),
        (data[:-1], TruncatedError),
        (data.replace(b'"number":1', b'"number":2'), ChecksumError),
        (with_fields(data, shards=shards[1:]), NotASnapshotError),
        (with_fields(data, shards=[]), NotASnapshotError),
        (with_fields(data, version=2), VersionError),
        (with_fields(data, format="ledger"), KindError),
    ):
        path.write_bytes(broken)
        with pytest.raises(error):
            ShardedFilter.load(tmp_path)


def test_what_cannot_be_cut_by_keys_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="canonical"):
        ShardedFilter(UrlFilter.plan(100), 2)
    with pytest.raises(UnsupportedError, match="hot lists"):
        ShardedFilter(Recipe.hot_list(5), 2)
    with pytest.raises(ParameterError, match="shards"):
        ShardedFilter(BloomFilter.plan(100, 0.01), 0)
    with pytest.raises(UnsupportedError, match="does not count"):
        filled().count_many(["a"])


@pytest.mark.parametrize(
    ("kind", "way_out"),
    [
        (HotList, "merge hot lists"),
        (UrlFilter, "canonical URLs"),
        (ScalableBloomFilter, "BloomFilter"),
        (RecentFilter, "BloomFilter"),
        ("bloom", "BloomFilter"),
        (dict, "BloomFilter"),
    ],
)
def test_a_class_that_has_no_shards_is_refused_with_what_to_do(kind: Any, way_out: str) -> None:
    with pytest.raises(ParameterError, match="`kind` must be a class of filters") as caught:
        ShardedFilter.of(kind, 100, 0.01, shards=2)
    assert caught.value.name == "kind"
    assert way_out in caught.value.hint


@pytest.mark.parametrize("shards", [0, -1, 2**20 + 1, 1.5, "2", None, True])
def test_a_number_of_shards_that_is_none_is_refused(shards: Any) -> None:
    makers: tuple[Callable[[], object], ...] = (
        lambda: ShardedFilter.of(BloomFilter, 100, 0.01, shards=shards),
        lambda: ShardedFilter(BloomFilter.plan(100, 0.01), shards),
    )
    for make in makers:
        with pytest.raises(ParameterError) as caught:
            make()
        assert caught.value.name == "shards"


def test_shards_of_a_keyed_filter_need_the_secret() -> None:
    with pytest.raises(ParameterError) as caught:
        ShardedFilter.of(BloomFilter, 100, 0.01, shards=2, hash="keyed")
    assert caught.value.name == "secret"


def test_a_secret_hides_which_shard_a_key_has() -> None:
    plan = BloomFilter.plan(100, 0.01)
    one, other = (
        ShardedFilter(Recipe.of(plan, hash="keyed", secret=bytes([n]) * 16), 64) for n in (1, 2)
    )
    same = int((one.shards_of(KEYS) == other.shards_of(KEYS)).sum())
    assert abs(same - len(KEYS) / 64) < 5 * (len(KEYS) / 64) ** 0.5


def shards_that_count() -> ShardedFilter:
    return ShardedFilter.of(CountingBloomFilter, 1000, 0.001, shards=4)


@pytest.mark.parametrize("bad", [None, 3.5])
@pytest.mark.parametrize("form", [list, iter])
def test_the_keys_before_a_bad_one_are_in_and_no_others(bad: Any, form: Any) -> None:
    made = ShardedFilter.of(BloomFilter, 1000, 1e-9, shards=4)
    with pytest.raises((NullKeyError, KeyTypeError)) as caught:
        made.add_many(form([*KEYS[:35], bad, *KEYS[35:40]]))
    error: Any = caught.value
    assert error.added == 35
    assert [key in made for key in KEYS[:40]] == [True] * 35 + [False] * 5


def test_an_iterator_that_fails_adds_nothing() -> None:
    def failing() -> Any:
        yield "x"
        raise RuntimeError("gone")

    made = ShardedFilter.of(BloomFilter, 1000, 1e-9, shards=4)
    with pytest.raises(RuntimeError, match="gone"):
        made.add_many(failing())
    assert "x" not in made


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([1] * 35 + [0] + [1] * 4, "row 35"),
        ([1] * 39 + [-1], "row 39"),
        ([1] * 10, "10 for 40 keys"),
        ([1] * 41, "41 for 40 keys"),
        (3, "a column of whole numbers"),
    ],
)
def test_bad_counts_are_refused_before_any_key_goes_in(counts: Any, message: str) -> None:
    made = shards_that_count()
    with pytest.raises(ParameterError, match=message):
        made.add_many(KEYS[:40], counts)
    assert not any(made.contains_many(KEYS[:40]))


def test_instants_are_judged_before_any_key_goes_in() -> None:
    made = ShardedFilter.of(TimeDecayingBloomFilter, 1000, 0.01, shards=4, half_life=60, at=NOW)
    for at, message in (([NOW] * 9, "9 for 10 keys"), ([NOW] * 9 + ["?"], "row 9")):
        with pytest.raises(ParameterError, match=message):
            made.add_many(KEYS[:10], at=at)
    assert not any(made.contains_many(KEYS[:10]))
    plain = shards_that_count()
    with pytest.raises(ParameterError, match="`at`"):
        plain.add_many(KEYS[:10], at=NOW)


def test_keys_with_their_counts_may_be_a_mapping_or_a_table() -> None:
    counted = {key: number % 9 + 1 for number, key in enumerate(KEYS[:40])}
    table = pa.table({"key": list(counted), "count": list(counted.values())})
    for given in (counted, table):
        made = shards_that_count()
        made.add_many(given)
        assert made.count_many(list(counted)).tolist() == list(counted.values())
    with pytest.raises(ParameterError, match="do not count"):
        ShardedFilter.of(BloomFilter, 1000, 0.01, shards=4).add_many(counted)
