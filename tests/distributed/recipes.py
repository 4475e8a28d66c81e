"""Every structure that merges exactly, as a recipe, and a stream of keys for it."""

from __future__ import annotations

from typing import Any

from bloomtide import (
    BloomFilter,
    CountingBloomFilter,
    DynamicCountFilter,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    SpectralBloomFilter,
    TimeDecayingBloomFilter,
    UrlFilter,
)
from bloomtide.distributed import Recipe

NOW = 1_700_000_000
SIZE = {"capacity": 3000, "error_rate": 0.01}

EXACT: dict[str, Recipe] = {
    "bloom": Recipe.of(BloomFilter.plan(**SIZE)),  # type: ignore[arg-type]
    "bloom-classic": Recipe.of(BloomFilter.plan(**SIZE, layout="classic"), seed=7),  # type: ignore[arg-type]
    "bloom-keyed": Recipe.of(
        BloomFilter.plan(**SIZE),  # type: ignore[arg-type]
        hash="keyed",
        secret=bytes(range(16)),
    ),
    "counting": Recipe.of(CountingBloomFilter.plan(**SIZE, counter_bits=8)),  # type: ignore[arg-type]
    "counting-classic": Recipe.of(
        CountingBloomFilter.plan(**SIZE, counter_bits=16, layout="classic")  # type: ignore[arg-type]
    ),
    "sbf": Recipe.of(SpectralBloomFilter.plan(**SIZE)),  # type: ignore[arg-type]
    "dcf": Recipe.of(DynamicCountFilter.plan(**SIZE)),  # type: ignore[arg-type]
    "psbf": Recipe.of(PartitionedSpectralBloomFilter.plan(**SIZE)),  # type: ignore[arg-type]
    "pdcf": Recipe.of(PartitionedDynamicCountFilter.plan(**SIZE)),  # type: ignore[arg-type]
    **{
        f"tbf-{layout}": Recipe.of(
            TimeDecayingBloomFilter.plan(**SIZE, half_life="1h", storage=layout),  # type: ignore[arg-type]
            at=NOW,
        )
        for layout in ("basic", "optimized")
    },
    "url": Recipe.of(UrlFilter.plan(**SIZE)),  # type: ignore[arg-type]
}

BOUNDS: dict[str, Recipe] = {
    "counting-conservative": Recipe.of(
        CountingBloomFilter.plan(**SIZE, counter_bits=16, policy="conservative")  # type: ignore[arg-type]
    ),
    "pdcf-conservative": Recipe.of(
        PartitionedDynamicCountFilter.plan(**SIZE, policy="conservative")  # type: ignore[arg-type]
    ),
    "sbf-conservative": Recipe.of(
        SpectralBloomFilter.plan(**SIZE, policy="conservative")  # type: ignore[arg-type]
    ),
}
"""Structures whose merge promises less: counts are upper bounds still, though looser ones."""


def key_of(number: int) -> str:
    """A URL, which is a key for every structure."""
    return f"https://host{number % 17}.example/a{number % 5}/page{number}"


def columns(recipe: Recipe, numbers: list[int]) -> dict[str, list[Any]]:
    """Rows for a structure: keys, and counts and times where it takes them."""
    found: dict[str, list[Any]] = {"key": [key_of(number) for number in numbers]}
    if recipe.counts:
        found["count"] = [1 + number % 3 for number in numbers]
    if recipe.fades:
        found["at"] = [NOW - (number * 7919) % 36_000 - 0.25 for number in numbers]
    return found


def one_machine(recipe: Recipe, rows: dict[str, list[Any]]) -> Any:
    """What one machine builds."""
    made = recipe.make()
    words = {"counts": rows.get("count"), "at": rows.get("at")}
    made.add_many(rows["key"], **{name: v for name, v in words.items() if v is not None})
    return made


def exactly(recipe: Recipe, rows: dict[str, list[Any]]) -> dict[str, float]:
    """What each key truly counts: a time-decaying filter fades at every tenth of its half-life of
    an hour, a hot list all the time."""
    ones = [1] * len(rows["key"])
    found: dict[str, float] = {}
    for key, count, at in zip(
        rows["key"], rows.get("count", ones), rows.get("at", [NOW] * len(ones)), strict=True
    ):
        hours = (NOW - at) / 3600 if recipe.kind == "hot" else (NOW // 360 - at // 360) / 10
        found[key] = found.get(key, 0.0) + count * 2**-hours
    return found
