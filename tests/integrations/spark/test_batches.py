"""Spark builds what one machine builds, and asks it inside queries."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bloomtide
from bloomtide import BloomFilter, CountingBloomFilter, TimeDecayingBloomFilter
from bloomtide.distributed import Recipe, ShardedFilter, build_partition, finish
from bloomtide.errors import CapacityError, ParameterError, UnsupportedError
from tests.distributed.recipes import EXACT, NOW, columns, key_of, one_machine
from tests.files.crafted import with_version

pytest.importorskip("pyspark", reason="PySpark is not installed")

from bloomtide.integrations import spark as by_spark

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet:FutureWarning"),
    pytest.mark.timeout(300),  # a JVM starts slowly on a machine that has other work
]
NUMBERS = [n * n % 2003 for n in range(6000)]
PLAN = BloomFilter.plan(10_000, 0.01)


def frame(spark: Any, rows: dict[str, list[Any]], parts: int = 3) -> Any:
    """A DataFrame in several partitions."""
    return spark.createDataFrame(pa.table(rows)).repartition(parts)


def chosen(rows: dict[str, list[Any]]) -> dict[str, Any]:
    """The columns that say how often and when."""
    return {name: name for name in ("count", "at") if name in rows}


@pytest.fixture(scope="module")
def keys(spark: Any) -> Any:
    """Keys with repeats, a day, and a number."""
    rows: dict[str, list[Any]] = {
        "url": [key_of(n) for n in NUMBERS],
        "n": NUMBERS,
        "day": [dt.date(2026, 1, 1 + n % 3) for n in NUMBERS],
        "at": [NOW - n % 5000 for n in NUMBERS],
    }
    return frame(spark, rows).cache()


@pytest.mark.parametrize("name", EXACT)
def test_a_build_is_that_of_one_machine_byte_for_byte(spark: Any, name: str) -> None:
    recipe = EXACT[name]
    rows = columns(recipe, NUMBERS)
    made = by_spark.build(frame(spark, rows), "key", recipe, groups=2, **chosen(rows))
    assert made.to_bytes() == one_machine(recipe, rows).to_bytes()


def test_a_hot_list_with_room_says_what_one_machine_says(keys: Any) -> None:
    recipe = Recipe.hot_list(3000)
    made = by_spark.build(keys, "url", recipe)
    expected = one_machine(recipe, {"key": [key_of(n) for n in NUMBERS]})
    told = [{(i.key, i.count, i.lower) for i in hot.top()} for hot in (made, expected)]
    assert told[0] == told[1]
    assert made.total() == len(NUMBERS)


def test_numbers_and_binary_are_keys_and_few_tasks_make_the_same(keys: Any) -> None:
    expected = BloomFilter.from_plan(PLAN)
    expected.add_many(np.array(NUMBERS))
    assert by_spark.build(keys, "n", PLAN) == expected
    assert by_spark.build(keys.selectExpr("int(n) as n"), "n", PLAN, tasks=1) == expected
    binary = by_spark.build(keys.selectExpr("cast(url as binary) as b"), "b", PLAN)
    assert binary == by_spark.build(keys, "url", PLAN)


def test_what_spark_built_is_a_file_like_any_other(keys: Any, tmp_path: Path) -> None:
    by_spark.build(keys, "url", PLAN).save(tmp_path / "seen.bloom")
    loaded: Any = bloomtide.load(tmp_path / "seen.bloom")
    assert loaded.contains_many([key_of(n) for n in NUMBERS]).all()


def test_files_are_read_by_the_workers_themselves(spark: Any, tmp_path: Path) -> None:
    from pyarrow import parquet

    table = pa.table({"n": NUMBERS, "url": [key_of(n) for n in NUMBERS]})
    (tmp_path / "day=1").mkdir()
    (tmp_path / "_SUCCESS").touch()
    parquet.write_table(table.slice(0, 2500), tmp_path / "a.parquet", row_group_size=500)
    parquet.write_table(table.slice(2500), tmp_path / "day=1" / "b.parquet")
    expected = one_machine(Recipe.of(PLAN), {"key": [key_of(n) for n in NUMBERS]})
    for tasks in (1, 2, 5, 9):
        assert by_spark.build_files(spark, tmp_path, "url", PLAN, tasks=tasks) == expected
    one = by_spark.build_files(spark, f"file://{tmp_path}/a.parquet", "n", PLAN)
    assert one == one_machine(Recipe.of(PLAN), {"key": NUMBERS[:2500]})
    with pytest.raises(ParameterError, match="one of n, url"):
        by_spark.build_files(spark, tmp_path, "other", PLAN)
    with pytest.raises(ParameterError, match="a Parquet or Arrow file"):
        by_spark.build_files(spark, tmp_path / "nowhere", "n", PLAN)


def test_arrow_files_are_read_as_they_are(spark: Any, tmp_path: Path) -> None:
    table = pa.table({"url": [key_of(n) for n in NUMBERS], "x": [0.5] * len(NUMBERS)})
    for name, start in (("a.arrow", 0), ("b.feather", 4000)):
        with pa.ipc.new_file(tmp_path / name, table.schema) as into:
            into.write_table(table.slice(start, 4000), 700)
    expected = one_machine(EXACT["dcf"], {"key": [key_of(n) for n in NUMBERS]})
    for tasks in (1, 2, 5):
        made = by_spark.build_files(spark, tmp_path, "url", EXACT["dcf"], tasks=tasks)
        assert made.to_bytes() == expected.to_bytes()
    with pytest.raises(ParameterError, match="`keys` must be text"):
        by_spark.build_files(spark, tmp_path, "x", PLAN)
    for name, data in (("0.txt", b"no file"), ("0.arrow", b""), ("0.parquet", b"")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ParameterError, match=f"{name} is no (Arrow|Parquet) file"):
            by_spark.build_files(spark, tmp_path, "url", PLAN)
        (tmp_path / name).unlink()


def test_nothing_at_all_is_an_empty_filter(keys: Any) -> None:
    made = by_spark.build(keys.where("false"), "url", PLAN)
    assert made == BloomFilter.from_plan(PLAN)


@pytest.mark.parametrize("form", ["filter", "partial"])
def test_each_group_has_its_filter_and_all_groups_merge(
    keys: Any, form: str, tmp_path: Path
) -> None:
    grouped = by_spark.build_grouped(keys, "day", "url", PLAN, form=form)
    grouped.write.parquet(str(tmp_path / "days"))
    kept = keys.sparkSession.read.parquet(str(tmp_path / "days"))
    assert kept.columns == ["day", "filter", "keys"]
    read = bloomtide.from_bytes if form == "filter" else finish
    rows = {row.day: row for row in kept.collect()}
    assert len(rows) == 3
    for day, row in rows.items():
        numbers = [n for n in NUMBERS if 1 + n % 3 == day.day]
        expected = one_machine(Recipe.of(PLAN), {"key": [key_of(n) for n in numbers]})
        assert read(bytes(row.filter)) == expected
        assert row["keys"] == len(numbers)
    assert by_spark.merge(kept) == by_spark.build(keys, "url", PLAN)


def test_merging_no_filters_is_refused(keys: Any) -> None:
    grouped = by_spark.build_grouped(keys, "day", "url", PLAN)
    with pytest.raises(ParameterError, match="at least one"):
        by_spark.merge(grouped.where("false"))


def test_contains_answers_as_the_filter_and_null_for_null(spark: Any, tmp_path: Path) -> None:
    seen = BloomFilter.from_plan(PLAN)
    seen.add_many([key_of(n) for n in range(100)])
    seen.save(tmp_path / "seen")
    asked = [*(key_of(n) for n in range(0, 200, 7)), None, "other", None]
    expected = [None if key is None else key in seen for key in asked]
    df = spark.createDataFrame(pa.table({"row": range(len(asked)), "url": asked})).repartition(3)
    for filter in (seen, tmp_path / "seen", str(tmp_path / "seen")):
        answers = df.withColumn("seen", by_spark.contains("url", filter)).orderBy("row").collect()
        assert [row.seen for row in answers] == expected


def test_counts_are_those_of_the_filter(keys: Any) -> None:
    counter = by_spark.build(keys, "n", CountingBloomFilter.plan(10_000, 1e-6, counter_bits=16))
    rows = keys.select("n", by_spark.count("n", counter).alias("seen")).distinct().collect()
    assert {row.n: row.seen for row in rows} == {n: counter.count(n) for n in set(NUMBERS)}
    plan = TimeDecayingBloomFilter.plan(10_000, 1e-6, half_life="1h", epoch="1h")
    fading = by_spark.build(keys, "n", Recipe.of(plan, at=NOW), at="at")
    rows = keys.select("n", by_spark.count("n", fading).alias("seen")).distinct().collect()
    assert {row.n: row.seen for row in rows} == {
        n: fading.count(n, at=fading.time) for n in set(NUMBERS)
    }


def test_shards_are_built_by_their_owners_and_asked_by_their_path(
    keys: Any, tmp_path: Path
) -> None:
    expected = ShardedFilter.of(BloomFilter, 3000, 0.01, shards=5)
    expected.add_many([key_of(n) for n in NUMBERS])
    made = by_spark.build_sharded(keys, "url", expected.recipe, tmp_path / "seen", shards=5)
    for number in range(5):
        assert made.shard(number).to_bytes() == expected.shard(number).to_bytes()
    path = str(tmp_path / "seen")
    assert keys.where(by_spark.contains("url", path)).count() == len(NUMBERS)
    with pytest.raises(UnsupportedError, match="give the path"):
        by_spark.contains("url", made)


def test_an_anti_join_drops_what_was_seen_and_exactly_that_if_it_may_look(keys: Any) -> None:
    seen = keys.where("n < 1000")
    sloppy = BloomFilter.plan(1000, 0.2)
    filter = by_spark.build(seen, "n", sloppy)
    truth = sorted(n for n in NUMBERS if n >= 1000)
    kept = [row.n for row in by_spark.anti_join(keys, "n", filter).collect()]
    assert set(kept) < set(truth)
    exact = by_spark.anti_join(keys, "n", filter, exact=seen)
    assert sorted(row.n for row in exact.collect()) == truth


def test_a_semi_filter_changes_no_join(keys: Any) -> None:
    small = keys.where("n % 100 = 3").select("n").distinct()
    thin = by_spark.semi_filter(keys, "n", small, BloomFilter.plan(100, 0.01))
    plain = keys.join(small, "n").count()
    assert thin.join(small, "n").count() == plain > 0
    assert plain <= thin.count() < len(NUMBERS) / 10


@pytest.mark.parametrize("name", ["dcf", "tbf-basic"])
def test_a_task_that_is_killed_changes_nothing(spark: Any, name: str, tmp_path: Path) -> None:
    import os
    import signal

    from pyspark import TaskContext

    recipe = EXACT[name]
    rows = columns(recipe, NUMBERS[:1500])
    df = frame(spark, rows, parts=2)
    folder = str(tmp_path)

    def die_once(batches: Any) -> Any:
        for batch in batches:
            yield batch
            context = TaskContext.get()
            assert context is not None
            mark = Path(folder) / str(context.partitionId())
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    try:
        made = by_spark.build(
            df.mapInArrow(die_once, df.schema), "key", recipe, groups=2, **chosen(rows)
        )
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert len(list(tmp_path.iterdir())) == 2  # every task died in mid-build
    assert made.to_bytes() == one_machine(recipe, rows).to_bytes()


def test_partials_may_pass_through_a_directory_and_leave_nothing_there(
    keys: Any, tmp_path: Path
) -> None:
    expected = one_machine(Recipe.of(PLAN), {"key": [key_of(n) for n in NUMBERS]})
    for tasks in (None, 2):
        made = by_spark.build(keys, "url", PLAN, tasks=tasks, scratch=tmp_path / "shared")
        assert made == expected
    assert list((tmp_path / "shared").iterdir()) == []
    spark = keys.sparkSession
    keys.select("url").write.parquet(str(tmp_path / "keys"))
    scratch = f"file://{tmp_path}/shared"
    assert by_spark.build_files(spark, tmp_path / "keys", "url", PLAN, scratch=scratch) == expected
    empty = by_spark.build(keys.where("false"), "url", PLAN, scratch=scratch)
    assert empty == BloomFilter.from_plan(PLAN)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "kind"),
    [("double(n)", "double"), ("array(n)", "array"), ("cast(n as decimal(9,0))", "decimal")],
)
def test_columns_that_are_no_keys_are_refused_before_a_task_starts(
    keys: Any, expression: str, kind: str
) -> None:
    df = keys.selectExpr(f"{expression} as k", "day")
    with pytest.raises(ParameterError, match=f"`k` of type {kind}"):
        by_spark.build(df, "k", PLAN)
    with pytest.raises(ParameterError, match=f"`k` of type {kind}"):
        by_spark.build_grouped(df, "day", "k", PLAN)


def test_what_does_not_go_together_is_named(keys: Any) -> None:
    with pytest.raises(ParameterError, match="a column of the DataFrame"):
        by_spark.build(keys, "nothing", PLAN)
    with pytest.raises(ParameterError, match="`count`"):
        by_spark.build(keys, "url", PLAN, count="n")
    with pytest.raises(ParameterError, match="`at`"):
        by_spark.build(keys, "url", PLAN, at="at")
    with pytest.raises(ParameterError, match="text or binary"):
        by_spark.build(keys, "n", EXACT["url"])
    with pytest.raises(CapacityError, match="shards"):
        by_spark.build(keys, "url", BloomFilter.plan(2 * 10**9, 0.01))
    with pytest.raises(UnsupportedError, match="does not count"):
        by_spark.count("url", BloomFilter(10, 0.1))
    with pytest.raises(ParameterError, match="hot list"):
        by_spark.contains("url", bloomtide.HotList(5))


def test_nulls_are_refused_with_their_reason_or_skipped(spark: Any) -> None:
    from pyspark.errors import PySparkException

    df = spark.createDataFrame(pa.table({"url": ["a", None, "b"]}))
    with pytest.raises(PySparkException, match="null"):
        by_spark.build(df, "url", PLAN)
    assert by_spark.build(df, "url", PLAN, nulls="skip") == one_machine(
        Recipe.of(PLAN), {"key": ["a", "b"]}
    )


def test_partials_of_other_parameters_or_another_version_stop_the_merge(spark: Any) -> None:
    from pyspark.errors import PySparkException

    parts = [
        build_partition([["a"]], BloomFilter.plan(capacity, 0.01)) for capacity in (1000, 2000)
    ]
    df = spark.createDataFrame(pa.table({"filter": parts})).coalesce(1)
    with pytest.raises(PySparkException, match="another `capacity`"):
        by_spark.merge(df)
    newer = with_version(parts[0], 2)
    df = spark.createDataFrame(pa.table({"filter": [parts[0], newer]})).coalesce(1)
    with pytest.raises(PySparkException, match="format version 2 is newer"):
        by_spark.merge(df)
