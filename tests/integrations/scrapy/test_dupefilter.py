"""`BloomDupeFilter` calls the same requests equal as Scrapy's own filter, and speaks as it does."""

from __future__ import annotations

import logging
import os
import random
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.dupefilters import BaseDupeFilter, RFPDupeFilter
from scrapy.utils.test import get_crawler

from bloomtide.durable.policy import Sync
from bloomtide.errors import ParameterError, SnapshotError, StorageError
from bloomtide.integrations.scrapy import Addon, BloomDupeFilter, DoneMiddleware, DurableScheduler
from bloomtide.integrations.scrapy.frontier import Frontier
from tests.waiting import until


def crawler_with(**settings: Any) -> Crawler:
    return get_crawler(Spider, settings_dict=settings)


def opened(crawler: Crawler) -> BloomDupeFilter:
    dupefilter = BloomDupeFilter.from_crawler(crawler)
    dupefilter.open()
    return dupefilter


def stat(crawler: Crawler, name: str) -> Any:
    assert crawler.stats is not None
    return crawler.stats.get_value(name)


def requests(count: int) -> list[Request]:
    """Requests of which many are equal: in another order of the query, with another fragment."""
    chance = random.Random(3)
    made = []
    for _ in range(count):
        query = [f"a={chance.randrange(20)}", f"b={chance.randrange(3)}"]
        chance.shuffle(query)
        made.append(
            Request(
                f"http://example.org/{chance.randrange(4)}?{'&'.join(query)}#{chance.random()}",
                method=chance.choice(["GET", "POST"]),
                body=chance.choice([b"", b"x"]),
                headers={"X": str(chance.random())},
            )
        )
    return made


