"""`bloomtide dedup` as a process: signals, readers that leave, lines that come slowly, memory."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import bloomtide
from tests.cli.command import run, run_process, start
from tests.cli.held_dedup import Held

PIPES: dict[str, Any] = {
    "stdin": subprocess.PIPE,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
}


@pytest.mark.parametrize("way", [[], ["--exact"], ["--within", "1h"]])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_saves_what_was_printed(tmp_path: Path, number: int, way: list[str]) -> None:
    state = tmp_path / "seen"
    with start("dedup", "--state", state, *way, **PIPES) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(b"a\nb\nbegun")
        process.stdin.flush()
        # Lines are answered before the input ends.
        assert process.stdout.readline() == b"a\n"
        assert process.stdout.readline() == b"b\n"
        process.send_signal(number)
        assert process.wait(60) == 128 + number
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")
    assert run("dedup", "--state", state, *way, stdin=b"a\nb\nbegun\n").stdout == "begun\n"


def test_a_reader_that_leaves_ends_it_quietly_and_saves_the_state(tmp_path: Path) -> None:
    state, lines = tmp_path / "seen", tmp_path / "lines"
    lines.write_bytes(b"".join(b"%d\n" % number for number in range(400_000)))
    with start("dedup", "--state", state, lines, **PIPES) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr.read() == b""
    assert "0" in bloomtide.load(state)
    assert sorted(tmp_path.iterdir()) == [lines, state]


@pytest.mark.parametrize("way", [[], ["--exact"], ["--within", "1h"]])
def test_what_cannot_be_written_is_not_remembered(tmp_path: Path, way: list[str]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    state = tmp_path / "seen"
    run("dedup", "--state", state, *way, stdin=b"a\n")
    before = state.read_bytes()
    with (
        Path("/dev/full").open("wb") as full,
        start("dedup", "--state", state, *way, **PIPES | {"stdout": full}) as process,
    ):
        _, told = process.communicate(b"b\n")
    assert process.returncode == 2
    assert b"stdout" in told
    assert state.read_bytes() == before
    assert run("dedup", "--state", state, *way, stdin=b"a\nb\n").stdout == "b\n"


def test_commands_with_one_state_wait_for_each_other(tmp_path: Path) -> None:
    state = tmp_path / "seen"
    run("dedup", "--state", state, stdin=b"")
    text = b"".join(b"%d\n" % number for number in range(1000))
    lines = tmp_path / "lines"
    lines.write_bytes(text)
    workers = [start("dedup", "--state", state, lines, **PIPES) for _ in range(3)]
    printed = [worker.communicate(timeout=60)[0] for worker in workers]
    assert sorted(printed) == [b"", b"", text]


STATES = pytest.mark.parametrize("way", [[], ["--exact"], ["--within", "7d"]])


@STATES
def test_two_first_runs_print_no_line_twice_and_lose_none(tmp_path: Path, way: list[str]) -> None:
    """Both found no state. The second made an empty one in the place of that of the first."""
    state = tmp_path / "seen"
    one, other = (Held(1, "--state", state, *way) for _ in range(2))
    one.found_none()
    other.found_none()
    one.goes_on()
    assert one.process.communicate(b"a\nb\n", 60) == (b"a\nb\n", b"")
    other.goes_on()
    assert other.process.communicate(b"b\nc\na\n", 60) == (b"c\n", b"")
    assert run("check", state, "-v", stdin=b"a\nb\nc\nd\n").stdout == "d\n"
    assert run("dedup", "--state", state, *way, stdin=b"a\nb\nc\n").stdout == ""
    assert {path.name for path in tmp_path.iterdir()} <= {"seen", "seen.exact"}


@STATES
def test_a_run_waits_for_one_that_makes_the_state(tmp_path: Path, way: list[str]) -> None:
    state = tmp_path / "seen"
    one = Held(2, "--state", state, *way)
    one.found_none()
    with start("dedup", "--state", state, *way, **PIPES) as other:
        assert other.stderr
        assert b"waiting for another command" in other.stderr.readline()
        one.goes_on()
        # Either may be the first now: one prints the lines, and the other none.
        printed = one.process.communicate(b"a\n", 60)[0] + other.communicate(b"a\n", 60)[0]
    assert printed == b"a\n"


@STATES
def test_a_run_that_waited_for_one_that_failed_makes_the_state(
    tmp_path: Path, way: list[str]
) -> None:
    """The run that fails removes the empty state that it made, and the other one waits for that."""
    state, bad = tmp_path / "seen", tmp_path / "bad.csv"
    bad.write_bytes(b"no such field\n")
    fields = ["--key", "id", "--format", "csv", "-", str(bad)]
    with start("dedup", "--state", state, *way, *fields, **PIPES) as one:
        assert one.stdin
        assert one.stdout
        one.stdin.write(b"id\n1\n")
        one.stdin.flush()
        assert (one.stdout.readline(), one.stdout.readline()) == (b"id\n", b"1\n")
        with start("dedup", "--state", state, *way, **PIPES) as other:
            assert other.stderr
            assert b"waiting for another command" in other.stderr.readline()
            one.stdin.close()
            assert one.wait(60) == 2
            assert other.communicate(b"a\nb\na\n", 60)[0] == b"a\nb\n"
    assert run("dedup", "--state", state, *way, stdin=b"a\nb\n").stdout == ""


@STATES
def test_first_runs_at_once_print_each_line_once(tmp_path: Path, way: list[str]) -> None:
    state, lines = tmp_path / "seen", tmp_path / "lines"
    text = b"".join(b"%d\n" % number for number in range(1000))
    lines.write_bytes(text)
    workers = [start("dedup", "--state", state, *way, lines, **PIPES) for _ in range(3)]
    printed = [worker.communicate(timeout=60)[0] for worker in workers]
    assert sorted(printed) == [b"", b"", text]
    assert run("check", state, "-v", lines, code=1).stdout == ""


@STATES
def test_a_state_with_two_hard_links_is_refused_until_it_has_one(
    tmp_path: Path, way: list[str]
) -> None:
    """A run replaced the file under one name: the other name still had the old state."""
    state, other = tmp_path / "seen", tmp_path / "other"
    run("dedup", "--state", state, *way, stdin=b"a\n")
    other.hardlink_to(state)
    for name in (state, other):
        done = run("dedup", "--state", name, *way, stdin=b"b\n", code=2)
        assert "hard link" in done.stderr
        assert "cp " in done.stderr
    other.unlink()
    assert run("dedup", "--state", state, *way, stdin=b"a\nb\n").stdout == "b\n"


def test_memory_is_that_of_the_filter_and_a_chunk(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    with lines.open("wb") as out:
        for first in range(0, 1_000_000, 50_000):
            out.write(b"".join(b"https://e.example/%d\n" % i for i in range(first, first + 50_000)))
    code = (
        "import resource, sys\n"
        "from bloomtide.cli.main import main\n"
        "try:\n    main()\n"
        "except SystemExit as ended:\n    assert not ended.code\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
    )
    peaks = []
    for source in ("/dev/null", lines):
        arguments = [sys.executable, "-c", code, "dedup", "--items", "1M", str(source)]
        done = subprocess.run(arguments, capture_output=True, check=True, env=dict(os.environ))
        peaks.append(int(done.stderr) * (1 if sys.platform == "darwin" else 1024))
    filter = bloomtide.BloomFilter.plan(1_000_000, 1e-4).bytes
    # A chunk, what is kept of it, its rows; the filter's own pages are touched only by lines.
    assert peaks[1] - peaks[0] < filter + (16 << 20)


def test_a_line_of_megabytes_is_a_line_like_any_other() -> None:
    text = b"x" * 3_000_000
    done = run_process("dedup", stdin=text + b"\n" + text + b"y\n" + text)
    assert done.stdout == text + b"\n" + text + b"y\n"


def test_help_names_what_is_promised() -> None:
    done = run_process("dedup", "--help")
    assert re.search(rb"never with\s+--exact", done.stdout.replace(b"\xe2\x94\x82", b""))
