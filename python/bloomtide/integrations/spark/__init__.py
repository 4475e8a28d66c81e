"""Apache Spark: filters built where the data is, asked inside queries, fed by streams.

    building    build, build_grouped, build_sharded, merge
    files       build_files
    asking      contains, count, anti_join, semi_filter
    streaming   history_sink, dedup, hot_table

Workers must have the same bloomtide and pyarrow as the driver. Keys travel as Arrow batches from
the JVM into the compiled core; no row becomes a Python object.

    seen = build(df, "url", BloomFilter.plan(100_000_000, 0.01))
    df.where(contains("url", seen))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bloomtide import extras
from bloomtide.distributed import Recipe

with extras.require("spark", "`bloomtide.integrations.spark`"):
    from bloomtide.integrations.spark.asking import anti_join, contains, count, semi_filter
    from bloomtide.integrations.spark.building import build, build_grouped, build_sharded, merge
    from bloomtide.integrations.spark.files import build_files

if TYPE_CHECKING:
    from bloomtide.integrations.spark.streaming import dedup, history_sink, hot_table

__all__ = [
    "Recipe",
    "anti_join",
    "build",
    "build_files",
    "build_grouped",
    "build_sharded",
    "contains",
    "count",
    "dedup",
    "history_sink",
    "hot_table",
    "merge",
    "semi_filter",
]


def __getattr__(name: str) -> Any:
    """Streams, when they are first asked for: a store with its database takes half a second to
    import, which no worker of a build should spend."""
    if name in {"dedup", "history_sink", "hot_table"}:
        from bloomtide.integrations.spark import streaming

        return getattr(streaming, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
