"""What feeds a monitor: every line once, through rotation, crashes and lines of ten megabytes."""

from __future__ import annotations

import gzip
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomtide import Monitor
from bloomtide.cli.watch import logs
from bloomtide.cli.watch.logs import Logs, log_sources
from bloomtide.cli.watch.source import Feeder
from bloomtide.records import LogReport
from tests.monitor.streams import START, events, log_line
from tests.waiting import until

OPTIONS: dict[str, Any] = {"by": "path", "query": True, "format": None, "json_map": None}


@pytest.fixture
def monitor(tmp_path: Path) -> Iterator[Monitor]:
    with open_monitor(tmp_path) as opened:
        yield opened


def open_monitor(path: Path) -> Monitor:
    return Monitor.open(path / "monitor", capacity=2000, error_rate=1e-7, hot=20)


def lines_of(n: int, seed: int = 0) -> list[bytes]:
    return [log_line(key, int(at)) for key, _, at in events(n, seed)]


def truth(lines: list[bytes]) -> Counter[str]:
    return Counter(line.split(b'"')[1].split()[1].decode() for line in lines)


def require(monitor: Monitor, lines: list[bytes]) -> None:
    """Each of these lines counts once."""
    assert monitor.stats().events == len(lines)
    for key, count in truth(lines).items():
        assert monitor.count(key).value == count, key


def read(path: Path, monitor: Monitor) -> list[LogReport]:
    logs = Logs([str(path)], OPTIONS, follow=False)
    logs.run(monitor, lambda: False)
    return [report for _, report in logs.reports()]


def append(file: Path, data: bytes) -> None:
    with file.open("ab") as opened:
        opened.write(data)


def test_what_was_read_is_not_read_again(tmp_path: Path) -> None:
    file, lines = tmp_path / "a.log", lines_of(500)
    file.write_bytes(b"".join(lines[:300]))
    with open_monitor(tmp_path) as monitor:
        read(file, monitor)
        read(file, monitor)
        require(monitor, lines[:300])
    append(file, b"".join(lines[300:]))
    with open_monitor(tmp_path) as monitor:
        [report] = read(file, monitor)
        require(monitor, lines)
        assert report.lines == 200


def test_another_file_of_the_same_name_is_read_from_its_begin(
    tmp_path: Path, monitor: Monitor
) -> None:
    file, lines = tmp_path / "a.log", lines_of(400)
    file.write_bytes(b"".join(lines[:200]))
    read(file, monitor)
    file.unlink()
    file.write_bytes(b"".join(lines[200:]))
    read(file, monitor)
    require(monitor, lines)


def test_a_last_line_without_its_end_counts_when_it_is_complete(
    tmp_path: Path, monitor: Monitor
) -> None:
    file, lines = tmp_path / "a.log", lines_of(40)
    whole = b"".join(lines)
    file.write_bytes(whole[:-7])
    for _ in range(2):
        read(file, monitor)
        require(monitor, lines[:-1])
    append(file, whole[-7:])
    read(file, monitor)
    require(monitor, lines)
    packed = tmp_path / "b.log.gz"
    packed.write_bytes(gzip.compress(whole + lines[0][:-1]))
    for _ in range(2):
        read(packed, monitor)
        require(monitor, lines)


