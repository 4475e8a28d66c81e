"""One crawl of the site in a process of its own, so that it can be killed.

`python -m benchmarks.crawl.spider PORT REPORT SETTING=VALUE ...` crawls from page 0 and writes
Scrapy's statistics, with the bytes that the filter's fingerprints take, as JSON.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.http import Response, TextResponse

from bloomery.integrations.scrapy import BloomDupeFilter

_HREF = re.compile(r'href="([^"]+)"')

QUIET = {
    "LOG_LEVEL": "WARNING",
    "TELNETCONSOLE_ENABLED": False,
    "EXTENSIONS_BASE": {},
    "DOWNLOADER_MIDDLEWARES_BASE": {},
    "SPIDER_MIDDLEWARES_BASE": {},
    "CONCURRENT_REQUESTS": 32,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 32,
    "CONCURRENT_ITEMS": 1,  # Scrapy starts that many tasks for every page
    "DOWNLOAD_DELAY": 0,
}
"""Nothing but the crawl: the filter is the same with all of Scrapy's parts, and minutes slower."""


class SiteSpider(Spider):
    """Follows every link from page 0."""

    name = "site"
    port: str

    async def start(self) -> AsyncIterator[Any]:
        # Filtered like every other page, so that a resumed crawl does not fetch it again.
        yield Request(f"http://127.0.0.1:{self.port}/p?n=0&lang=en")

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        for link in _HREF.findall(response.text):
            yield Request(f"http://127.0.0.1:{self.port}{link}")


def fingerprint_bytes(dupefilter: Any) -> int:
    """What a filter's fingerprints take in memory; for Scrapy's own, the set and the objects in it."""
    if isinstance(dupefilter, BloomDupeFilter):
        return dupefilter._opened().stats().bytes
    kept: set[bytes] = dupefilter._fingerprints
    return sys.getsizeof(kept) + sum(map(sys.getsizeof, kept))


def crawl(port: str, report: Path, settings: dict[str, Any]) -> None:
    """Crawls and reports."""
    process = CrawlerProcess(QUIET | settings)
    crawler: Crawler = process.create_crawler(SiteSpider)
    measured: dict[str, Any] = {}

    def measure() -> None:
        engine = crawler.engine
        assert engine is not None
        assert engine._slot is not None
        measured["fingerprint_bytes"] = fingerprint_bytes(engine._slot.scheduler.df)  # type: ignore[attr-defined]

    crawler.signals.connect(measure, signals.spider_idle)
    began = time.perf_counter()
    process.crawl(crawler, port=port)
    process.start()
    assert crawler.stats is not None
    measured["seconds"] = time.perf_counter() - began
    everything = crawler.stats.get_stats() | measured
    report.write_text(json.dumps(everything, default=str))


if __name__ == "__main__":
    given = dict(word.split("=", 1) for word in sys.argv[3:])
    if "ADDONS" in given:
        given["ADDONS"] = json.loads(given["ADDONS"])
    crawl(sys.argv[1], Path(sys.argv[2]), given)
