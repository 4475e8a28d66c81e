"""`bloomtide watch` with its server: the page, the API and Redis clients see what comes."""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import redis

from bloomtide import Monitor
from tests.cli.command import start
from tests.monitor.streams import events, log_line
from tests.waiting import until

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
PORTS = ("--set", "http-port=auto", "--set", "port=auto", "--json", "--items", "10k")


def ask(ports: dict[str, int], path: str) -> Any:
    with urllib.request.urlopen(
        f"http://127.0.0.1:{ports['http_port']}{path}", timeout=20
    ) as answer:
        return json.load(answer)


def watched(*words: Any) -> subprocess.Popen[bytes]:
    return start("watch", *words, *PORTS, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def stats_with(ports: dict[str, int], events: int) -> dict[str, Any]:
    """The statistics, once there are so many events."""

    def enough() -> dict[str, Any]:
        stats: dict[str, Any] = ask(ports, "/api/stats")["monitor"]
        return stats if stats["events"] >= events else {}

    return until(enough)


def test_a_log_is_on_the_page_and_kept_when_it_ends(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"".join(log_line(key, int(at)) for key, _, at in events(500)))
    for _ in range(2):  # the second time there is nothing new in the log
        with watched("--follow", "--data", tmp_path / "data", log) as process:
            try:
                assert process.stdout is not None
                ports = json.loads(process.stdout.readline())
                assert stats_with(ports, 500)["events"] == 500
                hot = ask(ports, "/api/hot?n=1")["items"][0]
                assert hot["key"] == "/page/1"
                process.send_signal(signal.SIGTERM)
                out, error = process.communicate(timeout=40)
            finally:
                process.kill()
        assert process.returncode == 0, error
        assert b"Traceback" not in error
        assert json.loads(out)["events"] == 500
    with Monitor.open(tmp_path / "data" / "monitor") as monitor:
        assert monitor.stats().events == 500


def test_events_of_a_client_are_in_the_monitors_history_after_a_kill(tmp_path: Path) -> None:
    """By its ledger: the history alone does not keep what it is fed."""
    log = tmp_path / "a.log"
    log.touch()

    def counts(process: subprocess.Popen[bytes], *, add: bool) -> list[int]:
        assert process.stdout is not None
        ports = json.loads(process.stdout.readline())
        with redis.Redis(port=ports["port"], protocol=3) as client:
            if add:
                assert client.execute_command("HISTORY.ADD", "monitor", "/a", "COUNT", 3) == b"OK"
                assert client.execute_command("HISTORY.MADD", "monitor", "/a", "/b") == 2
            asked = [
                client.execute_command("HISTORY.COUNT", "monitor", key) for key in ("/a", "/b")
            ]
            assert client.execute_command("MONITOR.COUNT", "/a")[b"value"] == 4
            return [told[b"upper"] for told in asked]

    for add in (True, False):
        with watched("--follow", "--data", tmp_path / "data", log) as process:
            try:
                assert counts(process, add=add) == [4, 1]
            finally:
                process.kill()


def test_the_demo_has_a_past_and_goes_on(tmp_path: Path) -> None:
    with watched("--demo", "--rate", "20", "--data", tmp_path / "data") as process:
        try:
            assert process.stdout is not None
            ports = json.loads(process.stdout.readline())
            first = stats_with(ports, 900 * 10)
            later = stats_with(ports, first["events"] + 10)
            assert later["new"] < later["events"]
            total = ask(ports, "/api/history/total?last=10m")
            assert total["upper"] > 1000
            process.send_signal(signal.SIGINT)
            out, error = process.communicate(timeout=40)
        finally:
            process.kill()
    assert process.returncode == 0, error
    assert json.loads(out)["events"] >= later["events"]
