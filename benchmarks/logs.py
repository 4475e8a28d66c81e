"""`bloomery top` on an access log, beside GoAccess: whole commands, each on one core.

A command is timed from its start to its end, so what it takes to start is part of it. GoAccess is
a program of its own, to be had from most systems' packages; where it is missing, that is said.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.answers import OURS
from benchmarks.engines.contract import Missing
from bloomery.stream import web_log

TOP = f"{OURS} top"
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
    with tempfile.TemporaryDirectory(prefix="bloomery-bench-") as folder:
        log, tenth = Path(folder) / "access.log", Path(folder) / "tenth.log"
        for file, count in ((log, lines), (tenth, lines // TENTH)):
            with file.open("wb") as opened:
                opened.writelines(web_log(count, drift=0.1))
        ours = [
            _best(TOP, _top(tenth), lines // TENTH, rounds),
            _best(TOP, _top(log), lines, rounds),
        ]
        if (program := shutil.which("goaccess")) is None:
            return ours, [Missing(GOACCESS, "the program `goaccess` is not installed")]
        # It is slow enough to be its own best of one.
        report = Path(folder) / "report.json"
        return [*ours, _best(GOACCESS, _goaccess(program, log, report), lines, 1)], []


def _top(log: Path) -> list[str]:
    return [sys.executable, "-m", "bloomery", "top", "--format", "combined", "--json", str(log)]


def _goaccess(program: str, log: Path, report: Path) -> list[str]:
    quiet = ["--no-progress", "--no-global-config"]
    return [program, str(log), "--log-format=COMBINED", *quiet, f"--output={report}"]


def _best(engine: str, command: list[str], lines: int, rounds: int) -> LogSpeed:
    runs = [_run(command) for _ in range(rounds)]
    seconds = min(seconds for seconds, _ in runs)
    return LogSpeed(engine, lines, seconds, max(peak for _, peak in runs))


def _run(command: list[str]) -> tuple[float, int]:
    begin = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=_one_core(),
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"`{' '.join(command[:4])}` ended with {process.returncode}")
    return time.perf_counter() - begin, usage.ru_maxrss * 1024


def _one_core() -> Callable[[], None] | None:
    """Keeps a child on one core, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    return lambda: os.sched_setaffinity(0, {core})
