"""The Scrapy add-on: one line of settings turns everything on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.core.scheduler import Scheduler
from scrapy.utils.misc import load_object

from bloomtide.integrations.scrapy.dupefilter import BloomDupeFilter
from bloomtide.integrations.scrapy.options import is_durable
from bloomtide.integrations.scrapy.scheduler import DoneMiddleware, DurableScheduler

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


class Addon:
    """`ADDONS = {"bloomtide.integrations.scrapy.Addon": 500}`."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Sets the filter and, with a JOBDIR, the scheduler that survives a kill.

        A project that has set its own of either keeps it.
        """
        settings.set("DUPEFILTER_CLASS", BloomDupeFilter, "addon")
        durable = is_durable(settings) and bool(settings["JOBDIR"])
        ours = issubclass(load_object(settings["DUPEFILTER_CLASS"]), BloomDupeFilter)
        if durable and ours and load_object(settings["SCHEDULER"]) is Scheduler:
            settings.set("SCHEDULER", DurableScheduler, "addon")
            # Nearest to the engine: the last to see what a callback yields.
            settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", DoneMiddleware, 0)
