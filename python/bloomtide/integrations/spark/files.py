"""Files straight into filters: Spark hands out the work, the workers read the column themselves.

A DataFrame brings each row through the JVM, which takes several times the CPU of the filter itself.
Where a build needs one column of files as they are, the workers read that column by Arrow, and the
JVM only says who reads what and runs a lost task again.

Arrow files (`.arrow`, `.feather`) hold what the core reads: nothing is decoded. Pages of Parquet
are unpacked by the core, which reads keys where they lie in them; columns that are not of the plain
sort (`_pages` says which) are decoded by Arrow, which makes an array of each page first.

1. Task t of n reads the files t, t + n, ...; if there are fewer files than tasks, their row groups.
2. One thread for each task: Spark has given the other cores to other tasks.
3. A local file is mapped, so its pages are not copied. It must not be cut meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs, parquet
from pyspark.sql import SparkSession

from bloomtide import BloomFilter, UrlFilter
from bloomtide._core import ParquetPages
from bloomtide.distributed import Recipe
from bloomtide.distributed.build import Spool
from bloomtide.distributed.partial import require_size
from bloomtide.errors import ParameterError, require
from bloomtide.integrations.spark.building import collect
from bloomtide.integrations.spark.scratch import open_place
from bloomtide.records import Plan

_TEXTS, _NUMBERS = 1 << 14, 1 << 17
"""Rows of a batch of Parquet, which the CPU's cache still holds when the core reads them."""
_PHYSICAL = {
    "INT32": ("int32", "int16", "int8"),
    "INT64": ("int64",),
    "BYTE_ARRAY": ("string", "large_string", "binary", "large_binary"),
}
"""Types of columns whose keys are what Parquet stores."""
_CODECS = ("UNCOMPRESSED", "SNAPPY")
_ENCODINGS = {"PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY"}
_ARROW = (".arrow", ".feather")
_FILES = "a Parquet or Arrow file, or a directory of such"


def build_files(
    spark: SparkSession,
    path: str | Path,
    column: str,
    plan: Plan | Recipe,
    *,
    nulls: str = "refuse",
    tasks: int | None = None,
    groups: int = 8,
    scratch: str | Path | None = None,
) -> Any:
    """The filter of a column of Parquet or Arrow files: one file, or all below a directory.

    `path` is read by every machine: a shared directory, or an address that Arrow knows, such as
    `s3://`. Directories of partitions are read for their files; what their names say is no column.
    `scratch` is for large filters, as for `build`.
    """
    recipe = Recipe.of(plan)
    require_size(recipe)
    system, base = open_place(path)
    count = spark.sparkContext.defaultParallelism if tasks is None else tasks
    require("tasks", count, "at least 1", count >= 1)
    files = _files(system, base)
    _require_keys(_Source(system, files[0]).schema, column, recipe)

    def task(numbers: Iterator[pa.RecordBatch]) -> Spool:
        (mine,) = (row["id"] for batch in numbers for row in batch.to_pylist())
        spool = Spool(recipe, nulls, 1)
        for keys in _keys(system, files, column, mine, count, spool.holds):
            spool.take(keys)
        return spool

    return collect(spark.range(0, count, 1, count), task, recipe, count, groups, scratch)


def _keys(
    system: Any, files: list[str], column: str, task: int, tasks: int, holds: Callable[[int], bool]
) -> Iterator[Any]:
    """The keys of one task. Few keys are kept as they are, if `holds` says so of their bytes: they
    come as arrays, which can be handed on."""
    whole = len(files) >= tasks
    number = 0
    for name in files[task::tasks] if whole else files:
        source = _Source(system, name)
        for group in range(source.groups):
            if whole or number % tasks == task:
                yield from source.column(group, column, holds)
            number += 1


class _Source:
    """A file of either kind, in groups of rows."""

    def __init__(self, system: Any, name: str) -> None:
        local = isinstance(system, fs.LocalFileSystem)
        data = pa.memory_map(name) if local else system.open_input_file(name)
        self._data = data
        self._file: Any
        try:
            if name.endswith(_ARROW):
                self._file = pa.ipc.open_file(data)
                self.schema, self.groups = self._file.schema, self._file.num_record_batches
            else:
                self._file = parquet.ParquetFile(data)
                self.schema, self.groups = self._file.schema_arrow, self._file.num_row_groups
        except pa.ArrowInvalid as error:
            raise ParameterError(
                f"{name} is no {'Arrow' if name.endswith(_ARROW) else 'Parquet'} file: {error}",
                hint="a directory may hold such files only; names that begin with _ are left out",
                name="path", got=name, allowed=_FILES,
            ) from error  # fmt: skip

    def column(self, group: int, column: str, holds: Callable[[int], bool]) -> Iterator[Any]:
        """The column of a group, in pieces."""
        if not isinstance(self._file, parquet.ParquetFile):
            yield self._file.get_batch(group).column(column)
            return
        pages = self._pages(group, column, holds)
        if pages is not None:
            yield from pages
            return
        fixed = pa.types.is_integer(self.schema.field(column).type)
        rows = _NUMBERS if fixed else _TEXTS
        for batch in self._file.iter_batches(rows, [group], [column], use_threads=False):
            yield batch.column(0)

    def _pages(self, group: int, column: str, holds: Callable[[int], bool]) -> Any:
        """The pages of a flat column without nulls, plain or in a dictionary, not packed or by
        Snappy; None for another, and for few keys."""
        names = [self._file.schema.column(i).path for i in range(len(self._file.schema))]
        if column not in names:
            return None  # it has columns below it
        about = self._file.schema.column(names.index(column))
        chunk = self._file.metadata.row_group(group).column(names.index(column))
        kind = self.schema.field(column).type
        levels = about.max_definition_level
        whole = levels == 0 or (
            levels == 1 and chunk.statistics is not None and chunk.statistics.null_count == 0
        )
        plain = (
            whole
            and about.max_repetition_level == 0
            and str(kind) in _PHYSICAL.get(chunk.physical_type, ())
            and chunk.compression in _CODECS
            and set(chunk.encodings) <= _ENCODINGS
        )
        if not plain or holds(chunk.total_uncompressed_size):
            return None
        starts = (chunk.dictionary_page_offset, chunk.data_page_offset)
        self._data.seek(min(start for start in starts if start))
        return ParquetPages(
            self._data.read_buffer(chunk.total_compressed_size),
            physical=chunk.physical_type, codec=chunk.compression, values=chunk.num_values,
            optional=levels > 0, text=pa.types.is_string(kind) or pa.types.is_large_string(kind),
        )  # fmt: skip


def _require_keys(schema: pa.Schema, column: str, recipe: Recipe) -> None:
    """Refuses a column that holds no keys, before a task starts."""
    require("column", column, f"one of {', '.join(schema.names)}", column in schema.names)
    probe: Any = UrlFilter(1) if recipe.kind == "url" else BloomFilter(1, 0.5)
    probe.contains_many(pa.array([], schema.field(column).type))


def _files(system: Any, base: str) -> list[str]:
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
    require("path", base, _FILES, bool(files))
    return files
