"""Answers about a stream in bounded memory: seen it? how many times? and how sure is that.

>>> import bloomtide
>>> seen = bloomtide.BloomFilter(capacity=1_000_000, error_rate=0.01)
>>> seen.add("https://example.org/")
True
>>> "https://example.org/" in seen
True
"""

from typing import TYPE_CHECKING, Any

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
from bloomtide.errors import BloomtideError
from bloomtide.hot import HotFilter
from bloomtide.records import Estimate, HotItem, Plan, Stats

if TYPE_CHECKING:
    from bloomtide.guard import DatabaseGuard
    from bloomtide.history import History
    from bloomtide.monitor import Monitor
    from bloomtide.recent import RecentFilter

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


def __getattr__(name: str) -> Any:
    """What takes long to import, or needs an extra, when it is first asked for."""
    if name == "DatabaseGuard":
        from bloomtide.guard import DatabaseGuard

        return DatabaseGuard
    if name == "History":
        from bloomtide.history import History

        return History
    if name == "Monitor":
        from bloomtide.monitor import Monitor

        return Monitor
    if name == "RecentFilter":
        from bloomtide.recent import RecentFilter

        return RecentFilter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
