"""Follows every link of one site and yields the address of each page.

cd examples/scrapy_project
scrapy crawl site -a url=https://example.org/ -s JOBDIR=job -o pages.jsonl

Kill it whenever you like and give the same command again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.http import Response, TextResponse


class SiteSpider(Spider):
    """`url` is where it begins; it stays on that host."""

    name = "site"
    url: str

    async def start(self) -> AsyncIterator[Any]:
        self.allowed_domains = [urlsplit(self.url).hostname or ""]
        # Filtered like every page, so that a resumed crawl does not begin by fetching it again.
        yield Request(self.url, dont_filter=False)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        if isinstance(response, TextResponse):
            yield from response.follow_all(css="a")