@pytest.mark.parametrize(
    "settings",
    [{}, {"BLOOMTIDE_VERIFY": "exact"}, {"BLOOMTIDE_REVISIT": "7d"}, {"JOBDIR": "job"}],
    ids=str,
)
def test_its_verdicts_are_those_of_scrapys_own_filter(
    settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ours = opened(crawler_with(**settings))
    theirs = RFPDupeFilter.from_crawler(crawler_with())
    verdicts = [ours.request_seen(request) for request in requests(3000)]
    assert verdicts == [theirs.request_seen(request) for request in requests(3000)]
    assert 500 < sum(verdicts) < 2900
    ours.close("finished")


class LengthFingerprinter:
    """Calls URLs equal if they are equally long; its fingerprints have a length of their own."""

    def fingerprint(self, request: Request) -> bytes:
        return b"%d" % len(request.url)


def test_the_projects_fingerprinter_is_asked() -> None:
    ours = opened(crawler_with(REQUEST_FINGERPRINTER_CLASS=LengthFingerprinter))
    assert not ours.request_seen(Request("http://example.org/a"))
    assert ours.request_seen(Request("http://example.org/b"))
    assert not ours.request_seen(Request("http://example.org/bb"))
    ours.close("finished")


@pytest.mark.parametrize(("debug", "lines"), [(False, 1), (True, 3)])
def test_it_logs_and_counts_what_it_filters_as_scrapys_own_does(
    debug: bool, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    said = []
    for cls in (BloomDupeFilter, RFPDupeFilter):
        crawler = crawler_with(DUPEFILTER_DEBUG=debug)
        spider = Spider.from_crawler(crawler, name="test")
        dupefilter = cls.from_crawler(crawler)
        dupefilter.open()
        caplog.clear()
        with caplog.at_level(logging.DEBUG, "scrapy.dupefilters"):
            for _ in range(3):
                dupefilter.log(Request("http://example.org/"), spider)
        said.append([record.getMessage() for record in caplog.records])
        assert stat(crawler, "dupefilter/filtered") == 3
        dupefilter.close("finished")
    assert said[0] == said[1]
    assert len(said[0]) == lines


def test_the_collector_has_what_the_filter_is_like() -> None:
    crawler = crawler_with(BLOOMTIDE_CAPACITY=5000, BLOOMTIDE_VERIFY="exact")
    ours = opened(crawler)
    for number in range(2500):
        ours.request_seen(Request(f"http://example.org/{number}"))
    assert stat(crawler, "bloomtide/items") == pytest.approx(2000, rel=0.05), "looked at meanwhile"
    ours.close("finished")
    assert stat(crawler, "bloomtide/items") == pytest.approx(2500, rel=0.05)
    assert stat(crawler, "bloomtide/bytes") > 5000
    assert 0 < stat(crawler, "bloomtide/fill") < 1
    assert 0 < stat(crawler, "bloomtide/estimated_error") < 1e-3
    assert stat(crawler, "bloomtide/rescued") >= 0


def test_more_pages_than_expected_make_it_grow_and_keep_its_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    crawler = crawler_with(BLOOMTIDE_CAPACITY=500, BLOOMTIDE_ERROR_RATE=0.001)
    ours = opened(crawler)
    new = sum(not ours.request_seen(Request(f"http://example.org/{n}")) for n in range(5000))
    ours.close("finished")
    assert new >= 4980
    assert stat(crawler, "bloomtide/estimated_error") <= 0.001
    assert caplog.records == []


def test_it_warns_once_when_a_shared_filter_errs_more_than_it_may(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    crawler = crawler_with(
        BLOOMTIDE_SHARED=str(tmp_path / "shared"),
        BLOOMTIDE_CAPACITY=500,
        BLOOMTIDE_ERROR_RATE=0.001,
    )
    ours = opened(crawler)
    for number in range(5000):
        ours.request_seen(Request(f"http://example.org/{number}"))
    ours.close("finished")
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "BLOOMTIDE_ERROR_RATE" in record.getMessage()
    assert "BLOOMTIDE_CAPACITY" in record.getMessage()
    assert stat(crawler, "bloomtide/estimated_error") > 0.001


def test_a_bad_setting_stops_the_crawl_before_it_begins() -> None:
    with pytest.raises(ParameterError, match="BLOOMTIDE_CAPACITY"):
        BloomDupeFilter.from_crawler(crawler_with(BLOOMTIDE_CAPACITY=-1))
    with pytest.raises(ParameterError, match="BLOOMTIDE_CAPACTY"):
        BloomDupeFilter.from_crawler(crawler_with(BLOOMTIDE_CAPACTY=1))


# --- the add-on -------------------------------------------------------------------------------


def test_the_add_on_sets_the_filter_and_with_a_job_the_scheduler(tmp_path: Path) -> None:
    settings = crawler_with(ADDONS={Addon: 500}).settings
    assert settings["DUPEFILTER_CLASS"] is BloomDupeFilter
    assert settings["SCHEDULER"] != DurableScheduler
    settings = crawler_with(ADDONS={Addon: 500}, JOBDIR=str(tmp_path)).settings
    assert settings["SCHEDULER"] is DurableScheduler
    assert settings.getdict("SPIDER_MIDDLEWARES") == {DoneMiddleware: 0}
    settings = crawler_with(
        ADDONS={Addon: 500}, JOBDIR=str(tmp_path), BLOOMTIDE_DURABLE=False
    ).settings
    assert settings["SCHEDULER"] != DurableScheduler


class OwnScheduler(Scheduler):
    """A project's own."""


def test_the_add_on_leaves_what_a_project_has_set_itself(tmp_path: Path) -> None:
    settings = crawler_with(
        ADDONS={Addon: 500}, JOBDIR=str(tmp_path), SCHEDULER=OwnScheduler
    ).settings
    assert settings["SCHEDULER"] is OwnScheduler
    assert settings["DUPEFILTER_CLASS"] is BloomDupeFilter
    settings = crawler_with(
        ADDONS={Addon: 500}, JOBDIR=str(tmp_path), DUPEFILTER_CLASS=BaseDupeFilter
    ).settings
    assert settings["DUPEFILTER_CLASS"] is BaseDupeFilter
    assert settings["SCHEDULER"] != DurableScheduler


# --- the list of requests ---------------------------------------------------------------------


def test_the_list_keeps_what_is_not_done_and_knows_of_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "bloomtide" / "pending"
    frontier = Frontier(path)
    assert (frontier.new, frontier.killed) == (True, False)
    frontier.begin()
    for number in range(1200):
        frontier.add(b"%d" % number, b"request %d" % number)
    frontier.add(b"7", b"another of the same key")
    for number in range(0, 1200, 2):
        frontier.done(b"%d" % number)
    frontier.release()  # as a kill does
    frontier = Frontier(path)
    assert (frontier.new, frontier.killed) == (False, True)
    assert list(frontier) == [b"request %d" % number for number in range(1, 1200, 2)]
    frontier.close(finished=False)
    frontier = Frontier(path)
    assert not frontier.killed
    assert len(frontier) == 600
    frontier.close(finished=True)
    frontier = Frontier(path)
    assert len(frontier) == 0
    frontier.release()


@pytest.mark.parametrize(("policy", "syncs"), [("everysec", 1), ("no", 0)])
def test_the_list_is_forced_to_disk_as_the_policy_says(
    tmp_path: Path, policy: Sync, syncs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    frontier = Frontier(tmp_path / "pending", policy)
    called: list[int] = []
    monkeypatch.setattr(os, "fsync", called.append)
    frontier.add(b"1", b"request")
    frontier.add(b"2", b"request")
    if syncs:
        until(lambda: called)  # within a second, without being asked
        frontier._sync()
    frontier.release()
    assert len(called) == syncs, "what is on the disk is not brought there again"
    always = Frontier(tmp_path / "pending", "always")
    assert always._database.execute("PRAGMA synchronous").fetchone() == (2,)
    always.release()


def test_a_damaged_list_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "pending").write_bytes(b"no database" * 1000)
    with pytest.raises(SnapshotError, match="remove"):
        Frontier(tmp_path / "pending")


def test_a_request_that_is_asked_for_again_goes_on_and_counts_as_seen() -> None:
    ours = opened(crawler_with())
    known, unknown = Request("http://example.org/known"), Request("http://example.org/unknown")
    ours.request_seen(known)
    ours.recovering = True
    assert not ours.request_seen(known)
    assert not ours.request_seen(unknown)
    ours.recovering = False
    assert ours.request_seen(known)
    assert ours.request_seen(unknown)
    ours.close("finished")


def test_a_list_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    frontier = Frontier(tmp_path / "pending")
    frontier._database.execute("PRAGMA query_only = 1")
    with pytest.raises(StorageError, match="pending"):
        frontier.add(b"key", b"request")
    frontier.release()


def test_a_request_that_cannot_be_written_down_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    crawler = crawler_with()
    ours = opened(crawler)
    ours.frontier = Frontier(tmp_path / "pending")
    crawler.spider = Spider.from_crawler(crawler, name="test")
    for number in range(3):
        request = Request(f"http://example.org/{number}", callback=print)
        assert not ours.request_seen(request)
    assert stat(crawler, "bloomtide/not_durable") == 3
    assert len([line for line in caplog.messages if "cannot be written down" in line]) == 1
    assert len(ours.frontier) == 0
    assert not ours.request_seen(Request("http://example.org/3"))
    assert len(ours.frontier) == 1
    ours.frontier.release()
    ours.close("finished")
