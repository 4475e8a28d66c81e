"""Structured Streaming: micro-batches into a history, a stream without repeats, a live hot list.

Spark sends a micro-batch again after a crash, under the number it had and with the same rows. Each
sink here makes the effect of a batch depend on that number and on nothing else:

    history_sink    the catalogue takes the batch and its number in one transaction
    dedup           the state after batch n is a file of its own, made from the one after n - 1
    hot_table       likewise

So a batch that runs twice, in part or whole, counts once. The name of a stream is the id that Spark
keeps in the checkpoint: a new checkpoint is a new stream.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.streaming import StreamingQuery

from bloomtide import BloomFilter, History, HotList
from bloomtide._core import parse_duration, parse_instant, replace_file
from bloomtide.distributed import Recipe
from bloomtide.distributed.sharded import shards_of
from bloomtide.errors import StorageError, require
from bloomtide.history.batches import BufferRecipe, dump, replay_all
from bloomtide.history.settings import Nulls
from bloomtide.integrations.spark.building import build
from bloomtide.integrations.spark.columns import keys
from bloomtide.recent import RecentFilter

_WAIT = 60
"""Seconds that the first batch waits to be told the stream's id."""
_SHARDING = Recipe.of(BloomFilter.plan(1, 0.5))
"""The hash that says who owns a key."""


