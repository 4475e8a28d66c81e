"""`Recipe`: what every task of a distributed build makes, in a few hundred bytes.

A `Plan` holds the sizes; a recipe adds how keys are hashed and, for structures that fade, the
instant that the result is for. It is what goes to the tasks and what each partial carries.

1. Two recipes make filters that merge exactly if and only if their fingerprints are the same.
2. `make()` is the same empty structure on every machine: no clock is asked.

Why an instant: a fading count is rounded whenever its block fades, so the bytes would depend on the
order in which times came. A filter that is at its last instant from the start fades each event
once, by its own age, and sums do not depend on order.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any, Self

from bloomtide._core import (
    BloomFilter,
    CountingBloomFilter,
    DynamicCountFilter,
    HotList,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    SpectralBloomFilter,
    TimeDecayingBloomFilter,
    UrlFilter,
    parse_duration,
    parse_instant,
)
from bloomtide.errors import UnsupportedError, require
from bloomtide.plain import plain
from bloomtide.records import Plan

CLASSES: dict[str, Any] = {
    "bloom": BloomFilter,
    "counting": CountingBloomFilter,
    "sbf": SpectralBloomFilter,
    "dcf": DynamicCountFilter,
    "psbf": PartitionedSpectralBloomFilter,
    "pdcf": PartitionedDynamicCountFilter,
    "tbf": TimeDecayingBloomFilter,
    "url": UrlFilter,
    "hot": HotList,
}
"""Every structure that merges, by the name that its plan has."""
FADING = frozenset({"tbf", "hot"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What every task makes. Written as `Recipe.of(plan, ...)` or `Recipe.hot_list(k, ...)`."""

    plan: Plan | None
    """None for a hot list, which is sized by k alone."""
    k: int | None = None
    half_life: float | None = None
    hash: str = "xxh3"
    seed: int = 0
    secret: bytes | None = None
    at: float | None = None
    """The instant that a structure which fades is for, in seconds since 1970."""

    def __post_init__(self) -> None:
        for name in ("k", "half_life", "hash", "seed", "at"):
            object.__setattr__(self, name, plain(getattr(self, name)))
        require(
            "secret", self.secret, 'given with hash="keyed"',
            self.hash != "keyed" or self.secret is not None,
            hint="without one each task would make up its own, and no two parts would merge: give "
            "all of them the same secrets.token_bytes(16)",
        )  # fmt: skip

    @classmethod
    def of(
        cls,
        plan: Plan | Recipe,
        *,
        hash: str = "xxh3",
        seed: int = 0,
        secret: bytes | None = None,
        at: Any = None,
    ) -> Recipe:
        """The recipe of a plan; a recipe is taken as it is.

        `at` is the end of the data, for counts that fade: events count by their age at it.
        """
        if isinstance(plan, Recipe):
            return plan
        require(
            "plan", type(plan).__name__, "a Plan or a Recipe", isinstance(plan, Plan),
            hint="write BloomFilter.plan(capacity, error_rate), or Recipe.hot_list(k)",
        )  # fmt: skip
        if plan.kind not in CLASSES:
            raise UnsupportedError(
                f"a filter of kind `{plan.kind}` does not merge, so many tasks cannot build one",
                hint="size it for all keys with BloomFilter.plan",
                verb="merge", policy=plan.kind,
            )  # fmt: skip
        instant = _instant(at, plan.kind)
        recipe = cls(plan=plan, hash=hash, seed=seed, secret=secret, at=instant)
        recipe.options()
        return recipe

    @classmethod
    def hot_list(
        cls,
        k: int,
        *,
        half_life: Any = None,
        hash: str = "xxh3",
        seed: int = 0,
        secret: bytes | None = None,
        at: Any = None,
    ) -> Self:
        """The recipe of a `HotList`; `at` is needed if it fades."""
        life = None if half_life is None else parse_duration(half_life, "half_life")
        instant = None if life is None else _instant(at, "hot")
        made = cls(
            plan=None, k=k, half_life=life, hash=hash, seed=seed, secret=secret, at=instant
        )  # fmt: skip
        made.make()
        return made

    @property
    def kind(self) -> str:
        """The kind that it makes, as in `Plan.kind`, or `"hot"`."""
        return "hot" if self.plan is None else self.plan.kind

    @property
    def size(self) -> int:
        """Memory of the cells of what it makes; 0 for a hot list, which grows with its keys."""
        return 0 if self.plan is None else self.plan.bytes

    @property
    def fades(self) -> bool:
        """Whether an event has a time: a column of instants is taken."""
        return self.at is not None

    @property
    def counts(self) -> bool:
        """Whether its batches may say how often each key came."""
        return self.kind not in {"bloom", "counting", "url"}

    def options(self) -> dict[str, Any]:
        """The words for hashing that its class takes; refuses a secret that does not go."""
        words: dict[str, Any] = {"hash": self.hash, "seed": self.seed}
        if self.secret is not None:
            words["secret"] = self.secret
        HotList(1, **words)  # the smallest thing that checks them
        return words

    def make(self) -> Any:
        """An empty structure, at its instant."""
        words = self.options()
        if self.plan is None:
            made: Any = HotList(self.k, half_life=self.half_life, **words)  # type: ignore[arg-type]
        else:
            made = CLASSES[self.kind].from_plan(self.plan, **words)
        if self.at is not None:
            made.advance(self.at)
        return made

    def to_json(self) -> bytes:
        """All of it; equal recipes are equal bytes."""
        about = asdict(self)
        about["secret"] = None if self.secret is None else base64.b64encode(self.secret).decode()
        return json.dumps(about, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """What `to_json` wrote."""
        about = json.loads(data)
        secret = about.pop("secret")
        plan = about.pop("plan")
        return cls(
            plan=None if plan is None else _plan(plan),
            secret=None if secret is None else base64.b64decode(secret),
            **about,
        )

    @property
    def fingerprint(self) -> bytes:
        """Sixteen bytes that no other recipe has."""
        return blake2b(self.to_json(), digest_size=16).digest()


def _plan(about: dict[str, Any]) -> Plan:
    layers = tuple(_plan(layer) for layer in about.pop("layers"))
    return Plan(layers=layers, **about)


def _instant(at: Any, kind: str) -> float | None:
    """The instant, where there is one to have."""
    fades = kind in FADING
    allowed = "the instant that the counts are for" if fades else "left out"
    require(
        "at", at, allowed, fades != (at is None),
        hint="give the end of the data: each event counts by its age at it" if fades
        else "only counts that fade have a time",
    )  # fmt: skip
    return None if at is None else float(parse_instant(at, "at"))
