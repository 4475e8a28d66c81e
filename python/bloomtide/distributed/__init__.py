"""One filter from many machines: build a part where the data is, merge the parts, or own a shard.

    recipe     what every task builds: a `Plan`, the hash, the instant it is for
    partial    what a task hands on: a few keys or a whole filter, packed and checked
    build      keys to a partial, partials to one, one to a filter
    sharded    the key space in slices: no merge, and no limit of one value

No engine is known here: Spark, Dask and Ray call these few functions (`bloomtide.integrations`),
and so can anything else that maps and reduces. The result is the filter that one machine would
have built, byte for byte (`docs/integrations/spark.md` says for which structures, and what a hot
list promises instead).
"""

from __future__ import annotations

from bloomtide.distributed.build import build_partition, combine, finish, merge
from bloomtide.distributed.recipe import Recipe
from bloomtide.distributed.sharded import ShardedFilter, write_shard

__all__ = [
    "Recipe",
    "ShardedFilter",
    "build_partition",
    "combine",
    "finish",
    "merge",
    "write_shard",
]
