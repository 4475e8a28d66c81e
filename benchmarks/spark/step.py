"""One step of `make spark`, in processes of its own: prints what it took, as JSON.

All steps read the files that the step `data` wrote, on executors that are processes of their own
(`local-cluster`). Each runs on ten thousand rows first: what is measured is a session that is warm,
not the start of JVMs and workers.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from benchmarks.spark.measure import Profile, Watch, moved
from bloomtide import BloomFilter, TimeDecayingBloomFilter
from bloomtide.distributed import Recipe, build_partition, merge
from bloomtide.distributed.recipe import CLASSES
from bloomtide.integrations.spark import build, build_files, semi_filter

SPREAD = 0.8
"""Distinct keys of all rows."""
TINY = 10_000
AT = 1_700_000_000
KINDS = ("counting", "sbf", "dcf", "psbf", "pdcf", "tbf", "url")
"""Kinds whose merging is measured beside that of a plain Bloom filter."""
PAYLOAD = "sha2(string(id), 256) as payload"


def session(folder: Path, executors: int) -> Any:
    """A session whose event log tells what was shuffled."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        # Else both warm-up tasks may go to the executor that came first, and the other's worker is
        # cold when it counts.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.executor.memory": "3g",
        "spark.sql.shuffle.partitions": "8",
        "spark.local.dir": str(folder),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": str(folder),
        "spark.log.level": "OFF",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    }
    builder = SparkSession.builder.master(f"local-cluster[{executors},1,3072]").appName("bloomtide")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


# --- the data -------------------------------------------------------------------------------------


def make_keys(spark: Any, rows: int, form: str, folder: Path) -> None:
    """Keys of which a fifth repeat an earlier one, in eight files of Parquet and of Arrow."""
    keys = spark.range(0, rows, 1, 8).selectExpr(f"xxhash64(id % {int(rows * SPREAD)}) as key")
    if form == "url":
        keys = keys.selectExpr(
            "concat('https://www.example.org/articles/', lower(hex(key))) as key"
        )
    keys.write.parquet(str(folder / form))
    (folder / f"{form}-arrow").mkdir()
    for number, path in enumerate(sorted((folder / form).glob("*.parquet"))):
        with parquet.ParquetFile(path) as file:
            schema = file.schema_arrow.remove_metadata()
            with pa.ipc.new_file(folder / f"{form}-arrow" / f"{number}.arrow", schema) as into:
                for batch in file.iter_batches(1 << 16):
                    into.write_batch(batch)
        if number < 4:
            (folder / f"{form}-half").mkdir(exist_ok=True)
            (folder / f"{form}-half" / path.name).hardlink_to(path)


def make_tables(spark: Any, rows: int, folder: Path) -> None:
    """A wide table, and one key of a thousand of it."""
    wide = spark.range(0, rows, 1, 8).selectExpr("id as key", PAYLOAD)
    wide.write.parquet(str(folder / "wide"))
    few = spark.range(0, rows, 1000, 2).selectExpr("id as key", "id % 7 as kind")
    few.write.parquet(str(folder / "few"))


# --- what is measured -----------------------------------------------------------------------------


def recipe_of(structure: str, rows: int) -> Recipe:
    """A structure that has room for the keys, at 1 %."""
    size = (int(rows * SPREAD), 0.01)
    if structure == "tbf":
        return Recipe.of(TimeDecayingBloomFilter.plan(*size, half_life="1d"), at=AT)
    if structure == "hot":
        return Recipe.hot_list(1000)
    return Recipe.of(CLASSES[structure].plan(*size))


def found(made: Any, recipe: Recipe, tasks: int) -> dict[str, Any]:
    """What a build says of itself."""
    keys = round(made.estimated_items()) if hasattr(made, "estimated_items") else None
    return {"answer": keys, "filter_bytes": recipe.size, "partial_bytes": recipe.size * tasks}


def run_build(spark: Any, data: Path, rows: int, form: str, structure: str) -> dict[str, Any]:
    """A filter of all keys, through a DataFrame."""
    recipe, tasks = recipe_of(structure, rows), spark.sparkContext.defaultParallelism
    df = spark.read.parquet(str(data / form))
    return found(build(df, "key", recipe, tasks=tasks, scratch=data / "scratch"), recipe, tasks)


def run_files(spark: Any, data: Path, rows: int, form: str, structure: str) -> dict[str, Any]:
    """A filter of all keys, from files that the workers read."""
    recipe, tasks = recipe_of(structure, rows), spark.sparkContext.defaultParallelism
    made = build_files(
        spark, data / form, "key", recipe, tasks=tasks, scratch=data / "scratch"
    )  # fmt: skip
    return found(made, recipe, tasks)


def run_distinct(spark: Any, data: Path, rows: int, form: str, _: str) -> dict[str, Any]:
    """Spark's exact count."""
    return {"answer": spark.read.parquet(str(data / form)).distinct().count()}


def run_drop(spark: Any, data: Path, rows: int, form: str, _: str) -> dict[str, Any]:
    """Spark's rows without repeats, all of them looked at."""
    kept = spark.read.parquet(str(data / form)).dropDuplicates(["key"])
    kept.write.format("noop").mode("overwrite").save()
    return {}


def run_shuffle(spark: Any, data: Path, rows: int, form: str, _: str) -> dict[str, Any]:
    """Every key to the task that owns it, and nothing else: what shards cost beside the build."""
    owned = spark.read.parquet(str(data / form)).repartition(8, "key")
    owned.write.format("noop").mode("overwrite").save()
    return {}


