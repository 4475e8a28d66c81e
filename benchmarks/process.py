"""A whole command, from its start to its end: how long it takes, and how much memory it holds.

To the kernel the most memory of a process includes that of its parent at the fork. A benchmark
holds hundreds of megabytes, so a small process of its own starts the command and measures it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_LAUNCHER = """
import json, os, subprocess, sys, time
core, output, *command = sys.argv[1:]
if core:
    os.sched_setaffinity(0, {int(core)})
with open(output, "wb") as out:
    begin = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
process.returncode = os.waitstatus_to_exitcode(status)
print(json.dumps([seconds, usage.ru_maxrss * 1024, process.returncode]))
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of a command."""

    seconds: float
    peak_bytes: int


def run(command: list[str], *, output: Path = Path(os.devnull), one_core: bool = False) -> Ran:
    """Runs the command in the C locale, its output into a file; it must end well."""
    core = (
        str(max(os.sched_getaffinity(0))) if one_core and hasattr(os, "sched_setaffinity") else ""
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", _LAUNCHER, core, str(output), *command],
        capture_output=True,
        check=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    seconds, peak, code = json.loads(done.stdout)
    if code != 0:
        raise SystemExit(f"`{' '.join(command[:4])}` ended with {code}")
    return Ran(seconds, peak)
