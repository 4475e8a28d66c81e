"""A month of logs on Spark, from Parquet to the numbers of a dashboard.

    python examples/spark_logs/profile_logs.py LOGS INTO

LOGS is a directory of Parquet files with the columns id, visitor, page and time (made if it is not
there: a month of generated traffic in which collectors sent some lines twice). Into INTO go

    unique/              each line once
    days/                a filter of visitors for each day; any days merge to one
    visitors.bloom    the filter of the month: `bloomtide info visitors.bloom`
    history/             hits of every page by the hour: `bloomtide history top history`
    dashboard.json       the numbers

Needs `pip install 'bloomtide[spark]'` and Java 17.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from bloomtide import BloomFilter, CountingBloomFilter, History, from_bytes
from bloomtide.integrations.spark import (
    Recipe,
    build,
    build_grouped,
    count,
    history_sink,
    merge,
)

START = 1_767_225_600  # 2026-01-01


def make_logs(path: Path, *, days: int = 31, lines: int = 20_000) -> None:
    """Traffic in which a few pages are hot, and one line in fifty was sent twice."""
    path.mkdir(parents=True)
    random = np.random.default_rng(1)
    for day in range(days):
        page = np.minimum(random.zipf(1.3, lines), 5000)
        table = pa.table(
            {
                "id": pa.array(np.arange(lines) + day * lines),
                "visitor": pa.array([f"v{n}" for n in random.integers(0, 300 + 20 * day, lines)]),
                "page": pa.array([f"/page/{n}" for n in page]),
                "time": pa.array(START + day * 86_400 + np.sort(random.uniform(0, 86_400, lines))),
            }
        )
        again = pa.array(random.integers(0, lines, lines // 50))
        parquet.write_table(pa.concat_tables([table, table.take(again)]), path / f"{day}.parquet")


def each_line_once(rows: Any, lines: int) -> Any:
    """Exactly `rows.dropDuplicates(["id"])`, but only lines that seem to repeat are shuffled: a
    count is never too small, so an id that counts one came once."""
    counter = build(rows, "id", CountingBloomFilter.plan(lines, 0.01))
    counted = rows.withColumn("times", count("id", counter))
    once = counted.where("times = 1").drop("times")
    repeats = counted.where("times > 1").drop("times").dropDuplicates(["id"])
    return once.unionByName(repeats)


def profile(spark: Any, logs: Path, into: Path) -> dict[str, Any]:
    """All numbers, and the files behind them."""
    rows = spark.read.parquet(str(logs))
    lines = rows.count()
    each_line_once(rows, lines).write.parquet(str(into / "unique"))
    unique = spark.read.parquet(str(into / "unique"))

    by_day = unique.withColumn("day", sql.to_date(sql.timestamp_seconds("time")))
    plan = BloomFilter.plan(10_000, 0.001)
    build_grouped(by_day, "day", "visitor", plan).write.parquet(str(into / "days"))
    days = spark.read.parquet(str(into / "days"))
    month = merge(days)
    month.save(into / "visitors.bloom")

    hot = build(unique, "page", Recipe.hot_list(500))
    top = [item.key for item in hot.top(5)]

    stream = spark.readStream.schema(unique.schema).parquet(str(into / "unique"))
    with History.open(into / "history", "1h") as store:
        history_sink(
            stream, store, "page", at="time", checkpoint=into / "checkpoint",
            trigger={"availableNow": True},
        ).awaitTermination()  # fmt: skip
        week = store.top(START, START + 7 * 86_400, 3)
        numbers = {
            "lines": lines,
            "sent twice": lines - unique.count(),
            "visitors": round(month.estimated_items()),
            "visitors by day": {
                str(row.day): round(from_bytes(bytes(row["filter"])).estimated_items())
                for row in days.orderBy("day").collect()
            },
            "hottest": {page: store.count(page).upper for page in top},
            "hottest of the first week": [item.key for item in week.items],
        }
    (into / "dashboard.json").write_text(json.dumps(numbers, indent=1))
    return numbers


def main() -> None:
    """Profiles a directory of logs."""
    logs, into = Path(sys.argv[1]), Path(sys.argv[2])
    if not logs.exists():
        make_logs(logs)
    builder = SparkSession.builder.config("spark.sql.session.timeZone", "UTC")
    spark = builder.config("spark.log.level", "ERROR").getOrCreate()
    sys.stdout.write(json.dumps(profile(spark, logs, into), indent=1) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
