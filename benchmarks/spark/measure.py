"""What a step of `make spark` takes: CPU by process and by library, memory, bytes moved.

Processes are told apart by what they are: the driver (Python and its JVM), the JVMs of executors,
and their Python workers. `perf` samples the CPU where it is installed and allowed; then the time of
executors and workers is cut by the library it was spent in, and the compiled core is one of them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

_HERTZ = 199
"""Samples a second and core; a prime, so that nothing that beats regularly is always met."""


def family() -> dict[int, str]:
    """This process and all below it, each with its role."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            parents.setdefault(parent, []).append(int(path.name))
    found: dict[int, str] = {}
    queue = [(os.getpid(), "driver")]
    while queue:
        pid, role = queue.pop()
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in command:
            role = "executors"
        elif b"pyspark" in command and b"java" not in command and pid != os.getpid():
            role = "workers"
        elif command.startswith(b"perf"):
            continue
        found[pid] = role
        queue += [(child, role) for child in parents.get(pid, [])]
    return found


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and of its children that ended; 0 if it is not there any more."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


class Watch(threading.Thread):
    """Looks at all of them ten times a second. Spark ends workers that have nothing to do for a
    minute, so what they took must be known before."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self.roles: dict[int, str] = {}
        self.ends = threading.Event()
        self._last: dict[int, float] = {}
        self._look()
        self._first = dict(self._last)

    def run(self) -> None:
        while not self.ends.wait(0.1):
            self._look()

    def cpu(self) -> dict[str, float]:
        """CPU time by role since it began."""
        self._look()
        total: dict[str, float] = {"driver": 0.0, "executors": 0.0, "workers": 0.0}
        for pid, last in self._last.items():
            total[self.roles[pid]] += last - self._first.get(pid, 0.0)
        return {role: round(seconds, 2) for role, seconds in total.items()}

    def _look(self) -> None:
        page = os.sysconf("SC_PAGE_SIZE")
        memory = 0
        for pid, role in family().items():
            try:
                memory += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page
            except OSError:
                continue
            self.roles[pid] = role
            self._last[pid] = max(self._last.get(pid, 0.0), cpu_seconds(pid))
        self.peak = max(self.peak, memory)


class Profile:
    """Samples every CPU until it is read; nothing where `perf` is not to be had."""

    def __init__(self, folder: Path) -> None:
        self._data = folder / "perf.data"
        self._perf: subprocess.Popen[bytes] | None = None
        if shutil.which("perf"):
            command = ["perf", "record", "-q", "-a", "-g", "-e", "cpu-clock", "-F", str(_HERTZ)]
            self._perf = subprocess.Popen(
                [*command, "-o", str(self._data)], stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            time.sleep(1)  # until it has begun

    def read(self, roles: dict[int, str]) -> dict[str, float]:
        """Seconds of CPU of executors and workers, by where they were spent."""
        if self._perf is None:
            return {}
        self._perf.send_signal(signal.SIGINT)
        self._perf.wait()
        command = ["perf", "script", "-i", str(self._data), "-F", "pid,ip,dso", "--max-stack", "40"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        spent: Counter[str] = Counter()
        for sample in done.stdout.split("\n\n"):
            pid, *frames = sample.strip().splitlines() or [""]
            role = roles.get(int(pid), "") if pid.strip().isdigit() else ""
            if frames and role in {"executors", "workers"}:
                spent[_part(role, frames)] += 1
        return {part: samples / _HERTZ for part, samples in spent.most_common()}


def _part(role: str, frames: list[str]) -> str:
    """Where one sample was. The kernel's time is told with the library that it worked for: its page
    faults and its system calls."""
    if role == "executors":
        return "JVM"
    libraries = [frame.rpartition("(")[2].rstrip(")").rpartition("/")[2] for frame in frames]
    in_kernel = "kernel" in libraries[0]
    name = next((name for name in libraries if "kernel" not in name), "")
    part = "Python and all else"
    if name.startswith("_core."):
        part = "core"
    elif name.startswith(("libarrow", "libparquet", "lib.cpython", "_parquet")):
        part = "Arrow"
    return f"kernel for {part}" if in_kernel else part


def moved(folder: Path, since: float) -> dict[str, int]:
    """Bytes that tasks started after that instant wrote for others, and sent to the driver."""
    total = {"shuffle_bytes": 0, "result_bytes": 0}
    for path in [*folder.glob("local-*"), *folder.glob("app-*")]:
        if not path.is_file():
            continue
        for line in path.read_text().splitlines():
            if '"SparkListenerTaskEnd"' not in line:
                continue
            event = json.loads(line)
            if event["Task Info"]["Launch Time"] >= since * 1000:
                metrics = event.get("Task Metrics") or {}
                wrote = metrics.get("Shuffle Write Metrics", {})
                total["shuffle_bytes"] += int(wrote.get("Shuffle Bytes Written", 0))
                total["result_bytes"] += int(metrics.get("Result Size", 0))
    return total
