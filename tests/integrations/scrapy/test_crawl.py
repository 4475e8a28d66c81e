"""Real crawls of a local site by real Scrapy: the same pages, whatever happens on the way."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.crawl.local import ADDON, LocalSite
from bloomtide.integrations.scrapy.frontier import Frontier

PAGES = 400


@pytest.fixture
def site(tmp_path: Path) -> Iterator[LocalSite]:
    with LocalSite(PAGES, tmp_path) as site:
        yield site


def unfinished(job: Path) -> set[int]:
    """The pages on the list of requests that are not done."""
    frontier = Frontier(job / "bloomtide" / "pending.sqlite")
    requests = [pickle.loads(data) for data in frontier]
    frontier.release()
    return {int(request["url"].partition("n=")[2].partition("&")[0]) for request in requests}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        ADDON,
        # About 48 of the pages are called seen that were not (sigma 6): the port, and so the keys,
        # are others in every run.
        ADDON
        | {"BLOOMTIDE_VERIFY": "exact", "BLOOMTIDE_ERROR_RATE": 0.5, "BLOOMTIDE_CAPACITY": PAGES},
    ],
    ids=["scrapy's own", "default", "exact, with a bad filter"],
)
def test_every_page_is_fetched_once(site: LocalSite, settings: dict[str, Any]) -> None:
    code, stats = site.crawl(settings)
    assert code == 0
    assert sorted(site.fetched()) == list(range(PAGES))
    assert stats["dupefilter/filtered"] > 3 * PAGES
    if "BLOOMTIDE_VERIFY" in settings:
        assert stats["bloomtide/rescued"] > 0


@pytest.mark.slow
def test_killed_anywhere_again_and_again_no_page_is_lost_and_none_that_was_done_comes_twice(
    site: LocalSite, tmp_path: Path
) -> None:
    job = tmp_path / "job"
    settings = ADDON | {"JOBDIR": str(job), "BLOOMTIDE_VERIFY": "exact"}
    everything: list[int] = []
    not_done: set[int] = set()
    for end in (
        "SIGKILL parse 100",
        "SIGKILL queue 60",
        "SIGKILL log 50",
        "SIGKILL done 40",
        "SIGINT parse 100",  # stopped in order: Scrapy's own queue has the rest
        "SIGKILL parse 200",
        "",
    ):
        code, stats = site.crawl(settings, end=end)
        if "SIGKILL" in end:
            assert code == -9
        else:
            assert stats["finish_reason"] == ("shutdown" if end else "finished")
        fetched = site.fetched()
        site.forget()
        assert len(fetched) == len(set(fetched)), f"twice in the run {end}"
        assert set(fetched) & set(everything) <= not_done, f"done, and again in the run {end}"
        everything += fetched
        not_done = unfinished(job)
        assert len(fetched) < PAGES
    assert set(everything) == set(range(PAGES))
    assert not_done == set()
    assert len(everything) <= PAGES + 5 * 100, "more than what can be on its way at each kill"


def test_without_the_list_a_killed_crawl_loses_pages(site: LocalSite, tmp_path: Path) -> None:
    settings = ADDON | {"JOBDIR": str(tmp_path / "job"), "BLOOMTIDE_DURABLE": False}
    assert site.crawl(settings, end="SIGKILL parse 600")[0] == -9
    site.crawl(settings)
    assert len(set(site.fetched())) < PAGES, "the list and its scheduler are not needed any more"


def test_the_filter_alone_resumes_a_crawl_that_was_stopped_in_order(
    site: LocalSite, tmp_path: Path
) -> None:
    settings = {
        "DUPEFILTER_CLASS": "bloomtide.integrations.scrapy.BloomDupeFilter",
        "JOBDIR": str(tmp_path / "job"),
    }
    _, stats = site.crawl(settings, end="SIGINT parse 300")
    assert stats["finish_reason"] == "shutdown"
    _, stats = site.crawl(settings)
    assert stats["finish_reason"] == "finished"
    assert sorted(site.fetched()) == list(range(PAGES))


def test_a_crawl_begun_with_scrapys_queue_is_not_taken_over(
    site: LocalSite, tmp_path: Path
) -> None:
    settings = ADDON | {"JOBDIR": str(tmp_path / "job")}
    site.crawl(settings | {"BLOOMTIDE_DURABLE": False}, end="SIGINT parse 300")
    _, stats = site.crawl(settings | {"LOG_LEVEL": "CRITICAL"})
    assert stats.get("finish_reason") != "finished"
    _, stats = site.crawl(settings | {"BLOOMTIDE_DURABLE": False})
    assert stats["finish_reason"] == "finished"
    assert sorted(site.fetched()) == list(range(PAGES))


def test_crawls_of_several_processes_share_the_pages(site: LocalSite, tmp_path: Path) -> None:
    settings = ADDON | {"BLOOMTIDE_SHARED": str(tmp_path / "shared"), "BLOOMTIDE_CAPACITY": 1000}
    crawls = [site.begin(settings, start=start)[0] for start in (1, 2)]
    assert [process.wait() for process in crawls] == [0, 0]
    times = Counter(site.fetched())
    assert set(times) | {0} == set(range(PAGES))
    # Two may add one page at the same moment, and then both fetch it.
    assert sum(times.values()) <= PAGES + 20
