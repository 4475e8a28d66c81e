"""Answers about a stream in bounded memory: seen it? how many times? and how sure is that.

>>> import bloomery
>>> seen = bloomery.BloomFilter(capacity=1_000_000, error_rate=0.01)
>>> seen.add("https://example.org/")
True
>>> "https://example.org/" in seen
True
"""

from bloomery._core import (
    BloomFilter,
    CountFilter,
    CountingBloomFilter,
    DynamicCountFilter,
    HotList,
    LogCounter,
    LogReader,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    ScalableBloomFilter,
    SpectralBloomFilter,
    TimeDecayingBloomFilter,
    __version__,
    digest,
    from_bytes,
    load,
)
from bloomery.errors import BloomeryError
from bloomery.hot import HotFilter
from bloomery.recent import RecentFilter
from bloomery.records import Estimate, HotItem, Plan, Stats

__all__ = [
    "BloomFilter",
    "BloomeryError",
    "CountFilter",
    "CountingBloomFilter",
    "DynamicCountFilter",
    "Estimate",
    "HotFilter",
    "HotItem",
    "HotList",
    "LogCounter",
    "LogReader",
    "PartitionedDynamicCountFilter",
    "PartitionedSpectralBloomFilter",
    "Plan",
    "RecentFilter",
    "ScalableBloomFilter",
    "SpectralBloomFilter",
    "Stats",
    "TimeDecayingBloomFilter",
    "__version__",
    "digest",
    "from_bytes",
    "load",
]
