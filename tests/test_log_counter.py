"""`LogCounter`: the same lists as adding each record from Python, without Python for a line."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bloomtide import HotList, LogCounter, LogReader, TimeDecayingBloomFilter
from bloomtide.errors import OverfullWarning, ParameterError
from bloomtide.stream import web_log
from tests.cli.access_log import hit

LOG = b"".join(web_log(5_000, pages=300, per_second=2))


def lists() -> list[HotList]:
    return [HotList(50, half_life="5m"), HotList(1000, half_life="1h"), HotList(20)]


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("size", [77, 4096, len(LOG)])
@pytest.mark.parametrize("by", ["path", "ip", "status", "referer", "host"])
def test_a_counted_log_equals_its_records_added_one_by_one(by: str, size: int) -> None:
    counted, added = lists(), lists()
    counter, reader = LogCounter(*counted, by=by), LogReader()
    for piece in pieces(LOG, size):
        counter.feed(memoryview(piece))
    counter.finish()
    records = [*reader.feed(LOG), *reader.finish()]
    keys = [(getattr(record, by), record.time) for record in records]
    for hot in added:
        for key, time in keys:
            if key is not None:
                hot.add(key, at=time)
    assert counted == added
    report = counter.report()
    assert (report.lines, report.parsed, report.skipped) == (5_000, 5_000, 0)
    assert report.counted == sum(key is not None for key, _ in keys)
    assert report.counted + report.without == 5_000


@pytest.mark.parametrize("layout", ["basic", "optimized"])
def test_a_log_goes_into_a_fading_filter_and_a_hot_list_at_once(layout: Any) -> None:
    def made() -> tuple[TimeDecayingBloomFilter, HotList]:
        fading = TimeDecayingBloomFilter(1000, 0.01, half_life="5m", storage=layout)
        return fading, HotList(50, half_life="5m")

    counted, added = made(), made()
    counter = LogCounter(*counted)
    for piece in pieces(LOG, 4096):
        counter.feed(piece)
    counter.finish()
    reader = LogReader()
    for record in [*reader.feed(LOG), *reader.finish()]:
        assert record.path is not None
        for one in added:
            one.add(record.path, at=record.time)
    assert counted == added


def test_counters_of_several_threads_share_their_lists() -> None:
    first, second = HotList(1000), HotList(1000)

    def count(order: tuple[HotList, HotList]) -> None:
        counter = LogCounter(*order)
        for piece in pieces(LOG, 5_000):
            counter.feed(piece)
            counter.report()
        counter.finish()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, [(first, second), (second, first)] * 4))
    assert first.total() == second.total() == 40_000
    assert first.top(1)[0].count == second.top(1)[0].count


def test_lines_without_a_time_are_of_the_moment_that_is_told() -> None:
    hot = HotList(10, half_life=60)
    counter = LogCounter(hot, format="bare")
    counter.feed(b"/a\n/a\n", now=1020)
    counter.feed(b"/b\n", now=1080)
    assert [(item.key, item.count) for item in hot.top(at=1080)] == [(b"/a", 1), (b"/b", 1)]


def test_bare_lines_are_held_back_until_they_are_settled() -> None:
    hot = HotList(10)
    counter = LogCounter(hot)
    counter.feed(b"/a\n/a\n")
    assert (counter.report().format, len(hot)) == (None, 0)
    counter.settle()
    assert (counter.report().format, hot.count("/a")) == ("BARE", 2)


def test_a_time_centuries_away_is_skipped() -> None:
    hot = HotList(10, half_life="1h")
    counter = LogCounter(hot)
    counter.feed(hit("/a") + hit("/far").replace(b"2024", b"2424") + hit("/b"))
    counter.finish()
    report = counter.report()
    assert [(bad.number, bad.reason) for bad in report.bad] == [(2, "time")]
    assert report.counted == 2


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"by": "agent"}, "by"),
        ({"until": "2024-05-01T12:00:00"}, "until"),
        ({"until": float("nan")}, "until"),
        ({"format": "nginx"}, "format"),
        ({"json_map": "x"}, "json_map"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name(arguments: dict[str, object], name: str) -> None:
    with pytest.raises(ParameterError) as refusal:
        LogCounter(HotList(5), **arguments)  # type: ignore[arg-type]
    assert f"`{name}`" in str(refusal.value)


def test_what_is_no_list_or_no_bytes_is_refused() -> None:
    hot = HotList(5)
    for into in (["/a"], [hot, hot], [hot, None]):
        with pytest.raises(ParameterError, match="`into`"):
            LogCounter(*into)
    for reader in (LogCounter(hot), LogReader()):
        with pytest.raises(ParameterError, match="`data`"):
            reader.feed("text")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="`now`"):
        LogCounter(hot).feed(b"/a\n", now="today")
    assert len(hot) == 0


def test_a_fading_filter_that_a_log_overfills_warns_once() -> None:
    fading = TimeDecayingBloomFilter(100, 0.01, half_life="1d")
    counter = LogCounter(fading)
    log = b"".join(hit(f"/{n}", n / 100) for n in range(3000))
    with pytest.warns(OverfullWarning, match="made for 100") as found:
        list(map(counter.feed, pieces(log, 20_000)))
    assert len(found) == 1