def history_sink(
    df: DataFrame,
    store: History,
    column: str,
    *,
    at: str,
    checkpoint: str | Path,
    count: str | None = None,
    nulls: Nulls = "refuse",
    **options: Any,
) -> StreamingQuery:
    """Starts a query that counts every event of a stream once in a history, by its own time.

    Tasks count their rows exactly; the driver joins the counts, writes aligned segments and
    registers them with the batch's number. `store` stays open as long as the query runs. `options`
    are those of `start`, such as `queryName`; a `trigger` is a dictionary.
    """
    recipe = BufferRecipe.of(store)
    keys(df, column, count=count, at=at)  # refuses before anything starts

    def fill(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        buffer = recipe.make()
        for batch in batches:
            counts = batch.column("count") if count is not None else None
            buffer.add_many(batch.column("key"), counts, at=batch.column("at"), nulls=nulls)
        yield pa.RecordBatch.from_pydict({"dump": [dump(buffer)]})

    def take(stream: str, batch: DataFrame, number: int) -> None:
        def replay(buffer: Any) -> None:
            counted = keys(batch, column, count=count, at=at).mapInArrow(fill, "dump binary")
            found = counted.toLocalIterator()
            replay_all(buffer, (bytes(row["dump"]) for row in found))

        store.add_batch(stream, number, replay)

    return _start(df, take, checkpoint, options)


def dedup(
    df: DataFrame,
    column: str,
    then: Callable[[DataFrame, int], object],
    *,
    at: str,
    capacity: int,
    state: str | Path,
    checkpoint: str | Path,
    within: Any = "7d",
    error_rate: float = 0.001,
    shards: int = 4,
    **options: Any,
) -> StreamingQuery:
    """Starts a query that hands on each key once `within` a time: `then(rows, number)`.

    Each task owns a slice of the keys and keeps a `RecentFilter` for it in the directory `state`,
    which all machines can write. What is older than `within` is forgotten, so the state is bounded
    by the keys of that time: about seven bytes each at the default error rate.
    Of rows that are no repeats `error_rate` are lost; no repeat passes.
    `then` may run again for a number, with the same rows. Rows without a key or a time are dropped.
    """
    keys(df, column, at=at)  # refuses before anything starts
    require("shards", shards, "at least 1", shards >= 1)
    seconds = parse_duration(within, "within")
    size = max(capacity // shards, 1)
    RecentFilter(size, error_rate, within=seconds)
    folder = str(state)

    def cut(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            batch = batch.filter(pc.and_(batch[column].is_valid(), batch[at].is_valid()))
            owners = pa.array(shards_of(batch[column], _SHARDING, shards), pa.int32())
            yield batch.append_column("__shard", owners)

    def take(stream: str, batch: DataFrame, number: int) -> None:
        def own(table: pa.Table) -> pa.Table:
            owner = table["__shard"][0].as_py()
            states = States(Path(folder) / stream / f"shard-{owner:05d}", "recent")
            table = table.take(pc.sort_indices(table[at])).drop_columns(["__shard"])
            before = states.before(number)
            if before is None:
                made = RecentFilter(size, error_rate, within=seconds)
            else:
                made = RecentFilter.load(before)
            moments = parse_instant(table[at].combine_chunks(), "at")
            new = made.add_many(table[column].combine_chunks(), moments, refresh=False)
            states.write(number, made.to_bytes())
            return table.filter(pa.array(new))

        owned = batch.mapInArrow(cut, batch.withColumn("__shard", sql.lit(0)).schema)
        kept = owned.groupBy("__shard").applyInArrow(own, batch.schema).persist()
        try:
            then(kept, number)
        finally:
            kept.unpersist()

    return _start(df, take, checkpoint, options)


def hot_table(
    df: DataFrame,
    column: str,
    *,
    at: str,
    name: str,
    state: str | Path,
    checkpoint: str | Path,
    k: int = 100,
    half_life: Any = "1h",
    **options: Any,
) -> StreamingQuery:
    """Starts a query that keeps the hottest keys of a stream as a table, `SELECT * FROM name`.

    Columns `key`, `count`, `lower` and `share`, hottest first, as of the latest event. Counts fade
    by `half_life`. The list is a file in `state` too: `HotList.load(latest(state))`.
    """
    life = parse_duration(half_life, "half_life")
    HotList(k, half_life=life)
    session = df.sparkSession

    def take(stream: str, batch: DataFrame, number: int) -> None:
        states = States(Path(state) / stream, "hot")
        before = states.before(number)
        made = HotList(k, half_life=life) if before is None else HotList.load(before)
        found = batch.where(sql.col(column).isNotNull() & sql.col(at).isNotNull())
        last = found.agg(sql.max(sql.col(at).cast("double"))).first()[0]
        if last is not None:
            recipe = Recipe.hot_list(k, half_life=life, at=last)
            made.merge(build(found, column, recipe, at=at, groups=1))
        states.write(number, made.to_bytes())
        _publish(session, made, name)

    return _start(df, take, checkpoint, options)


def latest(state: str | Path) -> Path:
    """The file of the hot list that `hot_table` keeps: of the stream written to last."""
    found = [path for path in Path(state).glob("*/*.hot") if path.stem.isdigit()]
    require("state", str(state), "a directory that `hot_table` has written", bool(found))
    return max(found, key=lambda path: (path.stat().st_mtime_ns, int(path.stem)))


class States:
    """The state of a stream after each batch: one file for each number, the last two are kept."""

    def __init__(self, folder: Path, kind: str) -> None:
        """Makes nothing yet."""
        self._folder, self._kind = folder, kind

    def before(self, number: int) -> Path | None:
        """The state that a batch begins with; None if it is the first."""
        earlier = [known for known in self._numbers() if known < number]
        return self._path(max(earlier)) if earlier else None

    def write(self, number: int, data: bytes) -> None:
        """The state after a batch; the same again if the batch runs again."""
        self._folder.mkdir(parents=True, exist_ok=True)
        replace_file(self._path(number), data)
        earlier = sorted(known for known in self._numbers() if known < number)
        for known in earlier[:-1]:
            self._path(known).unlink(missing_ok=True)

    def _numbers(self) -> list[int]:
        found = self._folder.glob(f"*.{self._kind}")
        return [int(path.stem) for path in found if path.stem.isdigit()]

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.{self._kind}"


def _start(
    df: DataFrame,
    take: Callable[[str, DataFrame, int], None],
    checkpoint: str | Path,
    options: dict[str, Any],
) -> StreamingQuery:
    told = threading.Event()
    stream: list[str] = []

    def each(batch: DataFrame, number: int) -> None:
        if not told.wait(_WAIT):
            raise StorageError(
                "the stream was not told its own id", hint="start it again",
                path=str(checkpoint), operation="start",
            )  # fmt: skip
        take(stream[0], batch, number)

    trigger = options.pop("trigger", None)
    writer = df.writeStream.foreachBatch(each).option("checkpointLocation", str(checkpoint))
    query = (writer if trigger is None else writer.trigger(**trigger)).start(**options)
    stream.append(str(query.id))
    told.set()
    return query


def _publish(session: Any, made: HotList, name: str) -> None:
    top = [
        (key.decode(errors="replace") if isinstance(key, bytes) else str(key), *rest)
        for key, *rest in ((i.key, i.count, i.lower, i.share) for i in made.top(at=made.time))
    ]
    schema = "key string, count double, lower double, share double"
    session.createDataFrame(top, schema).createOrReplaceTempView(name)
