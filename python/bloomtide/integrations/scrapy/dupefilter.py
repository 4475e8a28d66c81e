"""`BloomDupeFilter`: Scrapy's duplicate filter in bounded memory.

It asks the project's `request_fingerprinter`, so it calls the same requests equal as Scrapy's own
filter does, and logs and counts what it filters as that does. What it remembers is `Seen`.
"""

from __future__ import annotations

import logging
import pickle
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Self

from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.job import job_dir

from bloomtide.integrations.scrapy.options import Options, read_options
from bloomtide.integrations.scrapy.seen import KEY, Seen

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.statscollectors import StatsCollector

    from bloomtide.integrations.scrapy.frontier import Frontier

logger = logging.getLogger(__name__)

DIRECTORY = "bloomtide"
"""Our place in a job directory."""


class BloomDupeFilter(RFPDupeFilter):
    """Calls a request seen if one with its fingerprint came before."""

    def __init__(self, crawler: Crawler, options: Options, directory: Path | None) -> None:
        # Without a path Scrapy's own filter opens no file and its set of fingerprints stays empty;
        # what is left of it is how it logs.
        super().__init__(
            None,
            crawler.settings.getbool("DUPEFILTER_DEBUG"),
            fingerprinter=crawler.request_fingerprinter,
        )
        self.frontier: Frontier | None = None
        """Where a new request is written down before it counts as seen; a scheduler sets it."""
        self.recovering = False
        """Whether requests come from the list of those not done. They go on, and count as seen from
        now on if they did not yet: a kill may have come between the list and the log."""
        self._crawler = crawler
        self.options = options
        self._directory = directory
        self._seen: Seen | None = None
        self._added = 0
        self._next_look = 1000
        self._warned = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Reads the settings; a bad one is refused by its name."""
        path = job_dir(crawler.settings)
        options = read_options(crawler.settings, list(crawler.settings))
        return cls(crawler, options, None if path is None else Path(path, DIRECTORY))

    def open(self) -> None:
        """Reads what the job has seen before."""
        seen = self._seen = Seen(self.options, self._directory)
        if seen.replayed:
            logger.info("bloomtide: %d pages came back from the log", seen.replayed)
            self._set("replayed", seen.replayed)
        if seen.damaged_records:
            logger.warning(
                "bloomtide: %d records of the log are damaged; those pages are fetched again",
                seen.damaged_records,
            )
            self._set("damaged_records", seen.damaged_records)
        self._look()

    def key_of(self, request: Request) -> bytes:
        """The fingerprint, as 20 bytes. Scrapy's have that length; others are digested."""
        fingerprint = self.fingerprinter.fingerprint(request)
        if len(fingerprint) == KEY:
            return fingerprint
        return blake2b(fingerprint, digest_size=KEY).digest()

    def request_seen(self, request: Request) -> bool:
        """Whether an equal request came before; from now on it did."""
        seen = self._opened()
        key = self.key_of(request)
        if key in seen:
            return not self.recovering
        # The list first: killed between the two, the request is asked for again and not lost.
        self.write_down(key, request)
        if not seen.add(key) and not self.recovering:
            if self.frontier is not None:
                self.frontier.done(key)
            return True
        self._added += 1
        if self._added >= self._next_look:
            self._look()
        return False

    def write_down(self, key: bytes, request: Request) -> None:
        """Takes the request into the list of those not done, if there is one."""
        if self.frontier is None:
            return
        try:
            data = pickle.dumps(request.to_dict(spider=self._crawler.spider), protocol=4)
        except (ValueError, TypeError, AttributeError, pickle.PicklingError) as error:
            self._stats.inc_value("bloomtide/not_durable")
            if self._stats.get_value("bloomtide/not_durable") == 1:
                logger.warning(
                    "bloomtide: %s cannot be written down and is lost if the crawl is killed: %s"
                    " (give it a method of the spider as callback; only this one is shown)",
                    request,
                    error,
                )
        else:
            self.frontier.add(key, data)

    def close(self, reason: str) -> None:
        """Saves what was seen."""
        if self._seen is not None:
            self._look()
            self._seen.close()
            self._set("snapshots", self._seen.snapshots)
            self._seen = None

    def _opened(self) -> Seen:
        if self._seen is None:
            self.open()
        assert self._seen is not None
        return self._seen

    # --- what is said about it ----------------------------------------------------------------

    @property
    def _stats(self) -> StatsCollector:
        assert self._crawler.stats is not None
        return self._crawler.stats

    def _set(self, name: str, value: float) -> None:
        self._stats.set_value(f"bloomtide/{name}", value)

    def _look(self) -> None:
        """Measures the filter. That reads all of it, so the next look waits for a tenth more."""
        seen = self._opened()
        now = seen.stats()
        self._next_look = self._added + max(1000, int(min(now.items, 1e12)) // 10)
        self._set("items", round(now.items))
        self._set("bytes", now.bytes)
        self._set("fill", now.fill)
        self._set("estimated_error", now.predicted_error)
        if self.options.verify:
            self._set("rescued", seen.rescued)
        target = self.options.error_rate
        if now.predicted_error > target and not self._warned:
            self._warned = True
            logger.warning(
                "bloomtide: the filter now calls %.2g of new pages seen, more than"
                " BLOOMTIDE_ERROR_RATE = %g allows: about %d pages are in it, BLOOMTIDE_CAPACITY"
                " is %d (no more such warnings)",
                now.predicted_error,
                target,
                now.items,
                self.options.capacity,
            )
