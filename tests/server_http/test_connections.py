"""Clients of HTTP that are slow, silent or too many: closed, and nobody else notices."""

from __future__ import annotations

import contextlib
import socket
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from bloomtide.server.http.connections import Watch
from tests.server.process import Running, running

HEAD = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@dataclass(eq=False)
class Transport:
    """A transport that only tells."""

    waiting: int = 0
    aborted: bool = False

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True


@dataclass(eq=False)
class Cycle:
    response_complete: bool = False


@dataclass(eq=False)
class Connection:
    transport: Transport = field(default_factory=Transport)
    cycle: Cycle | None = None


@dataclass
class Patience:
    http_timeout: int = 10
    client_output_seconds: int = 30


def looked_at(connection: Connection, *moments: float) -> Connection:
    watch = Watch()
    for now in moments:
        watch.look([connection], Patience(), now)  # type: ignore[list-item]  # it is like one
    return connection


def test_who_sends_no_whole_head_is_closed() -> None:
    assert not looked_at(Connection(), 0, 5, 10).transport.aborted
    assert looked_at(Connection(), 0, 5, 10.1).transport.aborted
    assert looked_at(Connection(cycle=Cycle(response_complete=True)), 0, 11).transport.aborted


def test_who_waits_for_an_answer_is_not_closed() -> None:
    assert not looked_at(Connection(cycle=Cycle()), 0, 11, 1000).transport.aborted


def test_who_does_not_read_is_closed_and_who_reads_slowly_is_not() -> None:
    stuck = Connection(Transport(waiting=100), Cycle())
    assert not looked_at(stuck, 0, 30).transport.aborted
    assert looked_at(stuck, 0, 30.1).transport.aborted
    slow, watch = Connection(Transport(waiting=100), Cycle()), Watch()
    for now in range(0, 100, 10):
        slow.transport.waiting -= 1
        watch.look([slow], Patience(), now)  # type: ignore[list-item]  # it is like one
    assert not slow.transport.aborted


def test_a_second_request_has_its_own_time() -> None:
    connection, watch = Connection(cycle=Cycle(response_complete=True)), Watch()
    watch.look([connection], Patience(), 0)  # type: ignore[list-item]  # it is like one
    connection.cycle = Cycle()
    watch.look([connection], Patience(), 9)  # type: ignore[list-item]  # it is like one
    connection.cycle.response_complete = True
    watch.look([connection], Patience(), 12)  # type: ignore[list-item]  # it is like one
    watch.look([connection], Patience(), 22)  # type: ignore[list-item]  # it is like one
    assert not connection.transport.aborted


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    limits = ["--set", "http-maxclients=3", "--set", "http-timeout=1"]
    with running(None, "--http-port", "auto", *limits) as made:
        yield made


def connected(server: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.ports["http_port"]), timeout=30)


def require_answer(server: Running) -> None:
    address = f"http://127.0.0.1:{server.ports['http_port']}/livez"
    with urllib.request.urlopen(address, timeout=30) as answer:
        assert answer.read() == b"ok\n"


def test_a_silent_client_and_half_a_head_are_closed_by_the_server(server: Running) -> None:
    with connected(server) as silent, connected(server) as half:
        half.sendall(HEAD)
        require_answer(server)
        assert gone(silent)
        assert gone(half)
    require_answer(server)


def gone(connection: socket.socket) -> bool:
    """Waits for the end, which the server makes by an abort."""
    try:
        return connection.recv(100) == b""
    except ConnectionResetError:
        return True


def test_a_connection_too_many_is_told_so_and_leaves_room_later(server: Running) -> None:
    held = [connected(server) for _ in range(3)]
    for each in held:
        each.sendall(HEAD + b"\r\n")
        assert each.recv(1000).startswith(b"HTTP/1.1 200")
    with connected(server) as fourth:
        assert fourth.recv(1000).startswith(b"HTTP/1.1 503")
        assert fourth.recv(1000) == b""
    for each in held:
        each.close()
    while not answered(server):  # the server learns of the close a moment later
        pass


def answered(server: Running) -> bool:
    with connected(server) as again, contextlib.suppress(ConnectionError):
        again.sendall(HEAD + b"\r\n")
        return again.recv(1000).startswith(b"HTTP/1.1 200")
    return False