@pytest.mark.parametrize("chunk", [100, 1 << 20])
def test_a_packed_log_goes_on_where_it_was_left(
    tmp_path: Path, monitor: Monitor, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr("bloomtide.cli.sources.CHUNK", chunk)
    file, lines = tmp_path / "a.log.gz", lines_of(300)
    file.write_bytes(gzip.compress(b"".join(lines)))
    if chunk < 1 << 20:
        seen = 0

        def after_some() -> bool:
            nonlocal seen
            seen += 1
            return seen > 7

        Logs([str(file)], OPTIONS, follow=False).run(monitor, after_some)
        assert 0 < monitor.stats().events < len(lines)
    read(file, monitor)
    require(monitor, lines)
    read(file, monitor)
    require(monitor, lines)


def test_a_line_of_ten_megabytes_is_skipped_and_told(tmp_path: Path, monitor: Monitor) -> None:
    file, lines = tmp_path / "a.log", lines_of(100)
    long = log_line("/" + "a" * 10_000_000, START)
    file.write_bytes(b"".join([*lines[:50], long, *lines[50:]]))
    [report] = read(file, monitor)
    assert (report.counted, report.skipped) == (100, 1)
    assert report.bad[0].reason == "length"
    require(monitor, lines)


def test_a_log_that_is_rotated_and_vanishes_loses_no_line(
    tmp_path: Path, monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "PAUSE", 0.01)
    file, lines = tmp_path / "a.log", lines_of(400)
    file.write_bytes(b"".join(lines[:100]))
    feeder = Feeder(Logs([str(file)], OPTIONS, follow=True), monitor)
    feeder.start()
    try:
        until(lambda: monitor.stats().events == 100)
        append(file, b"".join(lines[100:150]))
        file.rename(tmp_path / "a.log.1")
        until(lambda: feeder.source.waiting != "")
        append(tmp_path / "a.log.1", b"".join(lines[150:200]))
        until(lambda: monitor.stats().events == 200)
        file.write_bytes(b"".join(lines[200:]))
        until(lambda: monitor.stats().events == 400 and feeder.source.waiting == "")
        half = lines[0][: len(lines[0]) // 2]
        append(file, half)
    finally:
        feeder.stop()
    assert feeder.problem is None
    require(monitor, lines)
    append(file, lines[0][len(half) :])
    read(file, monitor)
    require(monitor, [*lines, lines[0]])


def test_two_logs_at_once_count_together(tmp_path: Path, monitor: Monitor) -> None:
    lines = lines_of(2000)
    for number in range(2):
        (tmp_path / f"{number}.log").write_bytes(b"".join(lines[number::2]))
    found = log_sources([str(tmp_path / "*.log")], follow=False, options=OPTIONS)
    feeders = [Feeder(source, monitor) for source in found]
    for feeder in feeders:
        feeder.start()
    assert all(feeder.wait(30) for feeder in feeders)
    require(monitor, lines)
    names = [name for source in found for name, _ in source.reports()]
    assert names == [str(tmp_path / f"{n}.log") for n in range(2)]


@pytest.mark.parametrize("follow", [False, True])
def test_a_log_that_is_not_there_is_named_and_the_others_are_read(
    tmp_path: Path, monitor: Monitor, capsys: pytest.CaptureFixture[str], follow: bool
) -> None:
    lines = lines_of(30)
    (tmp_path / "a.log").write_bytes(b"".join(lines))
    names = [str(tmp_path / name) for name in ("gone.log", "nothing*", "a.log")]
    [source] = log_sources(names, follow=follow, options=OPTIONS, tell=True)
    told = ""

    def stopping() -> bool:
        nonlocal told
        told += capsys.readouterr().err
        return names[0] in told and names[1] in told

    source.run(monitor, stopping)
    told += capsys.readouterr().err
    assert all(name in told for name in names[:2])
    assert len(source.problems) == (0 if follow else 2)
    require(monitor, lines)


def test_a_source_that_fails_ends_alone_and_is_told(tmp_path: Path, monitor: Monitor) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(lines_of(1)[0])
    source = Logs([str(file)], OPTIONS, follow=False)
    file.unlink()
    feeder = Feeder(source, monitor)
    feeder.start()
    assert feeder.wait(20)
    [problem] = feeder.problems()
    assert str(file) in problem.message


def test_lines_that_were_not_counted_are_told_after_the_first_reading(
    tmp_path: Path, monitor: Monitor, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"".join(lines_of(30)) + b"what?\n")
    Logs([str(file)], OPTIONS | {"by": "host"}, follow=False, tell=True).run(monitor, lambda: False)
    told = capsys.readouterr().err
    assert "lines skipped: 1; the first:" in told
    assert "what?" in told
    assert "lines without a host: 30" in told


def test_events_from_the_future_count_as_of_now(tmp_path: Path) -> None:
    now = START
    monitor = Monitor.open(clock=lambda: now, capacity=1000)
    feed = monitor.log()
    feed.feed(log_line("/a", START - 60) + log_line("/b", START + 80_000_000))
    feed.finish()
    assert monitor.stats().ahead == 1
    assert monitor.stats().time == now
    assert monitor.heat("/a").value > 0.9  # had it been believed, this would be zero
    assert monitor.heat("/b").value > 0.9
    monitor.add("c", at=START + 10_000)
    assert monitor.stats().aside == 1, "neither the clock nor other events confirm it"
    assert monitor.stats().time == now


def test_a_clock_that_jumps_back_makes_no_event_late() -> None:
    now = float(START)
    monitor = Monitor.open(clock=lambda: now, capacity=1000)
    monitor.add("a")
    now -= 86_400
    monitor.add("a")
    monitor.add_many(["a", "b"])
    stats = monitor.stats()
    assert (stats.late, stats.time, stats.events) == (0, float(START), 4)
    assert monitor.heat("a").value == 3
    assert monitor.now() == START
    now += 2 * 86_400
    assert monitor.heat("a").value < 1e-9


def test_questions_are_answered_while_events_come(monitor: Monitor) -> None:
    keys = [f"/page/{i % 50}" for i in range(5000)]
    done = threading.Event()

    def feed() -> None:
        for batch in range(20):
            monitor.add_many(keys, at=START + batch)
        done.set()

    thread = threading.Thread(target=feed)
    thread.start()
    asked = 0
    while not done.is_set() or not asked:
        assert len(monitor.top(5)) <= 5
        assert monitor.hot(5) is not None
        assert monitor.heat("/page/1").lower >= 0
        monitor.pulse()
        asked += 1
    thread.join()
    assert monitor.stats().events == 100_000
