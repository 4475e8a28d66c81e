"""Keys to a partial, partials to one, one to a filter.

    build_partition   on each machine, where the data is
    merge             in a tree, in any order and any grouping
    finish            the filter itself

1. `finish(merge(parts))` is the filter of all keys, byte for byte, for every structure whose merge
   is exact (plain counters, bits, fading counts at one instant).
2. A partial stays a list of keys until these take an eighth of the filter's memory, so merging
   thousands of small partials never makes thousands of filters.
3. Nothing is kept between calls: a task that is killed and runs again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from bloomtide._core import BloomFilter, ParquetPage, UrlFilter, from_bytes, parse_instant
from bloomtide.distributed.partial import (
    Partial,
    arrow_module,
    is_partial,
    pack_filter,
    pack_keys,
    require_size,
    unpack,
)
from bloomtide.distributed.recipe import Recipe
from bloomtide.errors import IncompatibleError, ParameterError, require
from bloomtide.records import Plan

_SHARE = 8
"""Keys are shipped as they are while they take at most this part of the filter's memory."""


def build_partition(
    batches: Iterable[Any], plan: Plan | Recipe, *, nulls: str = "refuse", threads: int = 1
) -> bytes:
    """The partial of one partition.

    A batch is an Arrow record batch or table with a column `key`, and, where the structure takes
    them, `count` and `at`; or keys alone, as `add_many` takes them.
    """
    return fill(batches, Recipe.of(plan), nulls, threads).pack()


def fill(batches: Iterable[Any], recipe: Recipe, nulls: str, threads: int = 1) -> Spool:
    """All keys of a partition, not packed yet."""
    require_size(recipe)
    spool = Spool(recipe, nulls, threads)
    for batch in batches:
        spool.take(batch)
    return spool


def merge(partials: Iterable[bytes]) -> bytes:
    """One partial of many. All must be of one recipe."""
    return _join(partials).pack()


def finish(partial: bytes) -> Any:
    """The filter of a partial."""
    return combine([partial])


def combine(values: Iterable[bytes]) -> Any:
    """The filter of partials, or of finished filters (`to_bytes`), whichever these are."""
    found = iter(values)
    first = next(found, b"")
    if not first or is_partial(first):
        return _join(chain([first] if first else [], found)).filter()
    made: Any = from_bytes(first)
    for value in found:
        made.merge(from_bytes(value))
    return made


def _join(partials: Iterable[bytes]) -> Spool:
    spool: Spool | None = None
    for data in partials:
        part = unpack(data)
        if spool is None:
            spool = Spool(part.recipe, "refuse", 1)
        elif part.recipe.fingerprint != spool.recipe.fingerprint:
            _refuse_mixed(spool.recipe, part.recipe)
        spool.join(part)
    if spool is None:
        raise ParameterError(
            "`partials` must be at least one, got: none",
            hint="an empty partition has a partial too: build_partition([], plan)",
            name="partials", got=0, allowed="at least one",
        )  # fmt: skip
    return spool


