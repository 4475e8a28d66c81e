"""The one list of structures that every law runs on; a new structure joins by one line.

What a structure can do is read from its class and its parameters (`traits`), never declared: a
class without `merge` is spared the laws of merging, and one that gains it gets them all.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bloomtide import (
    BloomFilter,
    CountingBloomFilter,
    DynamicCountFilter,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    ScalableBloomFilter,
    SpectralBloomFilter,
    TimeDecayingBloomFilter,
    UrlFilter,
)
from bloomtide._core import CountFilter
from tests.conformance import streams

CAPACITY = 10_000
SECRET = bytes(range(16))
HASHING = ("hash", "seed", "secret")
"""Parameters that say how keys are hashed; a plan holds all the others."""


@dataclass(frozen=True)
class Structure:
    """A class with one choice of its parameters."""

    name: str
    cls: Any
    parameters: dict[str, Any]
    mapped: bool = False
    """Made by `open` on a fresh file instead of the constructor."""

    @property
    def traits(self) -> frozenset[str]:
        """Verbs that exist, words among the parameters, "mapped", "decays", "urls" and "goal"."""
        verbs = {verb for verb in dir(self.cls) if callable(getattr(self.cls, verb))}
        verbs -= set() if self.takes("partitions") else {"repartition"}
        given = self.parameters | self.parameters.get("paper", {})
        words = {value for value in given.values() if isinstance(value, str)}
        more = {"mapped"} if self.mapped else set()
        more |= {"decays"} if hasattr(self.cls, "decay") else set()
        more |= {"urls"} if self.takes_urls else set()
        more |= {"goal"} if "capacity" in self.parameters and not self.takes("growth") else set()
        return frozenset(verbs | words | more)

    def takes(self, parameter: str) -> bool:
        """Whether the constructor has that parameter."""
        return parameter in inspect.signature(self.cls).parameters

    @property
    def takes_urls(self) -> bool:
        """Whether its keys are URLs, and nothing else."""
        return hasattr(self.cls, "seen_host")

    @property
    def sizing(self) -> dict[str, Any]:
        """The parameters that a plan is made from."""
        return {name: v for name, v in self.parameters.items() if name not in HASHING}

    @property
    def shown(self) -> dict[str, Any]:
        """The parameters as a filter shows them: chosen partitions as their number."""
        chosen = self.parameters.get("partitions") == "auto"
        plan = self.cls.plan(**self.sizing)
        paper: dict[str, Any] = self.parameters.get("paper", {})
        given = {name: v for name, v in self.parameters.items() if name != "paper"} | paper
        return given | ({"partitions": plan.partitions} if chosen else {})

    @property
    def hashing(self) -> dict[str, Any]:
        """The parameters that a plan does not hold."""
        return {name: v for name, v in self.parameters.items() if name in HASHING}


@dataclass
class Subject:
    """A structure under test: makes fresh filters and fresh paths, and closes what it opened."""

    structure: Structure
    folder: Path
    made: int = 0
    opened: list[Any] = field(default_factory=list)

    def new(self, **changes: Any) -> Any:
        """An empty filter; `changes` replace or add parameters."""
        parameters = self.structure.parameters | changes
        if not self.structure.mapped:
            return self.structure.cls(**parameters)
        made = self.structure.cls.open(self.path(), mode="c", **parameters)
        self.opened.append(made)
        return made

    def path(self) -> Path:
        """A path nobody has used."""
        self.made += 1
        return self.folder / f"{self.made}.bloom"

    def spell(self, key: Any) -> Any:
        """The key as this structure takes it: for one of URLs, a URL that no other key has."""
        return streams.url_of(key) if self.structure.takes_urls else key

    def spelled(self, keys: Any) -> Any:
        """An array of keys, or a list of their URLs."""
        urls = self.structure.takes_urls
        return [self.spell(key) for key in keys.tolist()] if urls else keys

    def words(self, n: int, prefix: str = "key") -> list[str]:
        """n distinct keys of text; another prefix gives n other ones."""
        return [self.spell(key) for key in streams.words(n, prefix)]

    def mixed(self, n: int, prefix: str = "key") -> list[Any]:
        """About n keys of all kinds, with repeats."""
        return [self.spell(key) for key in streams.mixed(n, prefix)]

    @property
    def edges(self) -> list[Any]:
        """One key of every shape that the structure takes."""
        return [self.spell(key) for key in streams.EDGES]

    @property
    def bad_keys(self) -> list[Any]:
        """Nothing of this is a key."""
        numbers = [5, -1, 2**63] if self.structure.takes_urls else []
        return streams.BAD_KEYS + numbers

    @property
    def removes(self) -> bool:
        """Whether `remove` exists and the policy allows it."""
        return "remove" in self.structure.traits and "conservative" not in self.structure.traits

    @property
    def limit(self) -> float:
        """The largest value of a counter: where growing ones end, at 64 bits, they stick too."""
        if issubclass(self.structure.cls, CountFilter):
            return 2**64 - 1
        parameters = self.structure.parameters
        largest: int = 2 ** int(parameters["counter_bits"]) - 1
        if "decays" not in self.structure.traits:
            return largest
        return largest / 256

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for opened in self.opened:
            opened.close()


GOAL = {"capacity": CAPACITY, "error_rate": 0.01}
BLOCKED = GOAL | {"layout": "blocked"}
CLASSIC = GOAL | {"layout": "classic"}
OFTEN = {"total": CAPACITY}
"""Planned for one occurrence a key, so that counters outgrow their fields all the time."""
AGES = {"half_life": 10**10, "epoch": 10**9}
"""The next epoch begins in 2033, so that no test meets an end of one by chance."""
PAPER = {"capacity": CAPACITY, "error_rate": 0.05, "hashes": 3, "layout": "classic"}

STRUCTURES: tuple[Structure, ...] = (
    *(
        Structure(f"bloom-blocked-{rate}", BloomFilter, {"capacity": CAPACITY, "error_rate": rate})
        for rate in (0.1, 0.01, 1e-4)
    ),
    *(
        Structure(
            f"bloom-classic-{how}",
            BloomFilter,
            GOAL | {"layout": "classic", "paper": {"derivation": how}},
        )
        for how in ("enhanced", "double", "slices")
    ),
    Structure("bloom-keyed", BloomFilter, GOAL | {"hash": "keyed", "secret": SECRET}),
    Structure("bloom-bits", BloomFilter, {"bits": 100_003, "hashes": 7}),
    Structure("bloom-mapped", BloomFilter, GOAL, mapped=True),
    Structure("scalable", ScalableBloomFilter, {"capacity": 500, "error_rate": 0.01}),
    *(
        Structure(
            f"counting-{layout}-{width}-{policy}",
            CountingBloomFilter,
            GOAL | {"counter_bits": width, "policy": policy, "layout": layout},
        )
        for layout, widths in (("blocked", (4, 8, 16, 32)), ("classic", (4, 32)))
        for width in widths
        for policy in ("plain", "conservative")
    ),
    *(
        Structure(f"sbf-{layout}-{policy}", SpectralBloomFilter, goal | {"policy": policy})
        for layout, goal, policy in (
            ("blocked", BLOCKED, "plain"),
            ("classic", CLASSIC, "conservative"),
        )
    ),
    *(
        Structure(f"dcf-{layout}-{policy}", DynamicCountFilter, goal | {"policy": policy})
        for layout, goal, policy in (
            ("blocked", BLOCKED, "plain"),
            ("blocked", BLOCKED, "conservative"),
            ("classic", CLASSIC | OFTEN, "plain"),
        )
    ),
    *(
        Structure(
            f"psbf-{goal['layout']}-{cut}-{policy}",
            PartitionedSpectralBloomFilter,
            goal | {"partitions": cut, "policy": policy},
        )
        for goal, cut, policy in (
            (BLOCKED, "auto", "plain"),
            (BLOCKED, 7, "conservative"),
            (CLASSIC | OFTEN, 7, "plain"),
        )
    ),
    *(
        Structure(
            f"pdcf-{goal['layout']}-{cut}-{policy}",
            PartitionedDynamicCountFilter,
            goal | {"partitions": cut, "policy": policy},
        )
        for goal, cut, policy in (
            (BLOCKED, "auto", "plain"),
            (BLOCKED, 13, "conservative"),
            (CLASSIC | OFTEN, 7, "plain"),
            (CLASSIC | OFTEN, 50, "plain"),
        )
    ),
    Structure("pdcf-paper", PartitionedDynamicCountFilter, PAPER),
    *(
        Structure(
            f"tbf-{storage}-{layout}-{width}-{rounding}-{policy}",
            TimeDecayingBloomFilter,
            GOAL
            | AGES
            | {"storage": storage, "layout": layout, "counter_bits": width}
            | {"rounding": rounding, "policy": policy},
        )
        for storage, layout, width, rounding, policy in (
            ("basic", "blocked", 32, "strict", "plain"),
            ("basic", "blocked", 16, "expiring", "plain"),
            ("basic", "blocked", 16, "strict", "conservative"),
            ("basic", "classic", 32, "expiring", "plain"),
            ("basic", "classic", 16, "strict", "plain"),
            ("optimized", "blocked", 32, "strict", "plain"),
            ("optimized", "blocked", 16, "expiring", "conservative"),
            ("optimized", "classic", 16, "strict", "plain"),
        )
    ),
    *(
        Structure(f"url-{how}", UrlFilter, GOAL | parameters)
        for how, parameters in (
            ("salted", {}),
            ("ordered", {"paper": {"bind": "ordered"}, "layer_sizes": [500, 9000]}),
            ("paper", {"paper": {"bind": "xor"}, "layer_sizes": "uniform"}),
            ("shallow", {"max_layers": 2, "layer_sizes": "uniform"}),
            ("keyed", {"hash": "keyed", "secret": SECRET, "error_rate": 1e-4}),
        )
    ),
    Structure("dcf-cells", DynamicCountFilter, {"cells": 100_003, "hashes": 5}),
)