def joined(spark: Any, data: Path, thin: Any = None) -> dict[str, Any]:
    """A join by sorting, all columns of it looked at."""
    wide, few = (spark.read.parquet(str(data / name)) for name in ("wide", "few"))
    chosen = few.where("kind < 5")
    both = (wide if thin is None else thin(wide, chosen)).join(chosen, "key")
    return {"answer": both.selectExpr("count(payload) as n").first()[0]}


def run_join(spark: Any, data: Path, rows: int, *_: str) -> dict[str, Any]:
    """Spark's join as it is."""
    return joined(spark, data)


def run_runtime(spark: Any, data: Path, rows: int, *_: str) -> dict[str, Any]:
    """With Spark's own runtime filter, which is off for small tables unless told."""
    name = "spark.sql.optimizer.runtime.bloomFilter"
    spark.conf.set(f"{name}.enabled", "true")
    spark.conf.set(f"{name}.applicationSideScanSizeThreshold", "0")
    return joined(spark, data)


def run_semi(spark: Any, data: Path, rows: int, *_: str) -> dict[str, Any]:
    """With `semi_filter` before it."""
    plan = BloomFilter.plan(max(rows // 1000, 1000), 0.001)
    return joined(spark, data, lambda wide, few: semi_filter(wide, "key", few, plan))


STEPS: dict[str, Callable[..., dict[str, Any]]] = {
    "build": run_build, "files": run_files, "distinct": run_distinct, "drop": run_drop,
    "shuffle": run_shuffle, "join": run_join, "runtime": run_runtime, "semi": run_semi,
}  # fmt: skip


def run_rates(rows: int) -> dict[str, Any]:
    """One core alone, without Spark: keys of Arrow batches, and partials merged."""
    import numpy as np

    recipe = Recipe.of(BloomFilter.plan(rows, 0.01))
    numbers = np.arange(rows, dtype=np.int64)
    urls = [
        pa.array([f"https://www.example.org/articles/{n:016x}" for n in range(i, i + 10_000)])
        for i in range(0, min(rows, 1_000_000), 10_000)
    ]
    start = time.process_time()
    parts = [build_partition([numbers[i::2]], recipe) for i in range(2)]
    built = time.process_time()
    merge(parts)
    merged = time.process_time()
    made = recipe.make()
    began = time.process_time()
    for batch in urls:
        made.add_many(batch)
    added = time.process_time()
    large = Recipe.of(BloomFilter.plan(50 * rows, 0.01)).make()  # a shard that no cache holds
    large.add_many(numbers[:1000])
    first = time.process_time()
    large.add_many(numbers)
    last = time.process_time()
    return {
        "large_keys_per_second": rows / (last - first),
        "long_keys_per_second": rows / (built - start),
        "url_keys_per_second": len(urls) * 10_000 / (added - began),
        "merge_bytes_per_second": 2 * recipe.size / (merged - built),
    } | {
        f"{kind}_merge_bytes_per_second": merge_rate(kind, numbers[: rows // 10]) for kind in KINDS
    }


def merge_rate(kind: str, numbers: Any) -> float:
    """Bytes of partials of a kind that one core unpacks, merges and packs again."""
    recipe = recipe_of(kind, len(numbers))
    keys = [f"https://example.org/{n}" for n in numbers] if kind == "url" else numbers
    parts = [build_partition([keys[i::2]], recipe) for i in range(2)]
    start = time.process_time()
    merge(parts)
    return 2 * recipe.size / (time.process_time() - start)


def make(folder: Path, data: Path, options: argparse.Namespace) -> None:
    """The data of all steps, and ten thousand rows of the same kind."""
    spark = session(folder, 2)
    for rows, into in ((TINY, data / "tiny"), (options.rows, data)):
        for form in options.form.split(","):
            make_keys(spark, rows, form, into)
    for rows, into in ((TINY, data / "tiny"), (options.join, data)):
        if options.join:
            make_tables(spark, rows, into)
    spark.stop()


def measured(folder: Path, data: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One step, warm."""
    run = STEPS[options.step]
    words = (options.form, options.structure)
    spark = session(folder, options.executors)
    for _ in range(2):
        run(spark, data / "tiny", TINY, *words)
    profile, watch = Profile(folder), Watch()
    watch.start()
    began, start = time.time(), time.perf_counter()
    answer = run(spark, data, options.rows, *words)
    seconds, cpu = time.perf_counter() - start, watch.cpu()
    watch.ends.set()
    spent = profile.read(watch.roles)
    spark.stop()
    answer |= {"rows": options.rows, "seconds": seconds, "cpu_seconds": cpu, "profile": spent}
    return answer | {"peak_bytes": watch.peak} | moved(folder, began)


def main() -> None:
    """One step."""
    parser = argparse.ArgumentParser()
    parser.add_argument("step", choices=[*STEPS, "rates", "data"])
    parser.add_argument("--data", type=Path, help="the directory that the step `data` makes")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--join", type=int, default=0, help="rows of the tables of the step `data`")
    parser.add_argument("--form", default="long,url")
    parser.add_argument("--structure", default="bloom")
    parser.add_argument("--executors", type=int, default=2)
    options = parser.parse_args()
    if options.step == "rates":
        sys.stdout.write(json.dumps(run_rates(options.rows)))
        return
    with tempfile.TemporaryDirectory() as name:
        if options.step == "data":
            make(Path(name), options.data, options)
            told: dict[str, Any] = {}
        else:
            told = measured(Path(name), options.data, options)
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
