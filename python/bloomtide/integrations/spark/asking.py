"""Asking: columns that say whether a filter knows a key, and how often it came.

The filter goes to each machine once, by a broadcast or as a path that every machine can read, and
each worker process makes it once, whatever the number of queries and tasks. Answers about keys that
are there are certain; others err as often as the filter says, and a null has a null as its answer.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from bloomtide import BloomFilter, from_bytes, load
from bloomtide.distributed import Recipe, ShardedFilter
from bloomtide.errors import KindError, UnsupportedError, require
from bloomtide.integrations.spark.building import build
from bloomtide.records import Plan

_KEPT = 4
"""Filters that a worker process keeps, the ones asked last."""
_made: OrderedDict[str, Any] = OrderedDict()


class Shipped:
    """A filter as the workers get it: a broadcast, or the path of a file or of shards."""

    def __init__(self, filter: Any) -> None:
        """Sends it, unless it is a path."""
        self.name: str
        self._broadcast: Any = None
        if isinstance(filter, (str, Path)):
            self.name = str(filter)
            self.sample = self._open()
        else:
            require(
                "filter", type(filter).__name__, "a filter, or the path of one",
                hasattr(filter, "contains_many"),
                hint="a hot list is no filter: its `top()` can be joined",
            )  # fmt: skip
            if isinstance(filter, ShardedFilter):
                raise UnsupportedError(
                    "shards are not sent to the workers: they may not fit there",
                    hint="save() them where every machine can read, and give the path",
                    verb="contains", policy="sharded",
                )  # fmt: skip
            data = filter.to_bytes()
            self.name = blake2b(data, digest_size=16).hexdigest()
            self._broadcast = _context().broadcast(data)
            self.sample = filter

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "_broadcast": self._broadcast}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def get(self) -> Any:
        """The filter, in a worker."""
        if self.name not in _made:
            made = self._open() if self._broadcast is None else from_bytes(self._broadcast.value)
            _made[self.name] = made
            while len(_made) > _KEPT:
                _made.popitem(last=False)
        _made.move_to_end(self.name)
        return _made[self.name]

    def _open(self) -> Any:
        path = Path(self.name)
        if path.is_dir():
            return ShardedFilter.load(path)
        try:
            return BloomFilter.open(path)  # mapped: the workers of a machine share its pages
        except KindError:
            return load(path)


def contains(column: str | Column, filter: Any) -> Column:
    """Whether each key is in the filter, or seems to be; null for a null."""
    shipped = Shipped(filter)

    def bloomtide_contains(keys: pa.Array) -> pa.Array:
        return _answer(shipped.get(), "contains_many", keys)

    asked: Column = sql.arrow_udf(bloomtide_contains, "boolean")(column)
    return asked


def count(column: str | Column, filter: Any) -> Column:
    """How often each key came, at least; null for a null. Fading counts are those at the filter's
    own time, so that every run answers alike."""
    shipped = Shipped(filter)
    if not hasattr(shipped.sample, "count_many"):
        raise UnsupportedError(
            f"a {type(shipped.sample).__name__} does not count",
            hint="ask `contains`, or build a CountingBloomFilter",
            verb="count", policy=type(shipped.sample).__name__,
        )  # fmt: skip

    def bloomtide_count(keys: pa.Array) -> pa.Array:
        return _answer(shipped.get(), "count_many", keys)

    kind = "double" if hasattr(shipped.sample, "half_life") else "long"
    asked: Column = sql.arrow_udf(bloomtide_count, kind)(column)
    return asked


def anti_join(
    df: DataFrame, column: str, filter: Any, *, exact: DataFrame | None = None
) -> DataFrame:
    """The rows whose key was not seen before.

    Without `exact` some new rows are lost too, as many as the filter's error rate. With it, a
    DataFrame that has the seen keys in a column of the same name, rows that seem to be seen are
    looked up there: the answer is exact, and only those rows are shuffled.
    """
    seen = sql.coalesce(contains(column, filter), sql.lit(False))
    marked = df.withColumn("__seen", seen)
    new = marked.where(~sql.col("__seen")).drop("__seen")
    if exact is None:
        return new
    maybe = marked.where("__seen").drop("__seen")
    keys = exact.select(column).distinct()
    return new.unionByName(maybe.join(keys, column, "left_anti"))


def semi_filter(
    df: DataFrame,
    column: str,
    other: DataFrame,
    plan: Plan | Recipe,
    *,
    other_column: str | None = None,
    tasks: int | None = None,
) -> DataFrame:
    """The rows that may find a partner in `other`: filter first, then join.

    The join's result is the same; rows without a partner are dropped before the shuffle, but for
    the filter's errors.
    """
    found = build(other, other_column or column, plan, nulls="skip", tasks=tasks)
    return df.where(contains(column, found))


def _answer(filter: Any, verb: str, keys: pa.Array) -> pa.Array:
    if isinstance(keys, pa.ChunkedArray):
        keys = keys.combine_chunks()
    valid = keys.drop_null() if keys.null_count else keys
    words = {"at": filter.time} if getattr(filter, "half_life", None) is not None else {}
    answers = getattr(filter, verb)(valid, **words)
    values = pa.array(answers, pa.int64()) if answers.dtype.kind == "u" else pa.array(answers)
    if not keys.null_count:
        return values
    there = keys.is_valid().to_numpy(zero_copy_only=False)
    places = np.cumsum(there) - 1  # of the answer of each key that is there
    return values.take(pa.array(places, mask=~there))


def _context() -> Any:
    session = SparkSession.getActiveSession()
    require(
        "session", session, "an active SparkSession", session is not None,
        hint="call it where the DataFrame is made",
    )  # fmt: skip
    try:
        return session.sparkContext
    except AttributeError as error:
        raise UnsupportedError(
            "Spark Connect has no broadcasts",
            hint="save the filter where every machine can read, and give the path",
            verb="contains", policy="connect",
        ) from error  # fmt: skip
