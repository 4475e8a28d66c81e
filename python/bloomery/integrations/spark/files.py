"""Parquet files straight into filters: Spark hands out the files, the workers read them.

A DataFrame brings each row through the JVM, which takes several times the CPU of the filter itself.
Where a build needs one column of files as they are, the workers read that column by Arrow, and the
JVM only says who reads what and runs a lost task again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs, parquet
from pyspark.sql import SparkSession

from bloomery.distributed import Recipe, build_partition
from bloomery.distributed.partial import require_size
from bloomery.errors import require
from bloomery.integrations.spark.building import PARTIALS, collect_partials, partial_row
from bloomery.records import Plan

_ROWS = 1 << 16
"""Of a batch."""


def build_files(
    spark: SparkSession,
    path: str | Path,
    column: str,
    plan: Plan | Recipe,
    *,
    nulls: str = "refuse",
    tasks: int | None = None,
    groups: int = 8,
) -> Any:
    """The filter of a column of Parquet files: one file, or all below a directory.

    `path` is read by every machine: a shared directory, or an address that Arrow knows, such as
    `s3://`. Directories of partitions are read for their files; what their names say is no column.
    """
    recipe = Recipe.of(plan)
    require_size(recipe)
    system, base = _open(path)
    count = spark.sparkContext.defaultParallelism if tasks is None else tasks
    require("tasks", count, "at least 1", count >= 1)
    pieces = _pieces(system, base, column, count)

    def read(units: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in units for row in batch.to_pylist())
        yield partial_row(build_partition(_keys(system, rows, column), recipe, nulls=nulls))

    units = spark.createDataFrame(pieces, "file string, row_group int").repartition(count)
    return collect_partials(units.mapInArrow(read, PARTIALS), groups, recipe)


def _keys(system: Any, units: Iterator[dict[str, Any]], column: str) -> Iterator[Any]:
    for unit in units:
        with parquet.ParquetFile(unit["file"], filesystem=system) as file:
            chosen = None if unit["row_group"] is None else [unit["row_group"]]
            for batch in file.iter_batches(_ROWS, row_groups=chosen, columns=[column]):
                yield batch.column(0)


def _open(path: str | Path) -> tuple[Any, str]:
    if "://" in str(path):
        found: tuple[Any, str] = fs.FileSystem.from_uri(str(path))
        return found
    return fs.LocalFileSystem(), str(Path(path).resolve())


def _pieces(system: Any, base: str, column: str, tasks: int) -> list[tuple[str, int | None]]:
    """Whole files, or their row groups where there are fewer files than tasks."""
    info = system.get_file_info(base)
    if info.type == fs.FileType.Directory:
        below = system.get_file_info(fs.FileSelector(base, recursive=True))
        # Names that begin with a dot or an underscore are not data, as for Spark itself.
        files = sorted(
            file.path
            for file in below
            if file.type == fs.FileType.File and file.base_name[0] not in "._"
        )
    else:
        files = [base] if info.type == fs.FileType.File else []
    require("path", base, "a Parquet file, or a directory of such", bool(files))
    first = parquet.ParquetFile(files[0], filesystem=system)
    with first:
        names = first.schema_arrow.names
    require("column", column, f"one of {', '.join(names)}", column in names)
    if len(files) >= tasks:
        return [(file, None) for file in files]
    pieces: list[tuple[str, int | None]] = []
    for name in files:
        with parquet.ParquetFile(name, filesystem=system) as file:
            pieces += [(name, group) for group in range(file.num_row_groups)]
    return pieces
