"""`bloomtide serve` under redis-benchmark, beside Debian's redis-server in the same run.

Both keep everything in memory, so that the protocol and the structures are compared. RedisBloom is
measured too where BLOOMTIDE_REDISBLOOM holds its URL (redis://host:port). Elsewhere its rate is
taken from redis-server: with -P 64 it makes BF.ADD at 1.23/3.2 of redis-server's PING, BF.EXISTS at
1.26/3.2 and CMS.INCRBY at 1.35/3.2; without a pipeline the network is the work, and SETBIT stands
in for it.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from benchmarks.answers import OURS
from benchmarks.engines.contract import Missing

SERVE = f"{OURS} serve"
REDIS = "redis-server"
REDISBLOOM = "RedisBloom"
DEEP = 64
"""Commands that a client sends before it waits for replies."""
CLIENTS = 50
RANDOM = "__rand_int__"
KEYS = 1_000_000
OURS_TOO = {
    "PING": ["PING"],
    "BF.ADD": ["BF.ADD", "seen", RANDOM],
    "BF.EXISTS": ["BF.EXISTS", "seen", RANDOM],
    "CMS.INCRBY": ["CMS.INCRBY", "counted", RANDOM, "1"],
    "COUNT.ADD": ["COUNT.ADD", "exactly", RANDOM],
}
SETUP = (
    ["BF.RESERVE", "seen", "0.01", str(KEYS)],
    ["CMS.INITBYPROB", "counted", "0.0001", "0.01"],
)
OUR_SETUP = (*SETUP, ["COUNT.RESERVE", "exactly", str(KEYS), "0.01"])
# Redis takes no offset with leading zeros, which is what random ones have.
THEIRS = {"PING": ["PING"], "SETBIT": ["SETBIT", "bits", "12345", "1"]}
SHARE_OF_PING = {
    "BF.ADD": 1.23 / 3.2,
    "BF.EXISTS": 1.26 / 3.2,
    "CMS.INCRBY": 1.35 / 3.2,
    "COUNT.ADD": 1.35 / 3.2,
}
"""RedisBloom's rate with -P 64 as a share of redis-server's PING, on one machine; for COUNT.ADD,
which it does not have, that of its counters."""


@dataclass(frozen=True, slots=True)
class ServerSpeed:
    """One command on one server."""

    engine: str
    command: str
    pipeline: int
    per_second: float
    """The best round."""
    p99_ms: float
    """Of that round."""


@dataclass(frozen=True, slots=True)
class Place:
    """A server that is measured."""

    engine: str
    host: str
    port: int
    commands: dict[str, list[str]]


def measure(requests: int, rounds: int) -> tuple[list[ServerSpeed], list[Missing]]:
    """Every command with a pipeline and without, on every server that is there."""
    program, redis = shutil.which("redis-benchmark"), shutil.which(REDIS)
    if program is None:
        return [], [Missing(SERVE, "the program `redis-benchmark` is not installed")]
    missing: list[Missing] = []
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(serving())
        prepare(port, OUR_SETUP)
        places = [Place(SERVE, "127.0.0.1", port, OURS_TOO)]
        if redis is None:
            missing.append(Missing(REDIS, "the program is not installed"))
        else:
            port = stack.enter_context(redis_serving(redis))
            places.append(Place(REDIS, "127.0.0.1", port, THEIRS))
        if url := os.environ.get("BLOOMTIDE_REDISBLOOM"):
            host, port = urlsplit(url).hostname or "127.0.0.1", urlsplit(url).port or 6379
            prepare(port, SETUP, host)
            commands = {name: words for name, words in OURS_TOO.items() if name != "COUNT.ADD"}
            places.append(Place(REDISBLOOM, host, port, commands))
        else:
            missing.append(Missing(REDISBLOOM, "BLOOMTIDE_REDISBLOOM does not name one"))
        return _speeds(program, places, requests, rounds), missing


def rate(rows: list[ServerSpeed], engine: str, command: str, pipeline: int) -> float | None:
    """Commands a second; None if that was not measured."""
    for row in rows:
        if (row.engine, row.command, row.pipeline) == (engine, command, pipeline):
            return row.per_second
    return None


def peer_rate(rows: list[ServerSpeed], command: str, pipeline: int) -> tuple[float | None, str]:
    """RedisBloom's rate, and where it is from."""
    if measured := rate(rows, REDISBLOOM, command, pipeline):
        return measured, "measured"
    if pipeline == 1:
        return rate(rows, REDIS, "SETBIT", 1), "redis-server's SETBIT in its place"
    ping = rate(rows, REDIS, "PING", pipeline)
    share = SHARE_OF_PING[command]
    return None if ping is None else ping * share, f"{share:.3f} of redis-server's PING"


@contextlib.contextmanager
def serving(
    *arguments: str, http_port: str = "0", told: dict[str, int] | None = None
) -> Iterator[int]:
    """`bloomtide serve`, in memory if nothing else is said: its port; `told` gets all its ports."""
    command = [sys.executable, "-m", "bloomtide", "serve", "--json", "--port", "auto"]
    command += ["--http-port", http_port, "--set", "loglevel=warning"]
    with subprocess.Popen(
        [*command, *(arguments or ["--memory"])], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        try:
            ports = json.loads(process.stdout.readline())
            if told is not None:
                told.update(ports)
            yield int(ports["port"])
        finally:
            process.terminate()


@contextlib.contextmanager
def redis_serving(program: str) -> Iterator[int]:
    """redis-server in memory: its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    command = [program, "--port", str(port), "--save", "", "--appendonly", "no"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            if not any("Ready to accept connections" in line for line in process.stdout):
                raise SystemExit("redis-server did not start")
            yield port
        finally:
            process.terminate()


def prepare(port: int, commands: tuple[list[str], ...], host: str = "127.0.0.1") -> None:
    """Makes the structures with room for all keys: growing is not what is measured here."""
    with socket.create_connection((host, port), timeout=10) as connection:
        for words in commands:
            connection.sendall(" ".join(words).encode() + b"\r\n")
            reply = connection.recv(4096)
            if not reply.startswith(b"+OK"):
                raise SystemExit(f"{words[0]}: {reply.decode('utf-8', 'replace').strip()}")


def _speeds(program: str, places: list[Place], requests: int, rounds: int) -> list[ServerSpeed]:
    """The servers take turns, so that a busy moment of the machine meets all of them."""
    works = [
        (pipeline, number, place, name)
        for place in places
        for number, name in enumerate(place.commands)
        for pipeline in (1, DEEP)
    ]
    works.sort(key=lambda work: work[:2])
    best: dict[tuple[str, str, int], tuple[float, float]] = {}
    for _ in range(rounds):
        for pipeline, _, place, name in works:
            # A pipeline is so much quicker that it needs more commands for the same time.
            count = requests * (10 if pipeline > 1 else 1)
            found = run(program, place, place.commands[name], count, pipeline)
            key = (place.engine, name, pipeline)
            best[key] = max(found, best.get(key, found))
    return [ServerSpeed(*key, *best[key]) for key in sorted(best)]


def run(
    program: str, place: Place, words: list[str], count: int, pipeline: int
) -> tuple[float, float]:
    """Commands a second, and the 99th percentile of their latencies in milliseconds."""
    done = subprocess.run(
        [
            program, "-h", place.host, "-p", str(place.port), "-c", str(CLIENTS), "-n", str(count),
            "-P", str(pipeline), "-r", str(KEYS), "--csv", *words,
        ],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    row = dict(zip(*csv.reader(lines), strict=True))
    return float(row["rps"]), float(row["p99_latency_ms"])
