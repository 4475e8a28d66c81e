"""A monitor answers as its structures do when they are fed one by one, and as the truth allows."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bloomtide
from bloomtide import Monitor
from bloomtide.errors import OverfullWarning, ParameterError
from bloomtide.history import History
from tests.monitor.streams import START, Event, columns, events, exact, log_line

SMALL: dict[str, Any] = {"capacity": 2000, "hot": 40}
NOW = START + 10_000


def clock() -> float:
    return NOW


def fed(stream: list[Event], **settings: Any) -> Monitor:
    monitor = Monitor.open(clock=clock, **SMALL | settings)
    keys, counts, times = columns(stream)
    for first in range(0, len(stream), 700):
        part = slice(first, first + 700)
        monitor.add_many(keys[part], counts[part], times[part])
    return monitor


def test_every_structure_is_as_if_it_had_been_fed_alone() -> None:
    stream = events(5000)
    monitor = fed(stream)
    parts = monitor.structures
    seen = bloomtide.BloomFilter(2000, 0.01)
    counts = bloomtide.PartitionedDynamicCountFilter(2000, 0.01)
    heat = bloomtide.TimeDecayingBloomFilter(2000, 0.01, half_life="10m", storage="optimized")
    hot = bloomtide.HotList(40, half_life="10m")
    new = 0
    for key, count, at in stream:
        new += seen.add(key)
        counts.add(key, count)
        heat.add(key, count, at)
        hot.add(key, count, at)
    assert (parts.seen, parts.counts, parts.heat, parts.hot) == (seen, counts, heat, hot)
    stats = monitor.stats()
    assert stats.events == sum(count for _, count, _ in stream)
    assert stats.new == new
    latest, late = 0.0, 0
    for _, _, at in stream:
        late += at < latest
        latest = max(latest, at)
    assert (stats.late, stats.time) == (late, latest)


def test_counts_are_never_below_the_truth_and_the_bounds_hold() -> None:
    stream = events(4000, seed=1)
    monitor, truth = fed(stream), exact(stream)
    for key, count in truth.items():
        assert monitor.seen(key)
        estimate = monitor.count(key)
        assert estimate.upper is not None
        assert count <= estimate.value <= estimate.upper
    wrong = sum(monitor.count(key).value != count for key, count in truth.items())
    assert wrong <= 0.02 * len(truth)


def test_what_is_hot_is_bounded_by_the_decayed_truth() -> None:
    stream = events(4000, seed=2, late=0)
    monitor = fed(stream)
    now = monitor.stats().time
    assert now is not None
    decayed: Counter[str] = Counter()
    for key, count, at in stream:
        decayed[key] += count * 2 ** (-(now - at) / 600)  # type: ignore[assignment]
    for item in monitor.top(40, at=now):
        assert item.lower <= decayed[str(item.key)] * (1 + 1e-9)
        assert item.count >= decayed[str(item.key)] * (1 - 1e-9)
    hottest = {key for key, count in decayed.items() if count > sum(decayed.values()) / 40}
    assert hottest <= {item.key for item in monitor.top(40, at=now)}
    for key in list(decayed)[:50]:
        heat = monitor.heat(key, at=now)
        assert heat.upper is not None
        assert heat.lower <= heat.value <= heat.upper
        assert heat.lower <= decayed[key] * (1 + 1e-9)


def test_the_history_is_as_if_it_had_been_fed_alone(tmp_path: Path) -> None:
    stream = events(4000, seed=3)
    keys, counts, times = columns(stream)
    with (
        Monitor.open(tmp_path / "monitor", clock=clock, **SMALL) as monitor,
        History.open(tmp_path / "alone", "1m", clock=clock) as alone,
    ):
        assert monitor.history is not None
        monitor.add_many(keys, counts, times)
        alone.add_many(keys, counts, at=times)
        for key in ("/page/1", "/page/2", "/page/77", "/nothing"):
            for start, end in ((START, START + 300), (START - 3600, START + 60), (None, None)):
                assert monitor.history.count(key, start, end) == alone.count(key, start, end)
        assert monitor.history.top(n=5) == alone.top(n=5)
        assert monitor.history.total().upper == sum(counts)


@pytest.mark.parametrize("size", [1, 37, 1 << 20])
def test_lines_of_a_log_count_as_their_keys_do(size: int) -> None:
    lines = 3000 if size > 1 else 300
    stream = [(key, 1, float(int(at))) for key, _, at in events(lines, seed=4)]
    data = b"".join(log_line(key, int(at)) for key, _, at in stream)
    monitor = Monitor.open(clock=clock, **SMALL)
    feed = monitor.log()
    new = sum(feed.feed(data[first : first + size]) for first in range(0, len(data), size))
    new += feed.finish()
    batch = fed(stream)
    report = feed.report()
    assert (report.lines, report.counted, report.skipped) == (lines, lines, 0)
    assert new == monitor.stats().new == batch.stats().new
    assert monitor.digest() == batch.digest()


@pytest.mark.parametrize("form", ["list", "numpy", "arrow", "generator"])
def test_a_batch_is_the_same_in_every_form(form: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    keys = [key for key, _, _ in events(2000, seed=5)]
    forms: dict[str, Any] = {
        "list": lambda: keys,
        "numpy": lambda: np.array(keys),
        "arrow": lambda: pyarrow.array(keys),
        "generator": lambda: (key for key in keys),
    }
    one, many = Monitor.open(clock=clock, **SMALL), Monitor.open(clock=clock, **SMALL)
    new = sum(one.add(key, at=START) for key in keys)
    assert many.add_many(forms[form](), at=START) == new
    assert one.structures == many.structures


def test_a_long_batch_goes_in_by_parts_and_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    monkeypatch.setattr("bloomtide.monitor.batches.ROWS", 100)
    keys, counts, times = columns(events(1234, seed=6))
    expected = Monitor.open(clock=clock, **SMALL)
    for key, count, at in zip(keys, counts, times, strict=True):
        expected.add(key, count, at)
    for forms in (
        (keys, counts, times),
        (np.array(keys), np.array(counts), np.array(times)),
        (pyarrow.array(keys), pyarrow.array(counts), pyarrow.array(times)),
    ):
        monitor = Monitor.open(clock=clock, **SMALL)
        monitor.add_many(*forms)
        assert monitor.structures == expected.structures
        assert monitor.stats().events == sum(counts)


def test_a_bad_row_changes_nothing() -> None:
    monitor = fed(events(100))
    before = monitor.digest()
    for keys, counts, at in (
        (["a", None], None, START),
        (["a", 1.5], None, START),
        (["a", "b"], [1, 0], START),
        (["a", "b"], [1], START),
        (["a", "b"], None, [START, -1]),
        (["a", "b"], None, [START]),
    ):
        with pytest.raises((ValueError, TypeError)):
            monitor.add_many(keys, counts, at)
    with pytest.raises(ValueError, match="at least 1"):
        monitor.add("a", 0)
    assert monitor.digest() == before
    assert not monitor.seen("b")


def test_a_monitor_of_urls_knows_one_address_in_every_spelling() -> None:
    monitor = Monitor.open(seen="url", clock=clock, **SMALL)
    assert monitor.add("http://example.org/a")
    assert not monitor.add("HTTP://EXAMPLE.org:80/a")
    assert monitor.seen("http://example.org/a#top")
    with pytest.raises(ParameterError, match="url"):
        monitor.add("no url")
    feed = monitor.log(by="referer")
    for referer in (b"http://b.example/", b"about"):
        feed.feed(log_line("/", START).replace(b'"-"', b'"' + referer + b'"'))
    feed.finish()
    assert monitor.seen("http://b.example/")
    assert feed.refused == 1


def test_a_question_it_was_not_made_for_is_refused_by_name() -> None:
    monitor = Monitor.open(counts=False, hot=None, seen=None, clock=clock)
    for name, ask in (
        ("seen", monitor.seen), ("counts", monitor.count), ("hot", monitor.heat),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=f"`{name}`"):
            ask("a")
    assert monitor.history is None
    with pytest.raises(ParameterError, match="history"):
        Monitor.open(history=True)


def test_a_wrong_number_of_keys_is_refused() -> None:
    monitor = fed(events(10))
    for ask in (monitor.top, monitor.hot):
        with pytest.raises(ParameterError):
            ask(-1)


def test_the_public_name_is_the_class() -> None:
    assert bloomtide.Monitor is Monitor


def test_a_monitor_that_is_far_too_small_warns_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the warning is an error: the block counts, and nothing may be half done."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", OverfullWarning)
        monitor = fed(events(300), capacity=100)
        monitor.add_many([f"/{n}" for n in range(3000)])
    assert 1 <= len(found) <= 3, "each structure once"
    with warnings.catch_warnings():
        warnings.simplefilter("error", OverfullWarning)
        told: list[object] = []
        monkeypatch.setattr(sys, "unraisablehook", told.append)
        strict = fed(events(300), capacity=100)
        strict.add_many([f"/{n}" for n in range(3000)])
    assert len(told) == len(found)
    assert strict.stats().events == monitor.stats().events
