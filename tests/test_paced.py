"""The long loads: a server that stands still is charged for all who waited, and a leak is seen."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

pytest.importorskip("bloomtide._core", reason="bloomtide is not built")

from benchmarks import paced, soak

RATE, SECONDS, HELD = 1_000, 1.0, 200
STALL = HELD / RATE
"""Seconds at least: the last request that is waited for is not due earlier."""


@contextlib.contextmanager
def answering(held: int) -> Iterator[int]:
    """Answers every command with `:1`; in the middle it first waits for so many more. Its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                middle = int(RATE * SECONDS / 2)
                come = answered = 0
                while data := connection.recv(1 << 16):
                    come += data.count(b"BF.ADD")
                    ready = come if come >= middle + held else min(come, middle)
                    connection.sendall(b":1\r\n" * (ready - answered))
                    answered = ready

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(30)


def test_a_server_that_stands_still_is_charged_for_everyone_who_would_have_asked() -> None:
    with answering(HELD) as port:
        work = paced._Work("", 1, 0, SECONDS)
        row = work.latency("nothing", port, RATE, clients=1)
    # The request behind the middle waited for all of the stall, the next 20 for nine tenths.
    assert row.worst_ms >= 1e3 * STALL * 0.99
    assert row.p99_ms >= 1e3 * STALL * 0.9
    assert row.p50_ms <= row.p99_ms


def test_a_batch_counts_until_its_last_reply() -> None:
    with answering(0) as port:
        work = paced._Work("", 64, 0, 0.3)
        row = work.latency("nothing", port, 6400, clients=1)
    assert 0 < row.p50_ms <= row.p99_ms <= row.worst_ms
    assert (row.pipeline, row.clients, row.per_second) == (64, 1, 6400)


def test_memory_is_flat_or_it_is_not() -> None:
    warm = list(range(50, 100))
    flat = [*warm, *[100, 101] * 75]
    assert soak.growth(flat) <= soak.FLAT
    leaking = [*warm, *range(100, 250)]
    assert soak.growth(leaking) > soak.FLAT
    assert soak.growth([1]) == 1.0
