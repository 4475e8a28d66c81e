"""`DurableScheduler`: Scrapy's scheduler, with the requests that are not done kept on disk.

A request is done when its callback has run to its end and all that it yielded was taken in: the
requests scheduled, the items through the pipelines. `DoneMiddleware` sees the first, the engine's
list of requests in progress tells the second. A request that failed, was redirected or was dropped
on its way is not done, and is asked for once more after a kill.

After a kill Scrapy's own queue cannot be trusted: its files say how long they were when it was last
closed. It is thrown away then, and made again from the list.
"""

from __future__ import annotations

import logging
import pickle
import shutil
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from scrapy.core.scheduler import Scheduler
from scrapy.utils.request import request_from_dict

from bloomtide.errors import ParameterError
from bloomtide.integrations.scrapy.dupefilter import DIRECTORY, BloomDupeFilter
from bloomtide.integrations.scrapy.frontier import Frontier

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.internet.defer import Deferred

logger = logging.getLogger(__name__)

callback_ended = object()
"""The signal that a callback has run to its end; it names the `request`."""


class DurableScheduler(Scheduler):
    """Needs `BloomDupeFilter` and `DoneMiddleware`, and a JOBDIR to have any effect."""

    frontier: Frontier | None = None

    def open(self, spider: Spider) -> Deferred[None] | None:
        """Opens the queue; after a kill, makes it again."""
        if self.dqdir is None:
            return super().open(spider)
        dupefilter = self._dupefilter()
        path = Path(self.dqdir).parent / DIRECTORY / "pending.sqlite"
        frontier = Frontier(path, dupefilter.options.sync)
        try:
            self._begin(frontier)
            opened = super().open(spider)
            dupefilter.frontier = self.frontier = frontier
            if frontier.killed:
                self._recover(spider, dupefilter, frontier)
            frontier.begin()
        except BaseException:
            frontier.release()
            raise
        self._ended: list[Request] = []
        assert self.crawler is not None
        self.crawler.signals.connect(self._callback_ended, callback_ended)
        return opened

    def _dupefilter(self) -> BloomDupeFilter:
        if not isinstance(self.df, BloomDupeFilter):
            raise ParameterError(
                "`DUPEFILTER_CLASS` must be BloomDupeFilter for a durable crawl, got:"
                f" {type(self.df).__name__}",
                hint="set BLOOMTIDE_DURABLE = False to keep the filter you have",
                name="DUPEFILTER_CLASS",
                got=type(self.df).__name__,
                allowed="BloomDupeFilter",
            )
        return self.df

    def _begin(self, frontier: Frontier) -> None:
        assert self.dqdir is not None
        if frontier.new and any(Path(self.dqdir).iterdir()):
            frontier.release()
            frontier.path.unlink()
            raise ParameterError(
                f"the job in {Path(self.dqdir).parent} was begun without `BLOOMTIDE_DURABLE`",
                hint="BLOOMTIDE_DURABLE = False finishes it as begun; else take a new JOBDIR",
                name="BLOOMTIDE_DURABLE",
                got=True,
                allowed="as the job was begun",
            )
        if frontier.killed:
            shutil.rmtree(self.dqdir)
            Path(self.dqdir).mkdir()

    def _recover(self, spider: Spider, dupefilter: BloomDupeFilter, frontier: Frontier) -> None:
        count = 0
        dupefilter.recovering = True
        try:
            for data in frontier:
                super().enqueue_request(request_from_dict(pickle.loads(data), spider=spider))
                count += 1
        finally:
            dupefilter.recovering = False
        logger.info("bloomtide: the last run was killed; %d requests are asked for again", count)
        assert self.stats is not None
        self.stats.set_value("bloomtide/recovered", count)

    def enqueue_request(self, request: Request) -> bool:
        """As Scrapy's. Requests that are not to be filtered are written down too."""
        # Start requests come again by themselves.
        start = request.meta.get("is_start_request", False)
        if request.dont_filter and self.frontier is not None and not start:
            dupefilter = self._dupefilter()
            dupefilter.write_down(dupefilter.key_of(request), request)
        return super().enqueue_request(request)

    def next_request(self) -> Request | None:
        """As Scrapy's."""
        if self.frontier is not None:
            self._strike_off()
        return super().next_request()

    def _callback_ended(self, request: Request) -> None:
        self._strike_off()
        self._ended.append(request)

    def _strike_off(self) -> None:
        """Strikes off the requests whose callback ended and whose output was all taken in."""
        assert self.crawler is not None
        assert self.frontier is not None
        assert self.crawler.engine is not None
        slot = self.crawler.engine._slot
        waiting = []
        for request in self._ended:
            if slot is not None and request in slot.inprogress:
                waiting.append(request)
            else:
                self.frontier.done(self._dupefilter().key_of(request))
        self._ended = waiting

    def close(self, reason: str) -> Deferred[None] | None:
        """Saves everything; a finished crawl leaves no request behind."""
        finished = len(self) == 0
        closed = super().close(reason)
        if self.frontier is not None:
            self._strike_off()
            self.frontier.close(finished=finished)
            self.frontier = None
        return closed


class DoneMiddleware:
    """A spider middleware that tells when a callback has run to its end."""

    def __init__(self, crawler: Crawler) -> None:
        self._signals = crawler.signals

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def _tell(self, response: Response) -> None:
        self._signals.send_catch_log(callback_ended, request=response.request)

    def process_spider_output(self, response: Response, result: Iterable[Any]) -> Iterator[Any]:
        yield from result
        self._tell(response)

    async def process_spider_output_async(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        async for output in result:
            yield output
        self._tell(response)
