"""Scrapy: a duplicate filter in bounded memory that survives `kill -9`.

    ADDONS = {"bloomery.integrations.scrapy.Addon": 500}
    BLOOMERY_CAPACITY = 1_000_000
    BLOOMERY_VERIFY = "exact"

`BloomDupeFilter` is the filter, to be used with Scrapy's own scheduler or with `DurableScheduler`,
which also keeps the requests that were accepted and not done. `Addon` turns on both.
"""

from bloomery.integrations.scrapy.addon import Addon
from bloomery.integrations.scrapy.dupefilter import BloomDupeFilter
from bloomery.integrations.scrapy.scheduler import DoneMiddleware, DurableScheduler

__all__ = ["Addon", "BloomDupeFilter", "DoneMiddleware", "DurableScheduler"]
