"""One crawl of the site in a process of its own, so that it can be killed.

`python -m benchmarks.crawl.spider JSON` takes `port`, `report`, `settings`, `start` (a page) and
`end`, and writes Scrapy's statistics with the bytes that the filter's fingerprints take.

`end` is "SIGNAL PLACE COUNT": the process sends itself the signal at the COUNT-th call of a PLACE,
so that a test can kill it exactly where it hurts.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.http import Response, TextResponse

from bloomtide.integrations.scrapy import BloomDupeFilter
from bloomtide.integrations.scrapy.frontier import Frontier
from bloomtide.store import Ledger

_HREF = re.compile(r'href="([^"]+)"')

QUIET = {
    "LOG_LEVEL": "WARNING",
    "TELNETCONSOLE_ENABLED": False,
    "EXTENSIONS_BASE": {"scrapy.extensions.corestats.CoreStats": 0},
    "DOWNLOADER_MIDDLEWARES_BASE": {},
    "SPIDER_MIDDLEWARES_BASE": {},
    "CONCURRENT_REQUESTS": 32,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 32,
    "CONCURRENT_ITEMS": 1,  # Scrapy starts that many tasks for every page
    "DOWNLOAD_DELAY": 0,
}
"""Nothing but the crawl: the filter is the same with all of Scrapy's parts, and minutes slower."""


class SiteSpider(Spider):
    """Follows every link from one page on."""

    name = "site"
    port: int
    first: int

    async def start(self) -> AsyncIterator[Any]:
        # Filtered like every other page, so that a resumed crawl does not fetch it again.
        yield Request(f"http://127.0.0.1:{self.port}/p?n={self.first}&lang=en")

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        for link in _HREF.findall(response.text):
            yield self.follow(link)

    def follow(self, link: str) -> Request:
        return Request(f"http://127.0.0.1:{self.port}{link}")


PLACES: dict[str, tuple[type, str]] = {
    "parse": (SiteSpider, "follow"),  # a callback that has yielded some of its links
    "queue": (Scheduler, "_dqpush"),  # seen, and not in the queue
    "log": (Ledger, "append"),  # written down, and not in the log
    "done": (Frontier, "done"),  # finished, and not struck off
}


def end_at(what: str) -> None:
    """Makes the process end itself at a place."""
    name, place, count = what.split()
    owner, method = PLACES[place]
    original = getattr(owner, method)
    left = [int(count)]

    @wraps(original)
    def counting(*words: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.Signals[name])
        return original(*words)

    setattr(owner, method, counting)


def fingerprint_bytes(dupefilter: Any) -> int:
    """What the fingerprints take in memory; for Scrapy's own filter, the set and its objects."""
    if isinstance(dupefilter, BloomDupeFilter):
        return dupefilter._opened().stats().bytes
    kept: set[bytes] = dupefilter._fingerprints
    return sys.getsizeof(kept) + sum(map(sys.getsizeof, kept))


def crawl(port: int, report: Path, settings: dict[str, Any], start: int) -> None:
    """Crawls and reports."""
    process = CrawlerProcess(QUIET | settings)
    crawler: Crawler = process.create_crawler(SiteSpider)
    measured: dict[str, Any] = {}

    def measure() -> None:
        engine: Any = crawler.engine
        measured["fingerprint_bytes"] = fingerprint_bytes(engine._slot.scheduler.df)

    crawler.signals.connect(measure, signals.spider_idle)
    began = time.perf_counter()
    process.crawl(crawler, port=port, first=start)
    process.start()
    assert crawler.stats is not None
    measured["seconds"] = time.perf_counter() - began
    report.write_text(json.dumps(crawler.stats.get_stats() | measured, default=str))


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    if given["end"]:
        end_at(given["end"])
    crawl(given["port"], Path(given["report"]), given["settings"], given["start"])
