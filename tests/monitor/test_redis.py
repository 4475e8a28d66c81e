"""Redis Streams into a monitor, with a real server: each entry counts once, whatever was killed."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bloomtide import Monitor
from bloomtide.cli.console import CommandError
from bloomtide.cli.logs import told
from bloomtide.cli.watch.source import Feeder
from bloomtide.cli.watch.streams import RedisStream
from tests.waiting import until

pytest.importorskip("redis")

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

SERVER = shutil.which("redis-server")
pytestmark = pytest.mark.skipif(SERVER is None, reason="needs redis-server")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """A server of our own, on a port that the system chose."""
    folder = tmp_path_factory.mktemp("redis")
    started = until(lambda: _started(folder))
    assert started is not None
    process, port = started
    with process:
        yield "127.0.0.1", port
        process.terminate()


def _started(folder: Path) -> tuple[subprocess.Popen[bytes], int] | None:
    """None if somebody else took the port before the server did."""
    with _reserved_port() as port:
        pass
    command = [SERVER or "", "--bind", "127.0.0.1", "--port", str(port), "--save", ""]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    # Without redis-py's own pauses between attempts, which are seconds.
    with redis.Redis(port=port, retry=Retry(NoBackoff(), 0)) as client:
        until(lambda: process.poll() is not None or _works_in(folder, client))
    return (process, port) if process.poll() is None else None


def _works_in(folder: Path, client: Any) -> bool:
    try:
        return bool(client.config_get("dir")["dir"] == str(folder))
    except redis.ConnectionError:
        return False


@contextmanager
def _reserved_port() -> Iterator[int]:
    """Nobody answers on it, and nobody else gets it meanwhile."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


@pytest.fixture
def client(address: tuple[str, int]) -> Iterator[Any]:
    with redis.Redis(*address) as opened:
        opened.flushall()
        yield opened


def url(address: tuple[str, int], words: str = "") -> str:
    return f"redis://{address[0]}:{address[1]}/visits{words}"


def open_monitor(path: Path) -> Monitor:
    return Monitor.open(path / "m", capacity=5000, error_rate=1e-7, hot=20)


def feed_until(monitor: Monitor, source: RedisStream, events: int) -> None:
    feeder = Feeder(source, monitor)
    feeder.start()
    until(lambda: monitor.stats().events >= events or feeder.wait(0))
    feeder.stop()
    assert feeder.problem is None


def test_entries_count_once_and_are_acknowledged(
    tmp_path: Path, client: Any, address: tuple[str, int]
) -> None:
    for number in range(300):
        client.xadd("visits", {"key": f"/page/{number % 7}", "count": 1 + number % 2})
    client.xadd("visits", {"key": "/old", "time": "1700000000.5"})
    client.xadd("visits", {"key": "/old", "time": "2023-11-14T22:13:21.5Z"})
    client.xadd("visits", {"key": "/old", "time": "2023-11-14T23:13:22+01:00", "count": "3"})
    client.xadd("visits", {"nothing": "here"})
    client.xadd("visits", {"key": "/bad", "count": "many"})
    client.xadd("visits", {"key": "/bad", "count": "0"})
    client.xadd("visits", {"key": "/bad", "time": "2023-11-14T22:13:21"}, id="*")
    client.xadd("visits", {"key": "/bad", "time": "yesterday"})
    client.xadd("visits", {"key": "/bad", "time": "nan"})
    with open_monitor(tmp_path) as monitor:
        source = RedisStream(url(address))
        feed_until(monitor, source, 455)
        assert monitor.stats().events == 455
        assert monitor.count("/page/0").value == sum(1 + n % 2 for n in range(0, 300, 7))
        assert monitor.history is not None
        assert monitor.history.count("/old", 1_700_000_000, 1_700_000_060).upper == 5
    [(name, report)] = source.reports()
    assert (report.lines, report.counted, report.skipped) == (309, 303, 6)
    said = [told(name, line) for line in report.bad]
    assert [line.split(": ")[1].split("`")[-2 if "`" in line else 0] for line in said] == [
        "no field of that name has the key", "count", "count", "time", "time",
    ]  # fmt: skip
    assert said[1].startswith(f"{source.name}, entry 305: `count` is no whole number from 1 up: ")
    assert said[1].endswith(" key=/bad count=many")
    assert client.xpending("visits", "bloomtide")["pending"] == 0


def test_what_was_counted_and_not_acknowledged_counts_no_second_time(
    tmp_path: Path, client: Any, address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(100):
        client.xadd("visits", {"key": f"/page/{number}"})
    monkeypatch.setattr("bloomtide.cli.watch.streams.COUNT", 30)
    with open_monitor(tmp_path) as monitor:
        source = RedisStream(url(address))

        class Gone(Exception):
            """The process was killed here."""

        def killed(*_: Any) -> None:
            raise Gone

        with monkeypatch.context() as patch:
            patch.setattr(source._redis, "xack", killed)
            with pytest.raises(Gone):
                source.run(monitor, lambda: False)
        assert monitor.stats().events == 30
        assert client.xpending("visits", "bloomtide")["pending"] == 30
    with open_monitor(tmp_path) as monitor:
        feed_until(monitor, RedisStream(url(address)), 100)
        assert monitor.stats().events == 100
        assert all(monitor.count(f"/page/{number}").value == 1 for number in range(100))
    assert client.xpending("visits", "bloomtide")["pending"] == 0


def test_a_ledger_that_fails_acknowledges_nothing(
    tmp_path: Path, client: Any, address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    client.xadd("visits", {"key": "/a"})
    with open_monitor(tmp_path) as monitor:

        def full(*_: Any) -> None:
            from bloomtide.errors import StorageError

            raise StorageError("no room", hint="make some", path="x", operation="write")

        with monkeypatch.context() as patch:
            patch.setattr(monitor, "flush", full)
            feeder = Feeder(RedisStream(url(address)), monitor)
            feeder.start()
            assert feeder.wait(20)
        assert feeder.problem is not None
        assert feeder.problem.message == "no room"
    assert client.xpending("visits", "bloomtide")["pending"] == 1


def test_an_address_without_a_stream_or_a_server_is_named(address: tuple[str, int]) -> None:
    with pytest.raises(CommandError, match="names no stream"):
        RedisStream(f"redis://{address[0]}:{address[1]}/")
    with pytest.raises(CommandError, match="knows no groop"):
        RedisStream(url(address, "?groop=x"))
    with _reserved_port() as port:
        feeder = Feeder(RedisStream(f"redis://127.0.0.1:{port}/visits"), Monitor.open())
        feeder.start()
        assert feeder.wait(20)
    assert feeder.problem is not None
    assert "redis://127.0.0.1" in feeder.problem.message
