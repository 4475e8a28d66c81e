"""Answers about a stream in bounded memory: seen it? how many times? and how sure is that.

>>> import bloomery
>>> seen = bloomery.BloomFilter(capacity=1_000_000, error_rate=0.01)
>>> seen.add("https://example.org/")
True
>>> "https://example.org/" in seen
True
"""

from typing import TYPE_CHECKING, Any

from bloomery._core import (
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
from bloomery.errors import BloomeryError
from bloomery.hot import HotFilter
from bloomery.records import Estimate, HotItem, Plan, Stats

if TYPE_CHECKING:
    from bloomery.guard import DatabaseGuard
    from bloomery.history import History
    from bloomery.monitor import Monitor
    from bloomery.recent import RecentFilter

__all__ = [
    "BloomFilter",
    "BloomeryError",
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


def __getattr__(name: str) -> Any:
    """What takes long to import, or needs an extra, when it is first asked for."""
    if name == "DatabaseGuard":
        from bloomery.guard import DatabaseGuard

        return DatabaseGuard
    if name == "History":
        from bloomery.history import History

        return History
    if name == "Monitor":
        from bloomery.monitor import Monitor

        return Monitor
    if name == "RecentFilter":
        from bloomery.recent import RecentFilter

        return RecentFilter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
