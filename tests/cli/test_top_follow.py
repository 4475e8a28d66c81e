"""`bloomtide top --follow`: files that grow, are rotated, cut or gone; terminals and signals."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomtide.cli.console import CommandError
from bloomtide.cli.top.follow import Follower
from bloomtide.stream import web_log
from tests.cli.access_log import hit
from tests.cli.command import run_process, start

PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "access.log"
    file.write_bytes(b"one\n")
    return file


def came(follower: Follower) -> list[bytes | None]:
    return list(follower.poll())


def append(file: Path, data: bytes) -> None:
    with file.open("ab") as opened:
        opened.write(data)


# --- the follower, which never waits


def test_a_follower_gives_what_is_new(log: Path) -> None:
    follower = Follower(str(log))
    assert came(follower) == [b"one\n"]
    assert came(follower) == []
    append(log, b"two\nth")
    append(log, b"ree\n")
    assert came(follower) == [b"two\nthree\n"]
    follower.close()


def test_a_file_that_was_cut_and_grew_past_the_old_place_is_read_from_its_begin(log: Path) -> None:
    follower = Follower(str(log))
    assert came(follower) == [b"one\n"]
    append(log, b"two\n")
    assert came(follower) == [b"two\n"]
    log.write_bytes(b"three\nfour\nfive\n")  # the same file, longer than before
    assert came(follower) == [None, b"three\nfour\nfive\n"]
    assert came(follower) == []
    follower.close()


def test_a_rotated_file_is_read_to_its_end_and_then_the_new_one(log: Path) -> None:
    follower = Follower(str(log))
    assert came(follower) == [b"one\n"]
    append(log, b"last\n")
    log.rename(log.with_suffix(".1"))
    log.write_bytes(b"new\n")
    assert came(follower) == [b"last\n", None, b"new\n"]
    follower.close()


def test_lines_that_come_after_the_rename_are_not_lost(log: Path) -> None:
    follower = Follower(str(log))
    came(follower)
    old = log.with_suffix(".1")
    log.rename(old)
    append(old, b"late\n")  # the server has not opened the new file yet
    assert (came(follower), follower.gone) == ([b"late\n"], True)
    append(old, b"later\n")
    log.write_bytes(b"new\n")
    assert (came(follower), follower.gone) == ([b"later\n", None, b"new\n"], False)
    follower.close()


def test_a_cut_file_is_read_from_its_start(log: Path) -> None:
    append(log, b"a begun li")
    follower = Follower(str(log))
    came(follower)
    log.write_bytes(b"new\n")  # the same file, shorter
    assert came(follower) == [None, b"new\n"]
    follower.close()


def test_a_file_that_vanishes_is_waited_for(log: Path) -> None:
    follower = Follower(str(log))
    came(follower)
    log.unlink()
    assert (came(follower), follower.gone) == ([], True)
    assert came(follower) == []
    log.write_bytes(b"back\n")
    assert came(follower) == [None, b"back\n"]
    follower.close()


def test_a_file_that_never_was_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        Follower(str(tmp_path / "missing"))


# --- the command


def states(process: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
    assert process.stdout
    for line in process.stdout:
        yield json.loads(line)


def test_the_command_goes_on_through_rotation_truncation_and_absence(log: Path) -> None:
    log.write_bytes(hit("/a"))
    with start("top", "--follow", "--json", "--refresh", "0.02", log, **PIPES) as process:
        seen = states(process)

        def wait_for(key: str) -> dict[str, Any]:
            return next(s for s in seen if key in {row.get("key") for row in s["hot"]})

        assert wait_for("/a")["counted"] == 1
        append(log, hit("/b"))
        assert wait_for("/b")["counted"] == 2
        log.rename(log.with_suffix(".1"))
        log.write_bytes(hit("/c"))
        assert wait_for("/c")["counted"] == 3
        log.write_bytes(b"")
        # Shorter is noticed at the next look; until then a longer file would be taken as grown.
        while next(seen)["counted"] != 3:
            pass
        for _ in range(30):
            next(seen)
        append(log, hit("/d"))
        assert wait_for("/d")["skipped"] == 0
        log.unlink()
        next(seen)
        log.write_bytes(hit("/e"))
        assert wait_for("/e")["counted"] == 5
        process.send_signal(signal.SIGINT)
        *_, last = seen
        assert last["counted"] == 5
        assert process.wait(60) == 130
        assert process.stderr
        assert process.stderr.read() == b""


def test_stdin_is_shown_while_it_comes() -> None:
    command = ("top", "--follow", "--json", "--refresh", "0.02", "-")
    with start(*command, stdin=subprocess.PIPE, **PIPES) as process:
        assert process.stdin
        process.stdin.write(hit("/a"))
        process.stdin.flush()
        assert any(state["counted"] == 1 for state in states(process))
        process.stdin.close()
        assert process.wait(60) == 0


def test_a_reader_who_leaves_ends_it_quietly(log: Path) -> None:
    log.write_bytes(hit("/a"))
    with start("top", "--follow", "--json", "--refresh", "0.02", log, **PIPES) as process:
        next(states(process))
        assert process.stdout
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr
        assert process.stderr.read() == b""


def test_on_a_terminal_the_view_is_live_until_an_interrupt(log: Path) -> None:
    log.write_bytes(hit("/first") * 3)
    terminal, theirs = pty.openpty()
    env = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    env["PYTHONIOENCODING"] = "utf-8"
    command = ("top", "--follow", "--refresh", "0.05", log)
    with start(*command, env=env, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = read_until(terminal, b"/first")
        append(log, hit("/second") * 2)
        shown += read_until(terminal, b"/second")
        log.unlink()
        shown += read_until(terminal, b"waiting for")
        process.send_signal(signal.SIGINT)
        shown += read_until(terminal, None)
        assert process.wait(60) == 130
    os.close(terminal)
    assert b"\x1b[?25l" in shown  # the cursor is hidden meanwhile,
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l")  # and comes back
    assert re.search(rb"\x1b\[\d*A", shown), "the table is drawn again in its place"
    assert "•".encode() in shown
    assert b"Traceback" not in shown


def test_where_only_ascii_can_be_written_it_is(tmp_path: Path) -> None:
    # More pages than the list has places, so that counts are bounds.
    data = b"".join(web_log(60_000, pages=50_000, skew=0.5)) + hit("/é", 1e6) * 50
    log = tmp_path / "access.log"
    log.write_bytes(data)
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for life in ("never", "10m"):
        result = run_process("top", log, "--half-life", life, env=env)
        assert (result.returncode, result.stderr) == (0, b"")
        assert result.stdout.isascii()
        assert (b"<= " in result.stdout) == (life == "never")
    assert b"/\\xe9" in result.stdout


def read_until(terminal: int, wanted: bytes | None) -> bytes:
    """What the terminal shows until it has shown that, or until the command has ended."""
    shown = b""
    while wanted is None or wanted not in shown:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # a terminal whose process has ended
            break
        shown += piece
    return shown


def test_memory_stays_flat_while_the_log_grows_tenfold(tmp_path: Path) -> None:
    small, large = tmp_path / "small.log", tmp_path / "large.log"
    # Each a stream of its own, so that the large one also has ten times the pages.
    for file, lines in ((small, 30_000), (large, 300_000)):
        with file.open("wb") as opened:
            opened.writelines(web_log(lines, pages=lines))
    assert peak_bytes(large) < 1.05 * peak_bytes(small)


def peak_bytes(log: Path) -> int:
    """The most memory that the command had while it read the log."""
    process = start("top", "--json", log, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss * 1024
