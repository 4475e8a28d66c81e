"""A long load on `bloomtide serve`: is its memory flat?

Every family of commands, connections that come and go, live numbers and metrics over HTTP, a
snapshot each minute. Keys are drawn from a set that is soon inside, so what grows later is a leak.

    python -m benchmarks.soak --minutes 30
"""

from __future__ import annotations

import argparse
import contextlib
import random
import socket
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from benchmarks.server import prepare, serving

FLAT = 1.05
"""How much larger memory may be in the last quarter than in the second."""
KEYS = 100_000
_SETUP = (
    ["BF.RESERVE", "seen", "0.01", str(KEYS)],
    ["CF.RESERVE", "deleted", str(KEYS)],
    ["CMS.INITBYDIM", "counted", "2000", "5"],
    ["TOPK.RESERVE", "top", "50", "2000", "7", "0.9"],
    ["COUNT.RESERVE", "exactly", str(KEYS), "0.01"],
    ["DECAY.RESERVE", "hot", str(KEYS), "0.01", "HALFLIFE", "10m", "TOP", "100"],
    ["URL.RESERVE", "urls", str(KEYS), "0.01"],
)
_BATCH = 200
_REST = 0.05
"""Seconds between two batches: some thousand commands a second, beside whatever else runs."""


def batch(draw: random.Random) -> bytes:
    """Commands of all families, some of them wrong, each with one short reply or an array."""
    lines = []
    for _ in range(_BATCH // 10):
        key = str(draw.randrange(KEYS))
        lines += [
            f"BF.ADD seen {key}", f"BF.EXISTS seen {key}x", f"CF.ADD deleted {key}",
            f"CF.DEL deleted {key}", f"CMS.INCRBY counted {key} 1", f"TOPK.ADD top {key}",
            f"COUNT.ADD exactly {key}", f"COUNT.REMOVE exactly {key}", f"DECAY.ADD hot {key}",
            f"URL.ADD urls http://example.org/{key}", "NOSUCH", "BF.ADD exactly x",
        ]  # fmt: skip
    return "\r\n".join([*lines, "ECHO end", ""]).encode()


def resident(pid: int) -> int:
    """Memory of a process in bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096


def load(port: int, http: int, pid: int, seconds: float) -> list[int]:
    """Runs the load; the memory each second."""
    draw, found = random.Random(7), []
    end, next_second, next_save = time.monotonic() + seconds, 0.0, time.monotonic() + 60
    with socket.create_connection(("127.0.0.1", http)) as live:
        live.sendall(b"GET /api/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        live.setblocking(False)
        while (now := time.monotonic()) < end:
            # A new connection for each batch: what one leaves behind would add up.
            with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                connection.sendall(batch(draw))
                come = b""
                while not come.endswith(b"\r\nend\r\n"):
                    come = come[-16:] + connection.recv(1 << 16)
            if now >= next_second:
                next_second = now + 1
                found.append(resident(pid))
                urllib.request.urlopen(f"http://127.0.0.1:{http}/metrics", timeout=30).close()
                with contextlib.suppress(BlockingIOError):
                    while live.recv(1 << 20):
                        pass
            if now >= next_save:
                next_save = now + 60
                _save(port)
            time.sleep(_REST)
    return found


def _save(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(b"BGSAVE\r\n")
        connection.recv(100)


def growth(samples: list[int]) -> float:
    """The last quarter's median, times the second's: the first one warms up."""
    quarter = len(samples) // 4
    if not quarter:
        return 1.0
    second, last = sorted(samples[quarter : 2 * quarter]), sorted(samples[-quarter:])
    return last[quarter // 2] / second[quarter // 2]


def main(arguments: list[str] | None = None) -> int:
    """Runs the soak; 1 if memory grew."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    options = parser.parse_args(arguments)
    ports: dict[str, int] = {}
    with (
        tempfile.TemporaryDirectory() as directory,
        serving("--dir", directory, http_port="auto", told=ports) as port,
    ):
        prepare(port, _SETUP)
        samples = load(port, ports["http_port"], ports["pid"], 60 * options.minutes)
    times = growth(samples)
    low, high = min(samples) / 1e6, max(samples) / 1e6
    print(f"{options.minutes:g} minutes: {low:.1f} to {high:.1f} MB, last quarter {times:.3f}x")
    return int(times > FLAT)


if __name__ == "__main__":
    sys.exit(main())