class Spool:
    """Collects keys, and turns them into a filter when they become many."""

    def __init__(self, recipe: Recipe, nulls: str, threads: int) -> None:
        """Empty."""
        self.recipe = recipe
        self.rows = 0
        require("nulls", nulls, '"refuse" or "skip"', nulls in {"refuse", "skip"})
        self._skips = nulls == "skip"
        self._words: dict[str, Any] = {"nulls": nulls}
        if recipe.kind != "hot":
            self._words["threads"] = threads
        self._probe: Any = UrlFilter(1) if recipe.kind == "url" else BloomFilter(1, 0.5)
        self._budget = recipe.size // _SHARE
        self._held: list[Any] = []
        self._bytes = 0
        self._made: Any = None

    @property
    def nbytes(self) -> int:
        """Memory that it takes, about: the keys held, or the cells."""
        return self._bytes if self._made is None else self.recipe.size

    def take(self, batch: Any) -> None:
        """A batch of rows."""
        batch = self._as_rows(batch)
        if self._made is None and hasattr(batch, "schema") and self._fits(batch):
            # A bad key is refused here, not when the partial is read on another machine.
            self._probe.contains_many(batch.column("key"))
            self._held.append(batch)
            self._bytes += batch.nbytes
            self.rows += batch.num_rows
        else:
            self.rows += self._add(self.filter(), batch)

    def join(self, part: Partial) -> None:
        """A partial of the same recipe."""
        if part.has_keys:
            for batch in part.tables():
                if batch.num_rows:
                    self.take(batch)
            return
        self.absorb(part.filter())
        self.rows += part.rows

    def absorb(self, made: Any) -> None:
        """A filter of the same recipe, which is not to be used any more."""
        if self._made is None and not self._held:
            self._made = made
        else:
            self.filter().merge(made)

    def holds(self, nbytes: int) -> bool:
        """Whether so many bytes of keys more would be held as they are."""
        return self._made is None and self._bytes + nbytes <= self._budget

    @property
    def has_filter(self) -> bool:
        """Whether the keys have become a filter."""
        return self._made is not None

    def filter(self) -> Any:
        """The filter, with everything that was held."""
        if self._made is None:
            self._made = self.recipe.make()
            held, self._held, self._bytes = self._held, [], 0
            for batch in held:
                self._add(self._made, batch)
        return self._made

    def pack(self) -> bytes:
        """The partial of everything."""
        if self._made is None and (self._held or self._budget):
            return pack_keys(self.recipe, self._held, self.rows)
        return pack_filter(self.recipe, self.filter(), self.rows)

    def _fits(self, batch: Any) -> bool:
        """Whether it can be held: keys alone, few enough, and of the type of those before."""
        alone = batch.schema.names == ["key"] and not self.recipe.fades
        same = not self._held or batch.schema.equals(self._held[0].schema)
        return alone and same and self.holds(batch.nbytes)

    def _as_rows(self, batch: Any) -> Any:
        """A record batch with the columns that the structure takes, or what was given if it has no
        Arrow form."""
        if isinstance(batch, ParquetPage):
            return batch
        arrow = arrow_module()
        if isinstance(batch, arrow.Table):
            batch = batch.combine_chunks()
            chunks = batch.to_batches()
            batch = chunks[0] if chunks else arrow.RecordBatch.from_pylist([], batch.schema)
        if not isinstance(batch, arrow.RecordBatch):
            if isinstance(batch, arrow.ChunkedArray):
                batch = batch.combine_chunks()
            try:
                keys = batch if isinstance(batch, arrow.Array) else arrow.array(batch)
            except (arrow.ArrowException, TypeError, OverflowError, ValueError):
                return batch  # keys of several types have no column; the filter takes them
            batch = arrow.RecordBatch.from_arrays([keys], names=["key"])
        require(
            "batches", batch.schema.names, "batches with a column `key`",
            "key" in batch.schema.names, hint="rename the column of the keys",
        )  # fmt: skip
        self._refuse_columns(set(batch.schema.names) - {"key"})
        keys = batch.column("key")
        return batch.filter(keys.is_valid()) if self._skips and keys.null_count else batch

    def _refuse_columns(self, more: set[str]) -> None:
        takes = ({"count"} if self.recipe.counts else set()) | (
            {"at"} if self.recipe.fades else set()
        )
        for name in sorted(more - takes):
            raise ParameterError(
                f"a structure of kind `{self.recipe.kind}` takes no column `{name}`",
                hint="leave the column out", name=name, got=name,
                allowed=", ".join(["key", *sorted(takes)]),
            )  # fmt: skip

    def _add(self, made: Any, batch: Any) -> int:
        """Adds the rows; how many had a key."""
        words = dict(self._words)
        if not hasattr(batch, "schema"):
            if self.recipe.fades:
                words["at"] = self.recipe.at
            made.add_many(batch, **words)
            return len(batch)
        keys = batch.column("key")
        names = batch.schema.names
        if "count" in names:
            words["counts"] = batch.column("count")
        if self.recipe.fades:
            words["at"] = self._moments(batch) if "at" in names else self.recipe.at
        made.add_many(keys, **words)
        return int(len(keys) - keys.null_count)

    def _moments(self, batch: Any) -> Any:
        """The instants of the rows; none may move the structure's time on, which is the same in
        all tasks."""
        moments = parse_instant(batch.column("at"), "at")
        last, end = float(moments.max(initial=0)), self.recipe.at or 0
        require(
            "at", last, f"not after the instant that the counts are for, {end}",
            last <= end, hint="give the recipe the end of the data as `at`",
        )  # fmt: skip
        return moments


def _refuse_mixed(one: Recipe, other: Recipe) -> None:
    """Names what differs, by the words of the structures where they have them."""
    if one.kind != other.kind:
        field, expected, got = "kind", one.kind, other.kind
    else:
        left, right = _flat(one), _flat(other)
        field = next(name for name in left if left[name] != right[name])
        expected, got = left[field], right[field]
        if field == "secret":
            expected, got = "one secret", "another"
    raise IncompatibleError(
        f"the partials were built with another `{field}`: {expected} and {got}",
        hint="give every task the same plan",
        field=field, expected=expected, got=got,
    )  # fmt: skip


def _flat(recipe: Recipe) -> dict[str, Any]:
    sizes = {} if recipe.plan is None else recipe.plan.as_dict()
    names = ("k", "half_life", "hash", "seed", "secret", "at")
    return sizes | {name: getattr(recipe, name) for name in names}
