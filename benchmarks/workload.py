"""The keys: URLs of about 57 bytes, and a skewed stream of them for the counters.

A key set is kept as one text with a line per key. `fresh()` splits it, so every timed pass gets
new `str` objects: Python caches a string's hash inside the object, and a benchmark that uses the
same objects twice measures that cache for the libraries that call `hash()`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

ABSENT_SET = 1 << 20
"""Number of the key set that is never added; member sets count up from 0 and stay below it."""

_MIX = 0x9E3779B97F4A7C15  # odd, so multiplying by it permutes the 64-bit integers
_HOSTS = ("shop", "news", "static", "blog", "forum", "images", "api", "www-eu")
_PATHS = ("item", "category/shoes", "user", "article/2026", "search", "basket/view")


def url(number: int) -> str:
    """A URL that no other `number` below 2**64 has; the lengths vary as they do in a log."""
    mixed = number * _MIX & 0xFFFF_FFFF_FFFF_FFFF
    host = _HOSTS[mixed >> 61]
    path = _PATHS[(mixed >> 32) % len(_PATHS)]
    return f"https://{host}.example.com/{path}/{mixed:016x}?pg={mixed % 97}"


@dataclass(frozen=True)
class KeySet:
    """Distinct URLs, held so that new `str` objects can be made from them at any time."""

    text: str
    size: int

    @classmethod
    def of(cls, number: int, size: int) -> KeySet:
        """The key set with this number. Two sets of equal size share no key."""
        start = number * size
        return cls("\n".join(map(url, range(start, start + size))), size)

    def fresh(self) -> list[str]:
        """The keys as `str` objects that nobody has hashed yet."""
        return self.text.split("\n")

    @cached_property
    def arrow(self) -> pa.StringArray:
        """The keys as one Arrow array; it has no place to cache a hash."""
        return pa.array(self.fresh(), type=pa.string())


def lengths(keys: KeySet) -> dict[str, float]:
    """Shortest, mean and longest key, in bytes."""
    sizes = np.fromiter((len(key) for key in keys.fresh()), np.int64, keys.size)
    return {
        "shortest": int(sizes.min()),
        "mean": round(float(sizes.mean()), 1),
        "longest": int(sizes.max()),
    }


def zipf_stream(events: int, exponent: float = 1.2, seed: int = 20) -> KeySet:
    """`events` URLs drawn with weights 1, 2**-s, 3**-s ... over as many ranks; seeded.

    The ranks are cut at `events`, so the law has a finite sum and the stream can be made again.
    """
    weights = np.arange(1, events + 1, dtype=np.float64) ** -exponent
    steps = np.cumsum(weights)
    draws = np.random.default_rng(seed).random(events) * steps[-1]
    ranks = np.minimum(np.searchsorted(steps, draws), events - 1)
    return KeySet("\n".join(map(url, ranks.tolist())), events)
