"""What the numbers were measured on. No host name, no path, no user."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata
from pathlib import Path

_LIBRARIES = (
    "bloomtide",
    "abloom",
    "rbloom",
    "fastbloom-rs",
    "pybloom-live",
    "bounter",
    "datasketches",
    "numpy",
    "pyarrow",
)


def describe() -> dict[str, object]:
    """Processor, caches, memory and system."""
    return {
        "cpu": _first_match("/proc/cpuinfo", r"model name\s*:\s*(.+)") or platform.machine(),
        "cores": os.cpu_count(),
        "caches": _caches(),
        "memory_gib": _memory_gib(),
        "huge_pages": _first_match("/sys/kernel/mm/transparent_hugepage/enabled", r"\[(\w+)\]"),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """Version of every library that is installed."""
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def huge_page_bytes() -> int | None:
    """How much of this process lies in huge pages now; None where the system does not tell."""
    text = _first_match("/proc/self/smaps_rollup", r"AnonHugePages:\s*(\d+) kB")
    return None if text is None else int(text) * 1024


def resident_bytes() -> int | None:
    """How much memory this process holds now; None where the system does not tell."""
    text = _first_match("/proc/self/status", r"VmRSS:\s*(\d+) kB")
    return None if text is None else int(text) * 1024


def _caches() -> dict[str, str]:
    found = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level = (folder / "level").read_text().strip()
        if (folder / "type").read_text().strip() != "Instruction":
            found[f"L{level}"] = (folder / "size").read_text().strip()
    return found


def _memory_gib() -> float | None:
    text = _first_match("/proc/meminfo", r"MemTotal:\s*(\d+) kB")
    return None if text is None else round(int(text) / 2**20, 1)


def _first_match(path: str, pattern: str) -> str | None:
    try:
        found = re.search(pattern, Path(path).read_text())
    except OSError:
        return None
    return found.group(1).strip() if found else None
