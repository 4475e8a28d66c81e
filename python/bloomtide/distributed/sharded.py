"""`ShardedFilter`: the key space cut into slices, each a filter of its own.

A key belongs to one shard, by a hash that is independent of the filter's own. So nothing is ever
merged: a task owns a slice, writes its file and is done, and no value is larger than a shard. A
question goes to one shard; its error is that shard's, as if there were no others.

Its directory is in `directory.py`. A shard is read when a key of it is first asked for.

Use one filter while it fits one machine: two hashes and a grouping by shard cost time.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bloomtide._core import Digests, ScalableBloomFilter, parse_instant
from bloomtide.columns import read_counts, split_table
from bloomtide.distributed.build import Spool
from bloomtide.distributed.directory import (
    MANIFEST,
    read_filter,
    read_manifest,
    remove_leftovers,
    saving,
    undone_on_error,
    write_filter,
    write_manifest,
)
from bloomtide.distributed.recipe import CLASSES, Recipe
from bloomtide.durable.disk import Disk
from bloomtide.errors import (
    BloomtideError,
    KeyTypeError,
    NullKeyError,
    UnsupportedError,
    refusal,
    require,
)
from bloomtide.plain import plain
from bloomtide.records import Plan

_SEED = 0x5348_4152_4453  # "SHARDS": another hash than any filter's own
_MOST = 1 << 20
_COUNTING = "shards of CountingBloomFilter do"


class ShardedFilter:
    """Filters of one recipe, each for its slice of all keys."""

    def __init__(self, plan: Plan | Recipe, shards: int) -> None:
        """Empty shards. The plan is that of one shard; `of` makes it from the whole."""
        self.recipe = _usable(Recipe.of(plan))
        self.shards = _count_of_shards(shards)
        self._directory: Path | None = None
        self._about: list[dict[str, Any]] = []
        self._filters: dict[int, Any] = {}

    @classmethod
    def of(
        cls,
        kind: Any,
        capacity: int,
        error_rate: float,
        *,
        shards: int,
        hash: str = "xxh3",
        seed: int = 0,
        secret: bytes | None = None,
        at: Any = None,
        **sizing: Any,
    ) -> Self:
        """For `capacity` keys in all: `ShardedFilter.of(BloomFilter, 10**10, 0.01, shards=64)`.

        Shards do not get equally many keys. Each has room for four standard deviations more than
        the mean, so that the fullest keeps the error rate.
        """
        shards = _count_of_shards(shards)
        plan = _shardable(kind).plan(shard_capacity(plain(capacity), shards), error_rate, **sizing)
        return cls(Recipe.of(plan, hash=hash, seed=seed, secret=secret, at=at), shards)

    # --- keys ---------------------------------------------------------------------------------

    def shard_of(self, key: Any) -> int:
        """The shard of a key."""
        return int(self.shards_of([key])[0])

    def shards_of(self, keys: Any) -> npt.NDArray[np.uint32]:
        """The shard of every key."""
        return shards_of(keys, self.recipe, self.shards)

    def add(self, key: Any) -> bool | None:
        """Adds a key to its shard."""
        added: bool | None = self.shard(self.shard_of(key)).add(key)
        return added

    def add_many(self, keys: Any, counts: Any = None, *, at: Any = None) -> None:
        """Adds every key to its shard, with its count and its instant where there are such.

        What is wrong is found before the first key goes in, but for a key that is none: the keys
        before it are in, as in every batch.
        """
        if counts is None:
            keys, counts = _split(keys)
        keys = keys if hasattr(keys, "__len__") else list(keys)
        rows = len(keys)
        words: dict[str, Any] = {}
        if counts is not None:
            if not hasattr(CLASSES[self.recipe.kind], "count"):
                raise refusal("counts", counts, "left out: these shards do not count", _COUNTING)
            words["counts"] = _fitting("counts", read_counts(counts), rows)
        if self.recipe.fades:
            at = parse_instant(self.recipe.at if at is None else at)
            words["at"] = at if isinstance(at, float) else _fitting("at", at, rows)
        elif at is not None:
            hint = "leave it out: these shards keep no time"
            raise refusal("at", at, "left out", hint)
        try:
            belongs = self.shards_of(keys)
        except (NullKeyError, KeyTypeError) as error:
            self._add(keys[: error.added], words, self.shards_of(keys[: error.added]))
            raise
        self._add(keys, words, belongs)

    def _add(self, keys: Any, words: dict[str, Any], belongs: npt.NDArray[np.uint32]) -> None:
        done = 0
        for number, rows in groups(belongs):
            some = {
                name: take(column, rows) if isinstance(column, np.ndarray) else column
                for name, column in words.items()
            }
            try:
                self.shard(number).add_many(take(keys, rows), **some)
            except BloomtideError as error:
                error.add_note(f"{done} keys of the batch went into other shards before this")
                raise
            done += len(rows)

    def __contains__(self, key: Any) -> bool:
        return key in self.shard(self.shard_of(key))

    def contains_many(self, keys: Any) -> npt.NDArray[np.bool_]:
        """Whether each key is there, or seems to be."""
        answer: npt.NDArray[np.bool_] = self._ask(keys, "contains_many", np.bool_)
        return answer

    def count(self, key: Any) -> float:
        """How often the key came, at least."""
        counted: float = self.shard(self.shard_of(key)).count(key, **self._when("count"))
        return counted

    def count_many(self, keys: Any) -> npt.NDArray[Any]:
        """How often each key came, at least."""
        answer: npt.NDArray[Any] = self._ask(keys, "count_many", None)
        return answer

    # --- shards -------------------------------------------------------------------------------

    def shard(self, number: int) -> Any:
        """One of the filters, from its file if it has one."""
        number = plain(number)
        most = self.shards - 1
        hint = "`shard_of(key)` tells the shard of a key"
        known = type(number) is int and 0 <= number <= most
        require("shard", number, f"from 0 to {most}", known, hint=hint)
        if number not in self._filters:
            self._filters[number] = self._load(number)
        return self._filters[number]

    @property
    def bytes(self) -> int:
        """Memory of all shards, loaded or not."""
        return self.recipe.size * self.shards

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes every shard, then the manifest.

        A save that fails or is killed leaves the filter that was there. One that fails removes its
        files; what one that was killed left is removed before anything is written.
        """
        path = Path(directory)
        with saving(path):
            remove_leftovers(path, self._about if self._is_own(path) else ())
            reports: list[dict[str, Any]] = []
            with undone_on_error(path, reports):
                for number in range(self.shards):
                    reports.append(self._write(path, number))
                write_manifest(path, self.recipe, reports)
        if self._is_own(path):
            self._about = reports

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Self:
        """Opens a directory; the shards are read when they are needed."""
        path = Path(directory)
        about = read_manifest(path / MANIFEST)
        made = cls(Recipe.from_json(json.dumps(about["recipe"]).encode()), len(about["shards"]))
        made._directory, made._about = path, about["shards"]
        return made

    def validate(self) -> None:
        """Reads every shard and checks it."""
        for number in range(self.shards):
            self.shard(number).validate()

    def _load(self, number: int) -> Any:
        if self._directory is None:
            return self.recipe.make()
        return read_filter(self._directory, self._about[number])

    def _is_own(self, path: Path) -> bool:
        """Whether the shards that are not loaded yet are there."""
        return self._directory is not None and path.resolve() == self._directory.resolve()

    def _write(self, path: Path, number: int) -> dict[str, Any]:
        """The report of a shard that is written, or was and has not been looked at since."""
        if number not in self._filters and self._is_own(path):
            return self._about[number]
        return write_filter(path, number, self.shard(number))

    def _when(self, verb: str) -> dict[str, Any]:
        if not hasattr(CLASSES[self.recipe.kind], verb):
            raise UnsupportedError(
                f"a filter of kind `{self.recipe.kind}` does not count",
                hint=_COUNTING, verb=verb, policy=self.recipe.kind,
            )  # fmt: skip
        return {"at": self.recipe.at} if self.recipe.fades else {}

    def _ask(self, keys: Any, verb: str, dtype: Any) -> npt.NDArray[Any]:
        words = self._when(verb)
        if dtype is None:
            dtype = getattr(self.shard(0), verb)([], **words).dtype
        belongs = self.shards_of(keys)
        answer: npt.NDArray[Any] = np.zeros(len(belongs), dtype)
        for number, rows in groups(belongs):
            answer[rows] = getattr(self.shard(number), verb)(take(keys, rows), **words)
        return answer


