"""Calls of every public class with plain numbers, texts and truths: what NumPy's must equal.

`CALLS` has, for each public callable, arguments by name. Parameters that take no scalar are named
in `OTHERS`, so that a parameter in neither is found by the test.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Integer, MetaData, Table, create_engine

import bloomtide
from bloomtide import (
    BloomFilter,
    CountFilter,
    CountingBloomFilter,
    Dedup,
    DynamicCountFilter,
    History,
    HotList,
    LogCounter,
    LogReader,
    Monitor,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    RecentFilter,
    ScalableBloomFilter,
    SpectralBloomFilter,
    TimeDecayingBloomFilter,
    UrlFilter,
    canonical_url,
    digest,
    distributed,
    memory_models,
    partitions,
)
from bloomtide.distributed import Recipe, ShardedFilter
from bloomtide.guard import DatabaseGuard

NOW = 1_700_000_000
GOAL: dict[str, Any] = {"capacity": 100, "error_rate": 0.125}
SIZES: dict[str, Any] = {"cells": 1024, "hashes": 4}
HASH: dict[str, Any] = {"hash": "xxh3", "seed": 7}
COUNTS: dict[str, Any] = {"policy": "plain", "layout": "blocked"}
GROWS = COUNTS | {"total": 1000}
DYNAMIC = GROWS | {"counter_bits": 3, "shrink": 0.25}
SPECTRAL = GROWS | {"slack": 0.5}
FADES: dict[str, Any] = {"half_life": 3600, "epoch": 60, "origin": 100.0, "rounding": "strict"}
FADES |= COUNTS | {"storage": "basic", "counter_bits": 16, "fraction_bits": 4, "max_jump": 86400}
DECAYS: dict[str, Any] = {"decay": 0.5, "epoch": 60.0, "capacity": 100, "error_rate": 0.125}
REQUESTS: dict[str, Any] = {
    "rebuild_seconds": 0.5,
    "requests_per_second": 1000,
    "element_bytes": 24.0,
}
REQUESTS |= {"entry_bytes": 64}


@dataclass(frozen=True)
class Call:
    """One public callable, where it comes from, and plain arguments by name."""

    owner: Any
    name: str
    arguments: dict[str, Any]
    make: Callable[[Path], Any] | None = None
    """The object that it is a method of; None for a class or a function."""

    @property
    def label(self) -> str:
        """As in an error."""
        owner = getattr(self.owner, "__name__", "bloomtide")
        return f"{owner}.{self.name}" if self.name else owner

    def run(self, folder: Path, arguments: dict[str, Any]) -> tuple[Any, Any]:
        """What is answered, and the object it was asked of."""
        if self.make is None:
            call = getattr(self.owner, self.name) if self.name else self.owner
            return _call(call, arguments), None
        made = self.make(folder)
        return _call(getattr(made, self.name), arguments), made


def _call(call: Any, arguments: dict[str, Any]) -> Any:
    """With arguments by place where they have no name."""
    given = dict(arguments)
    places: list[Any] = []
    for parameter in inspect.signature(call).parameters.values():
        if parameter.kind is parameter.POSITIONAL_ONLY and parameter.name in given:
            places.append(given.pop(parameter.name))
    return call(*places, **given)


FILTERS: tuple[tuple[Any, dict[str, Any], dict[str, Any]], ...] = (
    (BloomFilter, {"layout": "blocked"}, {"bits": 1024, "hashes": 4, "layout": "classic"}),
    (ScalableBloomFilter, {"growth": 2.0, "tightening": 0.5}, {}),
    (CountingBloomFilter, COUNTS | {"counter_bits": 8}, SIZES),
    (CountFilter, DYNAMIC | {"storage": "dynamic", "partitions": 2}, SIZES),
    (CountFilter, SPECTRAL | {"storage": "spectral", "partitions": 2}, SIZES),
    (DynamicCountFilter, DYNAMIC, SIZES),
    (PartitionedDynamicCountFilter, DYNAMIC | {"partitions": 2}, SIZES | {"partitions": 3}),
    (SpectralBloomFilter, SPECTRAL, SIZES),
    (PartitionedSpectralBloomFilter, SPECTRAL | {"partitions": 2}, SIZES | {"partitions": 3}),
    (TimeDecayingBloomFilter, FADES, DECAYS),
    (UrlFilter, {"max_layers": 3, "layer_sizes": [10, 20]}, {}),
)


def _constructions() -> Iterator[Call]:
    for cls, more, sizes in FILTERS:
        for arguments in (GOAL | more, sizes):
            if arguments:
                skew = "skew" in inspect.signature(cls.plan).parameters
                skewed = {"skew": 0.5} if skew and more.get("storage") != "spectral" else {}
                yield Call(cls, "", arguments | HASH)
                yield Call(cls, "plan", arguments | skewed)
        plan = cls.plan(**GOAL | more)
        yield Call(cls, "from_plan", {"plan": plan, **HASH})
    yield Call(TimeDecayingBloomFilter, "", FADES | SIZES | HASH)
    yield Call(TimeDecayingBloomFilter, "plan", FADES | SIZES)
    clocks = {"epoch": 6.0, "origin": 100.0, "max_jump": 86400}
    yield Call(HotList, "", {"k": 5, "half_life": 60, **clocks, **HASH})
    yield Call(RecentFilter, "", GOAL | {"within": 3600, "generations": 4, "lateness": 600})
    yield Call(Recipe, "of", {"plan": BloomFilter.plan(100, 0.01), **HASH})
    fading = TimeDecayingBloomFilter.plan(100, 0.01, half_life=60)
    yield Call(Recipe, "of", {"plan": fading, "at": NOW})
    yield Call(Recipe, "hot_list", {"k": 5, "half_life": 60, "at": NOW, **HASH})
    made = {"plan": None, "k": 5, "half_life": 60.0, "at": float(NOW), **HASH}
    yield Call(Recipe, "", made)
    keys = {"batches": [["a", "b"]], "plan": BloomFilter.plan(100, 0.01), "nulls": "skip"}
    yield Call(distributed.build_partition, "", keys | {"threads": 2})
    yield Call(ShardedFilter, "", {"plan": BloomFilter.plan(100, 0.01), "shards": 2})
    sharded = GOAL | HASH | {"kind": BloomFilter, "shards": 2}
    yield Call(ShardedFilter, "of", sharded | {"layout": "classic"})
    sharded["kind"] = TimeDecayingBloomFilter
    yield Call(ShardedFilter, "of", sharded | {"half_life": 60, "at": NOW})
    choices = {"key": "1", "url": False, "invert": True, "threads": 2}
    yield Call(Dedup, "", choices | {"format": "csv", "time": "2"})
    yield Call(LogReader, "", {"format": "json", "json_map": "ip=client"})
    chosen = {"by": "ip", "query": False, "until": NOW, "format": "json", "json_map": "ip=client"}
    yield Call(LogCounter, "", chosen)
    yield Call(digest, "", {"key": "a", "hash": "xxh3", "seed": 5})
    canon = {"sort_query": True, "trailing_slash": "drop", "drop_sessions": True}
    canon |= {"drop_tracking": True, "keep_fragment": True, "url": "http://a.example/b/?c=1&a=2#x"}
    yield Call(canonical_url, "", canon)


def _same(made: Any, _: Path) -> Any:
    return made


def _models() -> Iterator[Call]:
    skewed: dict[str, Any] = {"oversized_share": 0.5, "counter_bits": 16, "used_share": 0.25}
    models: tuple[tuple[Any, dict[str, Any]], ...] = (
        (partitions.EvenModel, {}),
        (partitions.SkewModel, skewed),
        (partitions.HotCounterModel, {"hot_counters": 100, "extra_bits": 5}),
        (partitions.LevelModel, {"counters_with": (100.0, 60.0)}),
        (partitions.PausedPartitionModel, {"hashes": 3}),
    )
    for cls, more in models:
        yield Call(cls, "", REQUESTS | more)
        one = cls(**REQUESTS | more)
        for name in ("overhead", "optimum", "choose", "break_even"):
            method = getattr(one, name, None)
            if method is not None:
                known = inspect.signature(method).parameters
                both = {"partitions": 5, "cells": 1000}
                given = {name: value for name, value in both.items() if name in known}
                yield Call(cls, name, given, partial(_same, one))
    yield Call(partitions.oversized_share, "", {"partitions": 5, "hot_counters": 3.0})
    sizes: dict[str, Any] = {"cells": 1000, "base_bits": 2000, "slack": 0.5, "partitions": 5}
    sizes |= {"counter_bits": 4, "extra_bits": 2, "oversized_share": 0.5, "entry_bytes": 64}
    sizes |= {"distinct": 100, "total": 1000, "hashes": 3, "skew": 0.5, "whole": False}
    for function in vars(memory_models).values():
        own = getattr(function, "__module__", "") == memory_models.__name__
        if inspect.isfunction(function) and own and not function.__name__.startswith("_"):
            known = inspect.signature(function).parameters
            given = {name: value for name, value in sizes.items() if name in known}
            yield Call(function, "", given)


def _clock() -> float:
    return float(NOW)


def _filled(cls: Any, *places: Any, **arguments: Any) -> Callable[[Path], Any]:
    def make(_: Path) -> Any:
        made = cls(*places, **arguments)
        url = "url" in cls.__name__.lower()
        made.add("http://a.example/b/c" if url else "key")
        return made

    return make


def _history(folder: Path) -> Any:
    made = History.open(folder / "history", clock=_clock, background=False)
    made.add_many(["key", "key", "other"], at=NOW)
    return made


def _hot_filter(_: Path) -> Any:
    decaying = TimeDecayingBloomFilter(**GOAL, half_life=60, clock=_clock)
    made = decaying.with_hot_list(5)
    made.add("key", 2)
    return made


def _monitor(folder: Path) -> Any:
    made = Monitor.open(clock=_clock, capacity=1000)
    made.add("key", 2)
    return made


def _sharded(_: Path) -> Any:
    recipe = Recipe.of(CountingBloomFilter.plan(100, 0.01))
    made = ShardedFilter(recipe, 2)
    made.add("key")
    return made


def _fading_shards(_: Path) -> Any:
    plan = TimeDecayingBloomFilter.plan(100, 0.01, half_life=60)
    return ShardedFilter(Recipe.of(plan, at=NOW), 2)


def _guard(folder: Path) -> Any:
    folder.mkdir()
    engine = create_engine(f"sqlite:///{folder}/rows.db")
    table = Table("rows", MetaData(), Column("id", Integer, primary_key=True))
    table.create(engine)
    with engine.begin() as connection:
        connection.execute(table.insert(), [{"id": number} for number in range(20)])
    made = DatabaseGuard(engine, table.c.id, rebuild="manual")
    made.build()
    return made


def _dedup(_: Path) -> Any:
    made = Dedup(key="1", format="csv")
    made.take(b"a,1\nb,2\n")
    return made


def _counter(_: Path) -> Any:
    made = LogCounter(HotList(5, clock=_clock), by="path", format="bare")
    made.feed(b"/a\n/b\n", now=NOW)
    return made


def _recent(_: Path) -> Any:
    made = RecentFilter(**GOAL, within=3600, clock=_clock)
    made.add("key")
    return made


OBJECTS: tuple[tuple[Any, Callable[[Path], Any]], ...] = (
    *((cls, _filled(cls, **GOAL)) for cls in (BloomFilter, ScalableBloomFilter, UrlFilter)),
    *(
        (cls, _filled(cls, **GOAL))
        for cls in (
            CountingBloomFilter,
            CountFilter,
            DynamicCountFilter,
            PartitionedDynamicCountFilter,
            SpectralBloomFilter,
            PartitionedSpectralBloomFilter,
        )
    ),
    (TimeDecayingBloomFilter, _filled(TimeDecayingBloomFilter, **GOAL, half_life=60, clock=_clock)),
    (HotList, _filled(HotList, 5, half_life=60, clock=_clock)),
    (bloomtide.HotFilter, _hot_filter),
    (RecentFilter, _recent),
    (History, _history),
    (Monitor, _monitor),
    (ShardedFilter, _sharded),
)

USUAL: dict[str, Any] = {
    "key": "key",
    "url": "http://a.example/b/c",
    "host": "a.example",
    "depth": 2,
    "count": 1,
    "at": NOW,
    "now": NOW,
    "per": 60,
    "n": 2,
    "k": 3,
    "confidence": 0.875,
    "nulls": "refuse",
    "seal": True,
    "threads": 2,
    "keys": ["key", "key"],
    "urls": ["http://a.example/b/c"],
    "counts": [1, 1],
    "changes": [1, 1],
    "refresh": False,
    "partitions": 1,
    "max_layers": 3,
    "start": NOW - 60,
    "end": NOW + 60,
    "step": 60,
    "rollups": False,
    "max_error": 0.5,
    "number": 1,
    "tolerance": 0.5,
}
LEFT_OUT: dict[tuple[str, str], set[str]] = {
    ("ShardedFilter", "add_many"): {"at"},
    # Another way to say the same, or a way to say something else.
    ("History", "count"): {"now", "last"},
    ("History", "count_many"): {"now", "last"},
    ("History", "contains"): {"now", "last"},
    ("History", "series"): {"now", "last"},
    ("History", "top"): {"now", "last"},
    ("History", "total"): {"now", "last"},
}
APART: dict[tuple[str, str], dict[str, Any]] = {
    ("History", "count"): {"last": 60, "now": NOW + 60},
    ("History", "count_many"): {"keys": ["key"], "last": 60, "now": NOW + 60},
    ("History", "contains"): {"last": 60, "now": NOW + 60},
    ("History", "series"): {"last": 60, "now": NOW + 60, "step": 60},
    ("History", "top"): {"n": 2, "last": 60, "now": NOW + 60},
    ("History", "total"): {"last": 60, "now": NOW + 60},
}
OTHERS = {
    "args", "kwargs", "batches", "catalogue", "clock", "column", "data", "directory", "disk",
    "engine", "events", "fill", "filter", "found", "g", "guard", "hashed", "hot", "into", "keep",
    "kind", "location", "lock", "mark", "names", "new", "normal", "notify", "other", "outbox",
    "paper", "partial", "partials", "path", "plan", "position", "progress", "query", "reason",
    "secret", "seen", "session", "sizing", "source", "state", "values", "words", "work", "absent",
    "shared", "name", "layer_sizes", "history", "settings", "structures", "totals", "ledger",
    "template",
}  # fmt: skip
"""Parameters that take no scalar, or none that a program computes."""
SKIPPED = {
    # They ask a session of a database, with a key that `may_exist` gets too.
    "get", "exists", "aget", "aexists",
    # They read or write a file, stop something, or are the records that others make.
    "load", "save", "open", "from_bytes", "close", "flush", "feed", "add_batch", "merge",
    "verify", "decayed", "log", "take", "believe", "note_ahead", "register", "as_dict",
}  # fmt: skip


def parameters_of(call: Any) -> list[str]:
    """The names of a callable's parameters."""
    known = inspect.signature(call).parameters
    return [name for name in known if name not in {"self", "cls", "type"}]


