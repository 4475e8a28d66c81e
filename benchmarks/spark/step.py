"""One step of `make spark`, in a process and a JVM of its own: prints what it took, as JSON."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from bloomery import BloomFilter
from bloomery.distributed import Recipe, build_partition, merge
from bloomery.integrations.spark import build, build_files, semi_filter

SPREAD = 0.8
"""Distinct keys of all rows."""


def session(folder: Path, cores: str) -> Any:
    """A session whose event log tells what was shuffled."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "3g",
        "spark.sql.shuffle.partitions": "8",
        "spark.local.dir": str(folder),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": str(folder),
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    }
    builder = SparkSession.builder.master(cores).appName("bloomery")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


# --- what is measured -----------------------------------------------------------------------------


def keys_of(spark: Any, rows: int, form: str) -> Any:
    """Rows of which a fifth repeat an earlier key; made by the JVM, so no disk is measured."""
    keys = spark.range(0, rows, 1, 8).selectExpr(f"xxhash64(id % {int(rows * SPREAD)}) as key")
    return keys if form == "long" else keys.selectExpr(
        "concat('https://www.example.org/articles/', hex(key)) as key"
    )  # fmt: skip


def run_build(spark: Any, rows: int, form: str) -> dict[str, Any]:
    """Our filter of all keys."""
    plan = BloomFilter.plan(int(rows * SPREAD), 0.01)
    made = build(keys_of(spark, rows, form), "key", plan, tasks=2, groups=2)
    return {"answer": round(made.estimated_items()), "filter_bytes": plan.bytes}


def run_profile(spark: Any, rows: int, form: str) -> dict[str, Any]:
    """The same tasks, with the CPU time inside the compiled core."""
    recipe = Recipe.of(BloomFilter.plan(int(rows * SPREAD), 0.01))

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made, native, start = recipe.make(), 0.0, time.process_time()
        for batch in batches:
            began = time.thread_time()
            made.add_many(batch.column("key"))
            native += time.thread_time() - began
        spent = time.process_time() - start
        yield pa.RecordBatch.from_pydict({"native": [native], "python": [spent]})

    found = keys_of(spark, rows, form).coalesce(2).mapInArrow(task, "native double, python double")
    times = found.collect()
    return {
        "native_seconds": sum(row.native for row in times),
        "python_seconds": sum(row.python for row in times),
    }


def run_shuffle(spark: Any, rows: int, form: str) -> dict[str, Any]:
    """Every key to the task that owns it, and nothing else: what shards cost beside the build."""
    owned = keys_of(spark, rows, form).repartition(8, "key")
    owned.write.format("noop").mode("overwrite").save()
    return {}


def files_of(spark: Any, rows: int, form: str, folder: Path) -> Path:
    """The same keys as Parquet files."""
    keys_of(spark, rows, form).write.parquet(str(folder / "keys"))
    return folder / "keys"


def run_files(spark: Any, path: Path, rows: int) -> dict[str, Any]:
    """Our filter of all keys, from Parquet files that the workers read."""
    plan = BloomFilter.plan(int(rows * SPREAD), 0.01)
    made = build_files(spark, path, "key", plan, tasks=2, groups=2)
    return {"answer": round(made.estimated_items()), "filter_bytes": plan.bytes}


def run_scan(spark: Any, path: Path, rows: int) -> dict[str, Any]:
    """The same files through the JVM."""
    plan = BloomFilter.plan(int(rows * SPREAD), 0.01)
    made = build(spark.read.parquet(str(path)), "key", plan, tasks=2, groups=2)
    return {"answer": round(made.estimated_items())}


