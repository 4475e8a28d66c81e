"""`bloomtide watch` as people run it: what it reads, says and leaves behind."""

from __future__ import annotations

import gzip
import io
import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from bloomtide import Monitor
from bloomtide.cli.watch.view import draw, sparkline
from tests.cli.command import refused, run, run_process, start
from tests.monitor.streams import events, log_line


def write_log(file: Path, n: int, seed: int = 0) -> None:
    data = b"".join(log_line(key, int(at)) for key, _, at in events(n, seed))
    file.write_bytes(gzip.compress(data) if file.suffix == ".gz" else data)


def test_logs_by_pattern_packed_and_piped_go_into_one_monitor(tmp_path: Path) -> None:
    write_log(tmp_path / "1.log", 100, 1)
    write_log(tmp_path / "2.log", 50, 2)
    write_log(tmp_path / "3.log.gz", 25, 3)
    data = tmp_path / "data"
    words = ("watch", "--no-server", "--data", data, "--items", "10k")
    run(*words, tmp_path / "*.log", tmp_path / "3.log.gz")
    run_process(*words[:4], "-", stdin=log_line("/piped", 1_700_000_000))
    run(*words[:4], tmp_path / "*.log")
    with Monitor.open(data / "monitor") as monitor:
        assert monitor.stats().events == 176
        assert monitor.seen("/piped")
        assert monitor.settings.capacity == 10_000


def test_what_it_cannot_do_is_said_in_one_line(tmp_path: Path) -> None:
    assert "nothing to watch" in refused("watch", "--no-server")
    assert "brings its own" in refused("watch", "--demo", "-", "--no-server")
    data = ("--no-server", "--data", str(tmp_path / "data"))
    absent = (tmp_path / "absent.log", tmp_path / "absent*")
    assert f"there is no log {absent[0]}, {absent[1]}" in refused("watch", *data, *absent)
    assert not (tmp_path / "data").exists()
    (tmp_path / "odd.log").write_bytes(b"\x00\x01 nothing of a log\n" * 5)
    assert "no line was understood" in refused("watch", *data, tmp_path / "odd.log")
    write_log(tmp_path / "a.log", 10)
    told = run("watch", *data, tmp_path / "a.log", *absent, code=2).stderr
    assert str(absent[0]) in told
    assert f"there is no log {absent[1]}" in told
    told = refused("watch", *data, "--items", "5k", tmp_path / "a.log")
    assert "capacity" in told


def test_a_log_that_was_not_understood_is_read_again_when_its_format_is_named(
    tmp_path: Path,
) -> None:
    log, words = tmp_path / "app.log", ("watch", "--no-server", "--data", tmp_path / "data")
    log.write_bytes(b'{"ts": 1700000000, "request": {"u": "/x"}}\n')
    for _ in range(2):
        assert "name it with --format" in run(*words, log, code=2).stderr
    run(*words, log, "--format", "json", "--json-map", "path=request.u,time=ts")
    with Monitor.open(tmp_path / "data" / "monitor") as monitor:
        assert monitor.seen("/x")


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_everything_is_kept(tmp_path: Path, signal_number: int) -> None:
    log = tmp_path / "a.log"
    write_log(log, 200)
    words = (
        "watch",
        "--no-server",
        "--tui",
        "--follow",
        "--items",
        "10k",
        "--data",
        tmp_path / "data",
    )
    with start(*words, log, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            # Once all lines are in the table everything works, and can be stopped.
            for line in process.stdout:
                if b" 200 events" in line:
                    break
            process.send_signal(signal_number)
            _, error = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 130, error
    assert b"Traceback" not in error
    with Monitor.open(tmp_path / "data" / "monitor") as monitor:
        assert monitor.stats().events == 200


def test_the_terminal_shows_what_is_hot_and_gets_its_cursor_back(tmp_path: Path) -> None:
    write_log(tmp_path / "a.log", 300)
    ours, theirs = pty.openpty()
    words = ("watch", "--no-server", "--tui", "--items", "10k", "--data", tmp_path / "data")
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "80", "PYTHONUTF8": "1"}
    process = start(
        *words, tmp_path / "a.log", stdout=theirs, stderr=subprocess.PIPE, env=environment
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    process.communicate(timeout=30)
    os.close(ours)
    assert process.returncode == 0
    assert b"/page/1" in shown
    assert b"300 events" in shown
    assert shown.rstrip().endswith(b"\x1b[?25h")


def test_a_view_obeys_no_key_and_fits_plain_terminals() -> None:
    from rich.console import Console

    monitor = Monitor.open(capacity=1000, clock=lambda: 1_700_000_000)
    monitor.add("/evil\x1b[2J\nkey", 5)
    monitor.add(b"/\xff")
    for encoding in ("utf-8", "ascii"):
        drawn = draw(
            monitor.stats(), monitor.pulse(), monitor.hot(5), ["a note"], 60, encoding
        )  # fmt: skip
        console = Console(width=60, record=True, file=io.StringIO())
        console.print(drawn)
        text = console.export_text()
        assert "\x1b" not in text
        assert "a note" in text
        assert all(len(line) <= 60 for line in text.splitlines())


def test_a_sparkline_has_its_highest_bar_where_most_happened() -> None:
    assert sparkline((0, 0, 0)) == "▁▁▁"
    assert sparkline((0, 7, 1)) == "▁█▂"
    assert sparkline(()) == ""