def _methods() -> Iterator[Call]:
    for cls, make in OBJECTS:
        for name in dir(cls):
            own = inspect.getattr_static(cls, name)
            if name.startswith("_") or name in SKIPPED | {"plan", "from_plan", "of"}:
                continue
            if isinstance(own, property) or not callable(getattr(cls, name)):
                continue
            at = (cls.__name__, name)
            known = set(parameters_of(getattr(cls, name))) - LEFT_OUT.get(at, set())
            given = {word: value for word, value in USUAL.items() if word in known}
            if name == "remove_many":
                given |= {"keys": ["key"], "counts": [1]}
            if cls is UrlFilter and "keys" in given:
                given["keys"] = USUAL["urls"]
            yield Call(cls, name, given, make)
            if at in APART:
                key = {"key": "key"} if "key" in known else {}
                yield Call(cls, name, key | APART[at], make)


def _openings() -> Iterator[Call]:
    times = {"window": 60, "lateness": 5, "retention": "1m for 1d", "entries": 1000}
    more = {"error_rate": 0.125, "gate_error": 0.125, "sync": "no", "names": 5}
    opened = times | more | HASH | {"mode": "w", "repair": False, "background": False}
    yield Call(History, "open", opened)
    yield Call(History, "open", {"arrivals": 100, "rows": 10, "background": False})
    yield Call(Monitor, "open", {"sync": "no", "background": False})
    keys = {"batches": [["a"]], "plan": BloomFilter.plan(100, 0.01)}
    yield Call(distributed.write_shard, "", keys | {"number": 1, "nulls": "skip"})
    settings = {"capacity": 100, "error_rate": 0.125, "seen": "url", "counts": True, "hot": 5}
    settings |= {"half_life": 60, "window": 60, "history": False}
    yield Call(Monitor, "open", settings)
    guarded = {"error_rate": 0.125, "capacity": 100, "mode": "on", "removals": "never"}
    yield Call(DatabaseGuard, "", guarded | {"refresh": 3600, "rebuild": "manual"})
    yield Call(DatabaseGuard, "", {"error_rate": 0.125, "mode": "auto", "rebuild": "auto"})
    sized = {"bits": 1024, "hashes": 4, "layout": "classic", "hash": "xxh3", "seed": 3}
    yield Call(BloomFilter, "open", sized | {"mode": "c"})
    yield Call(BloomFilter, "open", GOAL | {"mode": "c"})