def _split(keys: Any) -> tuple[Any, Any]:
    """Keys, and their counts if they are a mapping or a table of two columns."""
    if isinstance(keys, Mapping):
        return list(keys), list(keys.values())
    return split_table(keys) or (keys, None)


def _fitting(name: str, column: npt.NDArray[Any], rows: int) -> npt.NDArray[Any]:
    got = f"{len(column)} for {rows} keys"
    require(name, got, "as many as keys", len(column) == rows, hint="give one for each key")
    return column


def shard_capacity(capacity: int, shards: int) -> int:
    """Keys that the fullest of so many shards must have room for: mean and four deviations."""
    whole = type(capacity) is int and capacity >= 1
    hint = "write it as 1_000_000 or int(1e6)"
    require("capacity", capacity, "a whole number, at least 1", whole, hint=hint)
    mean = capacity / shards
    return math.ceil(mean + (4 * math.sqrt(mean) if shards > 1 else 0))


def shards_of(keys: Any, recipe: Recipe, shards: int) -> npt.NDArray[np.uint32]:
    """The shard of every key; who knows no secret cannot fill one shard on purpose."""
    if recipe.secret is not None:
        secret = blake2b(recipe.secret, digest_size=16, person=b"bloomtide-shards").digest()
        return Digests(keys, hash="keyed", secret=secret).shards(shards)
    return Digests(keys, seed=(recipe.seed ^ _SEED) & (2**64 - 1)).shards(shards)


