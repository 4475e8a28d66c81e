"""Building: a partial for each partition, merged on the executors, then on the driver.

    scan -> mapInArrow(build_partition) -> shuffle of partials -> mapInArrow(merge) -> driver

1. What crosses the network are partials, not keys: nearly nothing for small partitions, one filter
   for each large one. `tasks` makes fewer and larger partitions without a shuffle.
2. A task that dies is run again by Spark and hands on one partial, the one that counts.
3. `build_sharded` is for filters beyond one value (2 GiB): keys are shuffled to the task that owns
   their slice, and nothing is merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from bloomtide.distributed import Recipe, ShardedFilter, combine, write_shard
from bloomtide.distributed import merge as merge_partials
from bloomtide.distributed.build import Spool, fill
from bloomtide.distributed.directory import saving, write_manifest
from bloomtide.distributed.partial import require_size
from bloomtide.distributed.sharded import groups, shards_of
from bloomtide.errors import require
from bloomtide.integrations.spark.columns import rows
from bloomtide.integrations.spark.scratch import Scratch
from bloomtide.records import Plan

PARTIALS = "partial binary, part int"
_SMALL = 1 << 28
"""Bytes that the driver takes at once."""
_HELD = 1 << 28
"""Bytes of partials by group that a task keeps; beyond it hands all on and begins anew."""


def build(
    df: DataFrame,
    column: str,
    plan: Plan | Recipe,
    *,
    count: str | None = None,
    at: str | None = None,
    nulls: str = "refuse",
    tasks: int | None = None,
    groups: int = 8,
    scratch: str | Path | None = None,
) -> Any:
    """The filter of a column, as one machine would have built it.

    `count` and `at` name columns for structures that take them. `tasks` reads the partitions in so
    many tasks, each of which hands on one partial: about the number of cores is best for a large
    filter. Partials are merged in `groups` on the executors, the rest on the driver. `scratch` is a
    directory that every machine can write: partials pass through it, not through the JVMs, and the
    driver merges them, which is better for large filters of few tasks.
    """
    recipe = Recipe.of(plan)
    require_size(recipe)
    keys = rows(df, column, recipe, count=count, at=at)
    if tasks is not None:
        require("tasks", tasks, "at least 1", tasks >= 1)
        keys = keys.coalesce(tasks)

    def task(batches: Iterator[pa.RecordBatch]) -> Spool:
        return fill(batches, recipe, nulls)

    return collect(keys, task, recipe, tasks, groups, scratch)


def merge(df: DataFrame, column: str = "filter", *, groups: int = 8) -> Any:
    """The filter of all filters in a column: those of `build_grouped`, or of `to_bytes`.

    Nulls are skipped; no rows at all are refused, since nothing says which filter is meant.
    """

    def merge_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        values = (value for value in _values(batches) if value is not None)
        first = next(values, None)
        if first is not None:
            made = combine(_chain(first, values))
            yield partial_row(made.to_bytes())

    found = df.select(sql.col(column).alias("partial")).mapInArrow(merge_task, PARTIALS)
    return collect_partials(found, groups, None)


def build_grouped(
    df: DataFrame,
    by: str,
    column: str,
    plan: Plan | Recipe,
    *,
    count: str | None = None,
    at: str | None = None,
    nulls: str = "refuse",
    form: str = "filter",
) -> DataFrame:
    """A DataFrame with one filter for each value of `by`: columns `by`, `filter` and `keys`.

    A value of `filter` is read by `bloomtide.from_bytes`; with `form="partial"` it is packed, which
    is small for groups of few keys, and read by `bloomtide.distributed.finish`. `keys` is how many
    rows went in. `merge` makes one filter of any of the rows.
    """
    recipe = Recipe.of(plan)
    require_size(recipe)
    require("form", form, '"filter" or "partial"', form in {"filter", "partial"})
    require("by", by, "a column of the DataFrame", by in df.columns)
    keys = rows(df, column, recipe, count=count, at=at, more={"by": sql.col(by)})
    kind = df.schema[by].dataType.simpleString()

    def build_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spools: dict[Any, Spool] = {}
        for batch in batches:
            for value, some in _by_group(batch):
                if value not in spools:
                    spools[value] = Spool(recipe, nulls, 1)
                spools[value].take(some)
            if sum(spool.nbytes for spool in spools.values()) > _HELD:
                yield from _group_rows(spools, batch.schema.field("by").type)
                spools.clear()
        if spools:
            yield from _group_rows(spools, batch.schema.field("by").type)

    def merge_task(_key: Any, table: pa.Table) -> pa.Table:
        partial = merge_partials(value.as_py() for value in table.column("filter"))
        value = combine([partial]).to_bytes() if form == "filter" else partial
        counted = pc.sum(table.column("keys")).as_py()
        names = ["by", "filter", "keys"]
        return pa.table([table.column("by").slice(0, 1), [value], [counted]], names=names)

    schema = f"by {kind}, filter binary, keys long"
    partials = keys.mapInArrow(build_task, schema)
    return partials.groupBy("by").applyInArrow(merge_task, schema).withColumnRenamed("by", by)


def build_sharded(
    df: DataFrame,
    column: str,
    plan: Plan | Recipe,
    path: str | Path,
    *,
    shards: int,
    nulls: str = "refuse",
) -> ShardedFilter:
    """Shards in a directory that every machine can write, one task for each.

    The plan is that of one shard: `ShardedFilter.of(...).recipe` sizes it from the whole.
    """
    recipe = ShardedFilter(plan, shards).recipe  # refuses what cannot be sharded
    keys = rows(df, column, recipe)
    directory = str(path)

    def cut(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            column = batch.column("key")
            column = column.drop_null() if nulls == "skip" else column
            owners = pa.array(shards_of(column, recipe, shards), pa.int32())
            yield pa.RecordBatch.from_arrays([column, owners], names=["key", "shard"])

    def own(_key: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = next(batches)
        number = first.column("shard")[0].as_py()
        selected = (batch.select(["key"]) for batch in _chain(first, batches))
        report = write_shard(directory, number, selected, recipe)
        yield pa.RecordBatch.from_pylist([report])

    key = keys.schema["key"].dataType.simpleString()
    owned = keys.mapInArrow(cut, f"key {key}, shard int").groupBy("shard")
    schema = "number long, bytes long, digest string"
    reports = [row.asDict() for row in owned.applyInArrow(own, schema).collect()]
    written = {report["number"] for report in reports}
    for number in set(range(shards)) - written:  # no key belongs there
        reports.append(write_shard(directory, number, [], recipe))
    with saving(Path(directory)):
        write_manifest(Path(directory), recipe, reports)
    return ShardedFilter.load(directory)


def collect(
    source: DataFrame,
    task: Callable[[Iterator[pa.RecordBatch]], Spool],
    recipe: Recipe,
    tasks: int | None,
    groups: int,
    scratch: str | Path | None,
) -> Any:
    """The filter of the partials that `task` makes of each partition; `tasks` if they are known."""
    if scratch is None:

        def through_spark(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield partial_row(task(batches).pack())

        partials = source.mapInArrow(through_spark, PARTIALS)
        return collect_partials(partials, groups, recipe, tasks)
    with Scratch(scratch).during() as place:

        def through_files(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield partial_row(place.put(task(batches)))

        names = [bytes(row.partial) for row in source.mapInArrow(through_files, PARTIALS).collect()]
        spool = Spool(recipe, "refuse", 1)
        place.join(names, spool)
        return spool.filter()


def collect_partials(
    partials: DataFrame, groups: int, recipe: Recipe | None, tasks: int | None = None
) -> Any:
    """Merges on the executors, then one by one on the driver: no more than two filters at once.

    If it is known that no more than `groups` tasks make them, a shuffle would save nothing.
    """
    require("groups", groups, "at least 1", groups >= 1)

    def merge_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        values = _values(batches)
        first = next(values, None)
        if first is not None:
            merged = merge_partials if recipe is not None else _merge_filters
            yield partial_row(merged(_chain(first, values)))

    size = _SMALL if recipe is None else recipe.size
    merged = partials
    if tasks is None or tasks > groups or size * tasks >= _SMALL:
        merged = partials.repartition(groups, "part").mapInArrow(merge_task, PARTIALS)
        tasks = groups
    # One job for small filters; a job for each, one after the other, for filters that fill memory.
    found = merged.collect() if size * tasks < _SMALL else merged.toLocalIterator()
    values = (bytes(row.partial) for row in found)
    first = next(values, None)
    if first is None and recipe is not None:
        return recipe.make()
    return combine([] if first is None else _chain(first, values))


def _merge_filters(values: Iterable[bytes]) -> bytes:
    merged: bytes = combine(values).to_bytes()
    return merged


def partial_row(value: bytes) -> pa.RecordBatch:
    """What a task hands on."""
    context = TaskContext.get()
    part = 0 if context is None else context.partitionId()
    names = ["partial", "part"]
    return pa.RecordBatch.from_arrays(
        [pa.array([value], pa.binary()), pa.array([part], pa.int32())], names=names
    )


def _values(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    for batch in batches:
        for value in batch.column("partial"):
            yield value.as_py()


def _chain(first: Any, rest: Iterable[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _by_group(batch: pa.RecordBatch) -> Iterator[tuple[Any, pa.RecordBatch]]:
    """The rows of each value of `by`, without that column."""
    encoded = pc.dictionary_encode(batch.column("by"), null_encoding="encode")
    keys = batch.drop_columns(["by"])
    for number, where in groups(encoded.indices.to_numpy(zero_copy_only=False)):
        yield encoded.dictionary[number].as_py(), keys.take(where)


def _group_rows(spools: dict[Any, Spool], kind: pa.DataType) -> Iterator[pa.RecordBatch]:
    for value, spool in spools.items():
        columns = [pa.array([value], kind), pa.array([spool.pack()], pa.binary())]
        columns.append(pa.array([spool.rows], pa.int64()))
        yield pa.RecordBatch.from_arrays(columns, names=["by", "filter", "keys"])