def run_profile_files(spark: Any, path: Path, rows: int) -> dict[str, Any]:
    """The tasks of `files`, with the CPU time inside the compiled core."""
    from pyarrow import parquet

    recipe = Recipe.of(BloomFilter.plan(int(rows * SPREAD), 0.01))

    def task(units: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made, native, start = recipe.make(), 0.0, time.process_time()
        for unit in (row for batch in units for row in batch.to_pylist()):
            for batch in parquet.ParquetFile(unit["file"]).iter_batches(1 << 16):
                began = time.thread_time()
                made.add_many(batch.column(0))
                native += time.thread_time() - began
        spent = time.process_time() - start
        yield pa.RecordBatch.from_pydict({"native": [native], "python": [spent]})

    pieces = [(str(file),) for file in sorted(path.glob("*.parquet"))]
    found = spark.createDataFrame(pieces, "file string").repartition(2)
    times = found.mapInArrow(task, "native double, python double").collect()
    return {
        "native_seconds": sum(row.native for row in times),
        "python_seconds": sum(row.python for row in times),
    }


def run_distinct(spark: Any, rows: int, form: str) -> dict[str, Any]:
    """Spark's exact count."""
    return {"answer": keys_of(spark, rows, form).distinct().count()}


def run_drop(spark: Any, rows: int, form: str) -> dict[str, Any]:
    """Spark's rows without repeats, all of them looked at."""
    kept = keys_of(spark, rows, form).dropDuplicates(["key"])
    kept.write.format("noop").mode("overwrite").save()
    return {}


def tables(spark: Any, rows: int, folder: Path) -> tuple[Any, Any]:
    """A wide table in Parquet, and one key of a thousand of it."""
    wide = spark.range(0, rows, 1, 8).selectExpr("id as key", "sha2(string(id), 256) as payload")
    wide.write.parquet(str(folder / "wide"))
    few = spark.range(0, rows, 1000, 2).selectExpr("id as key", "id % 7 as kind")
    few.write.parquet(str(folder / "few"))
    return spark.read.parquet(str(folder / "wide")), spark.read.parquet(str(folder / "few"))


def joined(wide: Any, few: Any) -> dict[str, Any]:
    """A join by sorting, all columns of it looked at."""
    both = wide.join(few.where("kind < 5"), "key")
    return {"answer": both.selectExpr("count(payload) as n").first()[0]}


def run_join(spark: Any, wide: Any, few: Any, _rows: int) -> dict[str, Any]:
    """Spark's join as it is."""
    return joined(wide, few)


def run_runtime(spark: Any, wide: Any, few: Any, _rows: int) -> dict[str, Any]:
    """With Spark's own runtime filter, which is off for small tables unless told."""
    name = "spark.sql.optimizer.runtime.bloomFilter"
    spark.conf.set(f"{name}.enabled", "true")
    spark.conf.set(f"{name}.applicationSideScanSizeThreshold", "0")
    return joined(wide, few)


def run_semi(spark: Any, wide: Any, few: Any, rows: int) -> dict[str, Any]:
    """With `semi_filter` before it."""
    plan = BloomFilter.plan(max(rows // 1000, 1000), 0.001)
    return joined(semi_filter(wide, "key", few.where("kind < 5"), plan), few)


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
    }


KEYS: dict[str, Callable[..., dict[str, Any]]] = {
    "build": run_build, "profile": run_profile, "distinct": run_distinct, "drop": run_drop,
    "shuffle": run_shuffle,
}  # fmt: skip
FILES: dict[str, Callable[..., dict[str, Any]]] = {
    "files": run_files, "scan": run_scan, "profile-files": run_profile_files,
}  # fmt: skip
JOINS: dict[str, Callable[..., dict[str, Any]]] = {
    "join": run_join, "runtime": run_runtime, "semi": run_semi,
}  # fmt: skip


# --- how it is measured ---------------------------------------------------------------------------


def family() -> list[int]:
    """This process and all below it."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            parents.setdefault(parent, []).append(int(path.name))
    found, queue = [], [os.getpid()]
    while queue:
        found.append(queue.pop())
        queue += parents.get(found[-1], [])
    return found


def cpu_seconds() -> float:
    """CPU time of all of them, and of those that ended."""
    ticks = 0
    for pid in family():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


class Memory(threading.Thread):
    """Looks at the resident memory of all of them, ten times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self.ends = threading.Event()

    def run(self) -> None:
        page = os.sysconf("SC_PAGE_SIZE")
        while not self.ends.wait(0.1):
            total = 0
            for pid in family():
                try:
                    total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page
                except OSError:
                    continue
            self.peak = max(self.peak, total)


def shuffled(folder: Path, since: float) -> int:
    """Bytes that tasks started after that instant wrote for others."""
    total = 0
    for path in folder.glob("local-*"):
        if not path.is_file():
            continue
        for line in path.read_text().splitlines():
            if '"SparkListenerTaskEnd"' not in line:
                continue
            event = json.loads(line)
            if event["Task Info"]["Launch Time"] >= since * 1000:
                metrics = event.get("Task Metrics") or {}
                wrote = metrics.get("Shuffle Write Metrics", {})
                total += int(wrote.get("Shuffle Bytes Written", 0))
    return total


def main() -> None:
    """One step."""
    parser = argparse.ArgumentParser()
    parser.add_argument("step", choices=[*KEYS, *FILES, *JOINS, "rates"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--form", choices=["long", "url"], default="long")
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    if options.step == "rates":
        sys.stdout.write(json.dumps(run_rates(options.rows)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = session(folder, options.master)
        spark.range(1000).mapInArrow(lambda batches: batches, "id long").count()  # workers are up
        made: tuple[Any, ...] = ()
        if options.step in JOINS:
            made = tables(spark, options.rows, folder)
        elif options.step in FILES:
            made = (files_of(spark, options.rows, options.form, folder),)
        memory = Memory()
        memory.start()
        before, began, start = cpu_seconds(), time.time(), time.perf_counter()
        if options.step in KEYS:
            found = KEYS[options.step](spark, options.rows, options.form)
        else:
            found = (FILES | JOINS)[options.step](spark, *made, options.rows)
        seconds, cpu = time.perf_counter() - start, cpu_seconds() - before
        memory.ends.set()
        spark.stop()
        found |= {"rows": options.rows, "seconds": seconds, "cpu_seconds": cpu}
        found |= {"peak_bytes": memory.peak, "shuffle_bytes": shuffled(folder, began)}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
