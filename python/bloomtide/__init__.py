"""Answers about a stream in bounded memory: seen it? how many times? and how sure is that.

>>> import bloomtide
>>> seen = bloomtide.BloomFilter(capacity=1_000_000, error_rate=0.01)
>>> seen.add("https://example.org/")
True
>>> "https://example.org/" in seen
True

`__all__` and `dir(bloomtide)` are the whole public surface, whatever is installed. What is written
in Python is imported when it is first asked for. A class whose extra is missing is a stand-in, so
that `from bloomtide import *` works everywhere; calling it, subclassing it or asking it for an
attribute raises `MissingExtraError`. It has no instances, so `isinstance` answers False.
"""

import sys
from typing import TYPE_CHECKING, Any

if sys.version_info < (3, 11):  # noqa: UP036 - pip refuses, a source tree on the path does not
    raise ImportError(
        f"bloomtide needs Python 3.11 or newer, and this is {sys.version.split()[0]}: "
        "run it with a newer one"
    )

try:
    from bloomtide._core import (
        BloomFilter,
        CountFilter,
        CountingBloomFilter,
        Dedup,
        DynamicCountFilter,
        HotList,
        LogCounter,
        LogReader,
        PartitionedDynamicCountFilter,
        PartitionedSpectralBloomFilter,
        ScalableBloomFilter,
        SpectralBloomFilter,
        TimeDecayingBloomFilter,
        UrlFilter,
        __version__,
        canonical_url,
        digest,
        from_bytes,
        load,
    )
except ImportError as error:
    if (error.name or "").rpartition(".")[2] != "_core":
        raise
    from bloomtide.core_missing import explain

    raise ImportError(explain(error), name=error.name, path=error.path) from error

from bloomtide.errors import BloomtideError
from bloomtide.errors import MissingExtraError as _MissingExtraError

if TYPE_CHECKING:
    from bloomtide.guard import DatabaseGuard
    from bloomtide.history import History
    from bloomtide.hot import HotFilter
    from bloomtide.monitor import Monitor
    from bloomtide.recent import RecentFilter
    from bloomtide.records import Estimate, HotItem, Plan, Stats

__all__ = [
    "BloomFilter",
    "BloomtideError",
    "CountFilter",
    "CountingBloomFilter",
    "DatabaseGuard",
    "Dedup",
    "DynamicCountFilter",
    "Estimate",
    "History",
    "HotFilter",
    "HotItem",
    "HotList",
    "LogCounter",
    "LogReader",
    "Monitor",
    "PartitionedDynamicCountFilter",
    "PartitionedSpectralBloomFilter",
    "Plan",
    "RecentFilter",
    "ScalableBloomFilter",
    "SpectralBloomFilter",
    "Stats",
    "TimeDecayingBloomFilter",
    "UrlFilter",
    "__version__",
    "canonical_url",
    "digest",
    "from_bytes",
    "load",
]

_LAZY = {
    "DatabaseGuard": "guard",
    "Estimate": "records",
    "History": "history",
    "HotFilter": "hot",
    "HotItem": "records",
    "Monitor": "monitor",
    "Plan": "records",
    "RecentFilter": "recent",
    "Stats": "records",
}


def __getattr__(name: str) -> Any:
    """A name of `_LAZY`, when it is first asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        value = getattr(import_module(f"bloomtide.{_LAZY[name]}"), name)
    except _MissingExtraError as error:
        from bloomtide.extras import stand_in

        return stand_in(name, error)  # not kept: the extra may come while the program runs
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