def _of_guards_and_logs() -> Iterator[Call]:
    for name in ("may_exist", "note"):
        for key in (5, 50):
            found = {"found": key == 5} if name == "note" else {}
            yield Call(DatabaseGuard, name, {"key": key} | found, _guard)
    for name in ("may_exist_many", "filter_many"):
        yield Call(DatabaseGuard, name, {"keys": [5, 50]}, _guard)
    yield Call(Dedup, "keep", {"new": [True, False], "counts": [1, 2]}, _dedup)
    for name in ("settle", "finish"):
        yield Call(LogCounter, name, {"now": NOW}, _counter)
    fading = {"keys": ["a", "b"], "counts": [1, 2], "at": NOW}
    yield Call(ShardedFilter, "add_many", fading, _fading_shards)


OPENINGS = tuple(_openings())
CALLS = (*_constructions(), *_models(), *_methods(), *_of_guards_and_logs())


def public() -> Iterator[tuple[str, Any]]:
    """Every public callable that is no record and no error, with its label."""
    modules = [bloomtide, distributed]
    named = [getattr(module, name) for module in modules for name in module.__all__]
    for thing in named:
        if inspect.isclass(thing) and not issubclass(thing, Exception):
            if thing.__module__ == "bloomtide.records":
                continue
            if thing is not History:  # made by `open`
                yield thing.__name__, thing
            for name in dir(thing):
                own = inspect.getattr_static(thing, name)
                callable_ = callable(getattr(thing, name)) and not isinstance(own, property)
                if callable_ and not name.startswith("_") and name not in SKIPPED:
                    yield f"{thing.__name__}.{name}", getattr(thing, name)
        elif callable(thing) and not inspect.isclass(thing):
            yield thing.__name__, thing
