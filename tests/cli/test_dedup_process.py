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
