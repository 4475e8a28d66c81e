"""How long `bloomtide serve` takes to answer at half of the rate it can reach.

A load is open: each request has a moment at which it leaves, whether or not earlier ones were
answered, and its latency counts from that moment to its last reply. A server that stands still for
a while is charged for everyone who would have asked meanwhile. The client's own lag counts too.

    python -m benchmarks.paced
"""

from __future__ import annotations

import contextlib
import resource
import select
import shutil
import socket
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from benchmarks.markdown import table
from benchmarks.server import (
    CLIENTS,
    DEEP,
    KEYS,
    OURS_TOO,
    SERVE,
    SETUP,
    Place,
    prepare,
    run,
    serving,
)

COMMAND = "BF.ADD"
HALF = 0.5
LIMIT_MS = 10.0
BUSY, IDLE = 1_000, 10_000
_ROUNDS = 2
_NAP = 5e-5
"""Seconds that the client rests when nothing has come; a wait of epoll's is a millisecond."""
_DIFFERENT = 4096
"""Requests that are made before, and sent in turn."""
_LARGE = ["BF.RESERVE", "large", "0.01", "100000000"]
"""125 MB for the child that writes a snapshot, and a page table of that size for the fork."""
Beside = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Latency:
    """What a load was like, and how long its requests took."""

    load: str
    pipeline: int
    clients: int
    per_second: float
    """Commands that were due in a second."""
    p50_ms: float
    p99_ms: float
    worst_ms: float


@dataclass(slots=True, eq=False)
class _Connection:
    socket: socket.socket
    due: deque[float] = field(default_factory=deque)
    """When the requests should have left that are not answered."""
    come: int = 0
    """Bytes of replies that are not a whole batch."""
    left: bytes = b""
    """What the socket did not take."""

    def send(self, data: bytes) -> bool:
        """Did all of it leave?"""
        self.left += data
        with contextlib.suppress(BlockingIOError):
            self.left = self.left[self.socket.send(self.left) :]
        return not self.left


def latencies(
    requests: int, seconds: float, *, busy: int = BUSY, idle: int = IDLE
) -> list[Latency]:
    """Every load; none if there is no redis-benchmark to find the rates of which half is taken."""
    program = shutil.which("redis-benchmark")
    if program is None:
        return []
    found = []
    for pipeline in (1, DEEP):
        work = _Work(program, pipeline, requests * (10 if pipeline > 1 else 1), seconds)
        with serving("--memory", "--set", f"maxclients={busy + idle + 100}") as port:
            half = work.half_of_most(port)
            found.append(work.latency("nothing", port, half))
            if pipeline == 1:
                with _idle(port, idle):
                    load = f"{idle:,} idle connections"
                    found.append(work.latency(load, port, half, clients=busy))
        with tempfile.TemporaryDirectory() as directory, serving("--dir", directory) as port:
            half = work.half_of_most(port)
            with _every_second(port, b"BGSAVE\r\n") as beside:
                load = "a journal, and a snapshot of 126 MB each second"
                found.append(work.latency(load, port, half, beside=beside))
        ports: dict[str, int] = {}
        with serving("--memory", http_port="auto", told=ports) as port:
            half = work.half_of_most(port)
            asking = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            with _every_second(ports["http_port"], asking) as beside:
                load = "/metrics asked each second"
                found.append(work.latency(load, port, half, beside=beside))
    return found


@dataclass(frozen=True, slots=True)
class _Work:
    program: str
    pipeline: int
    requests: int
    seconds: float

    def half_of_most(self, port: int) -> float:
        """Makes the filters, and finds the rate by clients that do not wait."""
        prepare(port, (*SETUP, _LARGE))
        place = Place(SERVE, "127.0.0.1", port, OURS_TOO)
        rounds = [
            run(self.program, place, OURS_TOO[COMMAND], self.requests, self.pipeline)[0]
            for _ in range(_ROUNDS)
        ]
        return HALF * max(rounds)

    def latency(
        self, load: str, port: int, per_second: float,
        *, clients: int = CLIENTS, beside: Beside | None = None,
    ) -> Latency:  # fmt: skip
        """One load; the first tenth of it warms up and is not counted."""
        with contextlib.ExitStack() as stack:
            connections = [
                _Connection(stack.enter_context(socket.create_connection(("127.0.0.1", port))))
                for _ in range(clients)
            ]
            for each in connections:
                each.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                each.socket.setblocking(False)
            batches = per_second / self.pipeline
            found = _drive(connections, _requests(self.pipeline), batches, self.seconds, beside)
        found.sort()
        p50, p99 = (found[int(len(found) * share)] * 1e3 for share in (0.5, 0.99))
        return Latency(load, self.pipeline, clients, per_second, p50, p99, found[-1] * 1e3)


