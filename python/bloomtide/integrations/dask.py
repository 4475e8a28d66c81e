"""Dask: a filter of a bag or of a DataFrame's column, built in its partitions.

    seen = build(bag, BloomFilter.plan(100_000_000, 0.01))
    seen = build(frame["url"], plan)
    frame[contains(frame["url"], seen)]

Partials are merged in a tree by the scheduler; the last one becomes the filter here.
"""

from __future__ import annotations

from typing import Any

from bloomtide import extras
from bloomtide.distributed import Recipe, build_partition, finish
from bloomtide.distributed import merge as merge_partials
from bloomtide.distributed.partial import require_size
from bloomtide.errors import require
from bloomtide.records import Plan

with extras.require("dask", "`bloomtide.integrations.dask`"):
    from dask import delayed


def build(keys: Any, plan: Plan | Recipe, *, nulls: str = "refuse", fan_in: int = 8) -> Any:
    """The filter of a bag of keys, or of a series, as one machine would have built it."""
    recipe = Recipe.of(plan)
    require_size(recipe)
    require("fan_in", fan_in, "at least 2", fan_in >= 2)
    require(
        "keys", type(keys).__name__, "a Dask bag or series", hasattr(keys, "to_delayed"),
        hint='give a column of a DataFrame: frame["url"]',
    )  # fmt: skip
    part = delayed(_build_part, pure=True)
    join = delayed(merge_partials, pure=True)
    level = [part(keys_of_part, recipe, nulls) for keys_of_part in keys.to_delayed()]
    while len(level) > 1:
        level = [join(level[i : i + fan_in]) for i in range(0, len(level), fan_in)]
    return finish(level[0].compute() if level else build_partition([], recipe))


def contains(keys: Any, filter: Any) -> Any:
    """Whether each key of a series is in the filter, or seems to be; False for a missing one.

    The filter goes to each worker once for each call.
    """
    shared = delayed(filter)
    return keys.map_partitions(_contains, shared, meta=(keys.name, "bool"))


def _build_part(keys: Any, recipe: Recipe, nulls: str) -> bytes:
    return build_partition([_batch(keys)], recipe, nulls=nulls)


def _contains(keys: Any, filter: Any) -> Any:
    answers = filter.contains_many(_batch(keys), nulls="skip")
    return type(keys)(answers, index=keys.index, name=keys.name)


def _batch(keys: Any) -> Any:
    """A partition as keys: a pandas series by its Arrow form, an iterator of a bag as a list."""
    if hasattr(keys, "index") and hasattr(keys, "to_numpy"):
        import pyarrow

        return pyarrow.Array.from_pandas(keys)
    return list(keys)
