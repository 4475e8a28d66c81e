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