def _requests(pipeline: int) -> list[bytes]:
    """Batches of commands with keys of one length, spread over all of them."""
    step = KEYS // _DIFFERENT
    made = []
    for number in range(_DIFFERENT):
        keys = ((number * step + i * 7919) % KEYS for i in range(pipeline))
        one = b"*3\r\n$6\r\nBF.ADD\r\n$4\r\nseen\r\n$12\r\n%012d\r\n"
        made.append(b"".join(one % key for key in keys))
    return made


def _drive(
    connections: list[_Connection], requests: list[bytes], batches: float, seconds: float,
    beside: Beside | None,
) -> list[float]:  # fmt: skip
    """Sends each batch when it is due and notes when its last reply came; latencies in seconds."""
    clock = time.perf_counter
    size = 4 * requests[0].count(b"BF.ADD")  # `:0` or `:1`, and the end of the line
    by_file = {each.socket.fileno(): each for each in connections}
    ready = select.epoll()
    for file in by_file:
        ready.register(file, select.EPOLLIN)
    found: list[float] = []
    held: set[_Connection] = set()
    start = clock() + 0.01
    counted, end = start + seconds / 10, start + seconds
    sent, waiting, next_beside = 0, 0, start
    due = start
    with contextlib.closing(ready):
        while due < end or waiting:
            now = clock()
            if now > end + 30:
                raise SystemExit(f"{waiting} replies did not come")
            while due <= now and due < end:
                connection = connections[sent % len(connections)]
                request = requests[sent % _DIFFERENT]
                if not connection.send(request):
                    held.add(connection)
                connection.due.append(due)
                sent, waiting = sent + 1, waiting + 1
                due = start + sent / batches
            if held:
                held = {each for each in held if not each.send(b"")}
            if beside is not None and now >= next_beside:
                next_beside += 1.0
                beside()
            come = ready.poll(0)
            if not come:
                time.sleep(_NAP)
            for file, _ in come:
                connection = by_file[file]
                connection.come += len(connection.socket.recv(1 << 16))
                now = clock()
                while connection.come >= size:
                    connection.come -= size
                    waiting -= 1
                    left = connection.due.popleft()
                    if left >= counted:
                        found.append(now - left)
    return found


@contextlib.contextmanager
def _every_second(port: int, request: bytes) -> Iterator[Beside]:
    """Sends one request more on a connection of its own; its answers are read and forgotten."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setblocking(False)

        def beside() -> None:
            with contextlib.suppress(BlockingIOError):
                while connection.recv(1 << 20):
                    pass
            connection.send(request)

        yield beside


@contextlib.contextmanager
def _idle(port: int, count: int) -> Iterator[None]:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        yield


def shown(rows: list[Latency]) -> str:
    """The table."""
    cells = [
        [row.load, f"{row.pipeline}", f"{row.clients:,}", f"{row.per_second:,.0f}",
         f"{row.p50_ms:.2f}", f"{row.p99_ms:.2f}", f"{row.worst_ms:.1f}"]
        for row in rows
    ]  # fmt: skip
    heads = ["beside the load", "-P", "connections", "commands a second", "p50, ms", "p99, ms"]
    return table(cells, [*heads, "worst, ms"])


def main() -> int:
    """Measures all loads; 1 if one takes longer than the limit."""
    rows = latencies(100_000, 8.0)
    if not rows:
        raise SystemExit("the program `redis-benchmark` is not installed")
    print(shown(rows))
    return int(any(row.p99_ms > LIMIT_MS for row in rows))


if __name__ == "__main__":
    sys.exit(main())
