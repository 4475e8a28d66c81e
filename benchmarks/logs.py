"""`bloomtide top` and `watch` on an access log, beside GoAccess: whole commands, each on one core.

A command is timed from its start to its end, so what it takes to start is part of it. GoAccess is
a program of its own, to be had from most systems' packages; where it is missing, that is said.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import process
from benchmarks.answers import OURS
from benchmarks.engines.contract import Missing
from bloomtide.stream import web_log

TOP = f"{OURS} top"
WATCH = f"{OURS} watch"
"""Into all structures of a monitor, through its ledger, and everything on the disk at the end."""
GOACCESS = "GoAccess"
TENTH = 10
"""How many times shorter the log is against which memory is compared."""


@dataclass(frozen=True, slots=True)
class LogSpeed:
    """One command on one log."""

    engine: str
    lines: int
    seconds: float
    """The best round."""
    peak_bytes: int
    """The most memory that it held."""

    @property
    def lines_per_second(self) -> float:
        """Start and end of the process included."""
        return self.lines / self.seconds


def measure(lines: int, rounds: int) -> tuple[list[LogSpeed], list[Missing]]:
    """Every command on the whole log, and ours on a tenth of it."""
    with tempfile.TemporaryDirectory(prefix="bloomtide-bench-") as folder:
        log, tenth = Path(folder) / "access.log", Path(folder) / "tenth.log"
        for file, count in ((log, lines), (tenth, lines // TENTH)):
            with file.open("wb") as opened:
                opened.writelines(web_log(count, drift=0.1))
        ours = [
            _best(TOP, lambda: _top(tenth), lines // TENTH, rounds),
            _best(TOP, lambda: _top(log), lines, rounds),
            _best(WATCH, lambda: _watch(tenth, folder), lines // TENTH, rounds),
            _best(WATCH, lambda: _watch(log, folder), lines, rounds),
        ]
        if (program := shutil.which("goaccess")) is None:
            return ours, [Missing(GOACCESS, "the program `goaccess` is not installed")]
        # It is slow enough to be its own best of one.
        report = Path(folder) / "report.json"
        return [*ours, _best(GOACCESS, lambda: _goaccess(program, log, report), lines, 1)], []


def _top(log: Path) -> list[str]:
    return [sys.executable, "-m", "bloomtide", "top", "--format", "combined", "--json", str(log)]


def _watch(log: Path, folder: str) -> list[str]:
    # Each time a monitor of its own: one that knows the log has nothing to do.
    words = ["watch", "--no-server", "--format", "combined", "--data", tempfile.mkdtemp(dir=folder)]
    return [sys.executable, "-m", "bloomtide", *words, str(log)]


def _goaccess(program: str, log: Path, report: Path) -> list[str]:
    quiet = ["--no-progress", "--no-global-config"]
    return [program, str(log), "--log-format=COMBINED", *quiet, f"--output={report}"]


def _best(engine: str, command: Callable[[], list[str]], lines: int, rounds: int) -> LogSpeed:
    runs = [process.run(command(), one_core=True) for _ in range(rounds)]
    seconds = min(run.seconds for run in runs)
    return LogSpeed(engine, lines, seconds, max(run.peak_bytes for run in runs))
