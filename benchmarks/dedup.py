"""`bloomtide dedup` beside `sort -u` and awk: whole commands, all cores, output to a file.

The lines are URLs that a crawler meets: most are seen once or twice, some again and again. What
our command prints is held against awk's: the same lines in the same order, but for the few that the
filter wrongly calls seen, whose number must fit the error rate that was asked for.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import process
from benchmarks.answers import OURS
from benchmarks.binomial import interval
from benchmarks.engines.contract import Missing
from bloomtide.stream import web_stream

DEDUP = f"{OURS} dedup"
SORT = "sort -u"
AWK = "awk '!s[$0]++'"
LONGER = 5
"""How many times more lines the file has on which only memory is looked at."""
ERROR = 1e-4
MEMORY = 64e6
"""Bytes that our command may hold in all."""


@dataclass(frozen=True, slots=True)
class DedupSpeed:
    """One command on one file."""

    engine: str
    program: str
    """Which program that is, with its version."""
    lines: int
    file_bytes: int
    seconds: float
    """The best round."""
    peak_bytes: int
    """The most memory that it held."""
    kept: int
    """Lines it printed."""


def measure(lines: int, rounds: int) -> tuple[list[DedupSpeed], list[Missing]]:
    """Every command on the file, and ours on a longer one with the same `--items`."""
    with tempfile.TemporaryDirectory(prefix="bloomtide-bench-") as folder:
        file, longer = Path(folder) / "urls.txt", Path(folder) / "longer.txt"
        ours, theirs = Path(folder) / "ours.txt", Path(folder) / "theirs.txt"
        for path, count in ((file, lines), (longer, LONGER * lines)):
            write_urls(path, count, pages=lines)
        version = _version([sys.executable, "--version"])
        rows = [
            _best(DEDUP, version, _dedup(path, lines), path, count, ours, turns)
            for path, count, turns in ((longer, LONGER * lines, 1), (file, lines, rounds))
        ]
        longer.unlink()
        missing = []
        for engine, name, arguments in (
            (SORT, "sort", ["-u", str(file)]),
            (AWK, "awk", ["!s[$0]++", str(file)]),
        ):
            if (program := shutil.which(name)) is None:
                missing.append(Missing(engine, f"the program `{name}` is not installed"))
                continue
            version = _version([program, "--version"], [program, "-W", "version"])
            command = [program, *arguments]
            rows.append(_best(engine, version, command, file, lines, theirs, rounds))
            if engine == AWK:
                check(ours, theirs)
        return rows, missing


def write_urls(path: Path, lines: int, *, pages: int) -> None:
    """Visits to so many pages, of about fifty bytes: hosts as they are called within a company."""
    with path.open("wb") as out:
        for urls in web_stream(lines, pages=pages, skew=0.5):
            out.write(("\n".join(urls) + "\n").replace(".example/", "/").encode())


def check(ours: Path, exact: Path) -> None:
    """Stops the run unless we printed what is exact, in its order, but for as few as allowed."""
    with ours.open("rb") as mine, exact.open("rb") as theirs:
        lost, distinct = compare(mine, theirs)
    _, most = interval(distinct, ERROR, 1e-6)
    if lost > most:
        raise SystemExit(f"{DEDUP} lost {lost} of {distinct} lines, {most} are allowed")


def compare(mine: Iterable[bytes], exact: Iterable[bytes]) -> tuple[int, int]:
    """How many of the exact lines are not among mine, and how many there are."""
    lost = distinct = 0
    printed = iter(mine)
    line = next(printed, None)
    for expected in exact:
        distinct += 1
        if line == expected:
            line = next(printed, None)
        else:
            lost += 1
    if line is not None:
        raise SystemExit(f"{DEDUP} printed what is no first line, or not in order: {line!r}")
    return lost, distinct


def _dedup(file: Path, items: int) -> list[str]:
    size = ["--items", str(items), "--error", str(ERROR)]
    return [sys.executable, "-m", "bloomtide", "dedup", *size, str(file)]


def _best(
    engine: str, program: str, command: list[str], file: Path, lines: int, out: Path, rounds: int
) -> DedupSpeed:
    runs = [process.run(command, output=out) for _ in range(rounds)]
    with out.open("rb") as printed:
        kept = sum(block.count(b"\n") for block in iter(lambda: printed.read(1 << 20), b""))
    seconds, peak = min(run.seconds for run in runs), max(run.peak_bytes for run in runs)
    return DedupSpeed(engine, program, lines, file.stat().st_size, seconds, peak, kept)


def _version(*commands: list[str]) -> str:
    """The first line that the program says about itself; mawk knows another word for it."""
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode == 0 and done.stdout:
            return done.stdout.splitlines()[0]
    return "unknown version"
