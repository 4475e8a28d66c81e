"""Ray: a filter of a column of a dataset, built in its blocks.

    seen = build(dataset, "url", BloomFilter.plan(100_000_000, 0.01))
    dataset.map_batches(Contains, fn_constructor_args=("url", seen), batch_format="pyarrow")

Each block becomes a partial; partials are merged in groups by tasks, and the last ones here.
"""

from __future__ import annotations

from typing import Any

from bloomtide import extras
from bloomtide.distributed import Recipe, build_partition, finish
from bloomtide.distributed import merge as merge_partials
from bloomtide.distributed.partial import require_size
from bloomtide.errors import require
from bloomtide.records import Plan

with extras.require("ray", "`bloomtide.integrations.ray`"):
    import ray as _ray


def build(
    dataset: Any, column: str, plan: Plan | Recipe, *, nulls: str = "refuse", fan_in: int = 8
) -> Any:
    """The filter of a column of a `ray.data.Dataset`, as one machine would have built it."""
    recipe = Recipe.of(plan)
    require_size(recipe)
    require("fan_in", fan_in, "at least 2", fan_in >= 2)
    part = _ray.remote(_build_part)
    join = _ray.remote(_merge_parts)
    level = [
        part.remote(block, column, recipe, nulls)
        for bundle in dataset.select_columns([column]).iter_internal_ref_bundles()
        for block in bundle.block_refs
    ]
    while len(level) > 1:
        level = [join.remote(*level[i : i + fan_in]) for i in range(0, len(level), fan_in)]
    return finish(_ray.get(level[0]) if level else build_partition([], recipe))


class Contains:
    """For `map_batches`: adds a column that says whether the filter has the key, or seems to."""

    def __init__(self, column: str, filter: Any, name: str = "seen") -> None:
        """Made once in each worker."""
        self._column, self._filter, self._name = column, filter, name

    def __call__(self, batch: Any) -> Any:
        import pyarrow

        keys = batch.column(self._column).combine_chunks()
        answers = self._filter.contains_many(keys, nulls="skip")
        return batch.append_column(self._name, pyarrow.array(answers))


def _build_part(block: Any, column: str, recipe: Recipe, nulls: str) -> bytes:
    import pyarrow

    table = block if isinstance(block, pyarrow.Table) else pyarrow.Table.from_pandas(block)
    return build_partition([table.column(column)], recipe, nulls=nulls)


def _merge_parts(*partials: bytes) -> bytes:
    return merge_partials(partials)