def groups(belongs: npt.NDArray[np.uint32]) -> Iterator[tuple[int, npt.NDArray[np.intp]]]:
    """The rows of each shard that has any, in their order."""
    order = np.argsort(belongs, kind="stable")
    numbers, starts = np.unique(belongs[order], return_index=True)
    yield from zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)


def take(column: Any, rows: npt.NDArray[np.intp]) -> Any:
    """Some rows of an array, an Arrow column or a list."""
    if isinstance(column, np.ndarray):
        return column[rows]
    if hasattr(column, "take"):
        return column.take(rows)
    return [column[row] for row in rows.tolist()]


def write_shard(
    directory: str | os.PathLike[str],
    number: int,
    batches: Iterable[Any],
    plan: Plan | Recipe,
    *,
    nulls: str = "refuse",
) -> dict[str, Any]:
    """Builds one shard from the keys that belong to it and writes its file, whole or not at all.

    Batches are as for `build_partition`. What it returns is for the manifest, `directory.py`.
    """
    number = plain(number)
    known = type(number) is int and 0 <= number < _MOST
    require("number", number, f"a whole number from 0 to {_MOST - 1:,}", known)
    spool = Spool(_usable(Recipe.of(plan)), nulls, 1)
    for batch in batches:
        spool.take(batch)
    path = Path(directory)
    Disk().make_directory(path)
    return write_filter(path, number, spool.filter())


_UNCUT = {
    "url": "two spellings of one URL, and the prefixes of it, lie in several shards: use a Bloom "
    "filter of canonical URLs",
    "hot": "merge hot lists: they are small",
    "scalable": "size it for all keys: BloomFilter",
}
"""Kinds that have no shards, and what to do instead."""


def _shardable(kind: Any) -> Any:
    """The class of a filter that has shards."""
    classes = [cls for name, cls in CLASSES.items() if name not in _UNCUT]
    if kind in classes:
        return kind
    known = CLASSES | {"scalable": ScalableBloomFilter}
    name = next((name for name, cls in known.items() if kind is cls), "")
    hint = _UNCUT.get(name, ", ".join(cls.__name__ for cls in classes))
    raise refusal(
        "kind", getattr(kind, "__name__", kind), "a class of filters that has shards", hint
    )


def _count_of_shards(shards: Any) -> int:
    shards = plain(shards)
    whole = type(shards) is int and 1 <= shards <= _MOST
    hint = "as many as there are tasks or machines"
    require("shards", shards, f"a whole number from 1 to {_MOST:,}", whole, hint=hint)
    return int(shards)


def _usable(recipe: Recipe) -> Recipe:
    if recipe.kind in _UNCUT:
        raise UnsupportedError(
            f"a structure of kind `{recipe.kind}` cannot be cut by the hash of a key",
            hint=_UNCUT[recipe.kind], verb="shards", policy=recipe.kind,
        )  # fmt: skip
    return recipe
