"""Scrapy: a duplicate filter in bounded memory that survives `kill -9`.

    ADDONS = {"bloomtide.integrations.scrapy.Addon": 500}
    BLOOMTIDE_CAPACITY = 1_000_000
    BLOOMTIDE_VERIFY = "exact"

`BloomDupeFilter` is the filter, to be used with Scrapy's own scheduler or with `DurableScheduler`,
which also keeps the requests that were accepted and not done. `Addon` turns on both.
"""

from bloomtide import extras

with extras.require("scrapy", "`bloomtide.integrations.scrapy`"):
    from bloomtide.integrations.scrapy.addon import Addon
    from bloomtide.integrations.scrapy.dupefilter import BloomDupeFilter
    from bloomtide.integrations.scrapy.scheduler import DoneMiddleware, DurableScheduler

__all__ = ["Addon", "BloomDupeFilter", "DoneMiddleware", "DurableScheduler"]
