"""Bad input over a real socket: an error reply or a closed connection, and the server goes on."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.server.process import Running, Wire, request, running
from tests.waiting import until

WHOLE = request("BF.ADD", "filter", "an item") + request("PING")


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    arguments = ["--set", "client-output-seconds=1", "--set", "proto-max-bulk-len=1mb"]
    with running(None, *arguments) as server:
        yield server
        assert server.process.poll() is None, "the server ended"


def require_alive(server: Running) -> None:
    assert server.client().ping()


def test_a_request_cut_anywhere_is_waited_for_and_then_forgotten(server: Running) -> None:
    for length in range(len(WHOLE)):
        with server.wire() as wire:
            wire.send(WHOLE[:length])
            wire.socket.shutdown(socket.SHUT_WR)
            told = wire.rest()
            assert told in (b"", b":1\r\n", b":0\r\n"), (length, told)
    require_alive(server)


def test_a_request_may_come_byte_by_byte(server: Running) -> None:
    with server.wire() as wire:
        for place in range(len(WHOLE)):
            wire.send(WHOLE[place : place + 1])
        assert wire.line() in (b":0", b":1")
        assert wire.line() == b"+PONG"


@pytest.mark.parametrize(
    "data",
    [
        b"*9223372036854775808\r\n",
        b"*9223372036854775807\r\n",
        b"*-9223372036854775808\r\n$4\r\nPING\r\n",
        b"*1\r\n$9223372036854775807\r\n",
        b"*1\r\n$9223372036854775808\r\n",
        b"*2\r\n$4\r\nPING\r\n$-5\r\n",
        b"*1\r\n$1073741824\r\n",
        b"*1\r\n*1\r\n*1\r\n",
        b"*1\r\n:1\r\n",
        b"*x\r\n",
        b"*3\r\n$6\r\nBF.ADD\r\n$1\r\nk\r\n$99999999999999999999\r\n",
        b"\0" * 70_000,
        b"PING " + b"x" * 70_000,
    ],
)
def test_what_is_no_request_is_an_error_and_the_end(server: Running, data: bytes) -> None:
    with server.wire() as wire:
        try:
            wire.send(data)
            told = wire.rest() if not data.startswith(b"*-") else b"-"
        except OSError:  # it closed while we still wrote
            told = b"-"
        assert told == b"" or told.startswith(b"-")
    require_alive(server)


def test_replies_before_a_bad_request_still_come(server: Running) -> None:
    with server.wire() as wire:
        wire.send(request("PING") * 3 + b"*1\r\n$x\r\n")
        told = wire.rest()
    assert told.startswith(b"+PONG\r\n" * 3 + b"-ERR Protocol error")


def test_wrong_types_and_unknown_commands_are_errors(server: Running) -> None:
    with server.wire() as wire:
        wire.send(request("SET", "text", "x") + request("BF.ADD", "text", "x"))
        assert wire.line() == b"+OK"
        assert wire.line().startswith(b"-WRONGTYPE")
        wire.send(request("NOSUCH", "x") + request("BF.ADD") + request("PING"))
        assert wire.line().startswith(b"-ERR unknown command")
        assert wire.line().startswith(b"-ERR wrong number of arguments")
        assert wire.line() == b"+PONG"


def test_a_client_that_never_reads_is_closed_and_holds_nobody_up(server: Running) -> None:
    payload = b"x" * 1000
    with server.wire() as wire:
        wire.socket.settimeout(20)
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        closed = threading.Event()

        def flood() -> None:
            try:
                while True:
                    wire.send(request("ECHO", payload) * 64)
            except OSError:
                closed.set()

        flooding = threading.Thread(target=flood)
        flooding.start()
        client = server.client()
        until(lambda: client.ping() and closed.is_set())
        flooding.join(20)
        told = client.info("clients")
        assert told["client_recent_max_output_buffer"] < 100 << 20


def test_half_a_request_and_silence_holds_nobody_up(server: Running) -> None:
    waiting = [server.wire() for _ in range(50)]
    for wire in waiting:
        wire.send(request("BF.ADD", "filter", "x" * 100)[:-20])
    require_alive(server)
    for wire in waiting:
        wire.send(request("BF.ADD", "filter", "x" * 100)[-20:])
        assert wire.line() in (b":0", b":1")
        wire.close()


def test_silent_clients_are_closed_after_the_timeout() -> None:
    with running(None, "--set", "timeout=1") as server, server.wire() as wire:
        wire.send(request("PING"))
        assert wire.line() == b"+PONG"
        assert wire.rest() == b""


def test_wrong_passwords_are_slowed_and_counted_and_nobody_else_waits() -> None:
    options = {"BLOOMTIDE_PASSWORD": "secret"}
    with running(None, "--http-port", "auto", **options) as server:
        with server.client(password="secret") as client, server.wire() as wire:
            start = time.monotonic()
            wire.send(request("AUTH", "x") * 3 + request("AUTH", "secret") + request("PING"))
            assert client.ping()
            assert time.monotonic() - start < 0.3
            refused = [wire.raw_line() for _ in range(3)]
            # One connection waits ever longer, whatever it has sent already.
            assert time.monotonic() - start >= 0.05 + 0.1 + 0.2
            assert all(line.startswith(b"-WRONGPASS ") for line in refused)
            assert [wire.raw_line(), wire.raw_line()] == [b"+OK\r\n", b"+PONG\r\n"]
            # And so do all together.
            with contextlib.ExitStack() as stack:
                wires = [stack.enter_context(server.wire()) for _ in range(8)]
                start = time.monotonic()
                for each in wires:
                    each.send(request("AUTH", "default", "y"))
                assert all(each.raw_line().startswith(b"-WRONGPASS ") for each in wires)
            assert time.monotonic() - start >= 8 * 0.05
            assert client.info("stats")["acl_access_denied_auth"] == 11
        metrics = f"http://127.0.0.1:{server.ports['http_port']}/metrics"
        with urllib.request.urlopen(metrics, timeout=20) as told:
            assert b"bloomtide_auth_failures_total 11" in told.read()


@pytest.mark.parametrize(
    "line", [b"POST / HTTP/1.1\r\nHost: a\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n"]
)
def test_a_request_over_http_ends_the_connection(server: Running, line: bytes) -> None:
    with server.wire() as wire:
        wire.send(line + b"SET http 1\r\n")
        assert b"+OK" not in wire.rest()
    require_alive(server)
    assert server.client().exists("http") == 0


def test_who_does_not_show_its_password_is_closed() -> None:
    password = {"BLOOMTIDE_PASSWORD": "secret"}
    with running(None, "--set", "auth-timeout=1", **password) as server, server.wire() as known:
        known.send(request("AUTH", "secret"))
        assert known.line() == b"+OK"
        with server.wire() as stranger:
            assert stranger.rest() == b""
        known.send(request("PING"))
        assert known.line() == b"+PONG"


def test_too_many_clients_are_told_so() -> None:
    with running(None, "--set", "maxclients=3") as server:
        waiting = [server.wire() for _ in range(3)]
        for wire in waiting:
            wire.send(request("PING"))
            assert wire.line() == b"+PONG"
        with server.wire() as fourth:
            assert fourth.rest() == b"-ERR max number of clients reached\r\n"
        waiting.pop().close()
        while True:  # the server learns of the close a moment later
            with server.wire() as fourth:
                fourth.send(request("PING"))
                if fourth.line() == b"+PONG":
                    break
        for wire in waiting:
            wire.close()


def test_nothing_is_allocated_beyond_maxmemory() -> None:
    with running(None, "--maxmemory", "10mb") as server, server.wire() as wire:
        wire.send(request("BF.RESERVE", "big", "0.000001", "1000000000"))
        assert wire.line().startswith(b"-")
        wire.send(request("BF.RESERVE", "small", "0.01", "1000"))
        assert wire.line() == b"+OK"


def test_no_key_is_made_beyond_maxkeys(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--maxkeys", "3") as server:
        client = server.client()
        for name in ("a", "b", "c"):
            assert client.execute_command("BF.ADD", name, "x") == 1
        for words in (["BF.ADD", "d", "x"], ["COUNT.RESERVE", "d", "100", "0.01"]):
            with pytest.raises(redis.ResponseError, match="'maxkeys' is 3; DEL one"):
                client.execute_command(*words)
        assert client.info("memory")["maxkeys"] == 3
        assert client.config_set("maxkeys", 4)
        assert client.config_get("maxkeys") == {"maxkeys": "4"}
        assert client.execute_command("BF.ADD", "d", "x") == 1
        server.kill()
    with running(tmp_path / "data", "--maxkeys", "1") as server:
        client = server.client()
        assert client.dbsize() == 4, "what is there stays"
        assert client.execute_command("BF.ADD", "d", "y") == 1
        with pytest.raises(redis.ResponseError, match="'maxkeys' is 1"):
            client.execute_command("BF.ADD", "e", "x")
        assert client.delete("a", "b", "c", "d") == 4
        assert client.execute_command("BF.ADD", "e", "x") == 1
        client.execute_command("HISTORY.RESERVE", "web")
        with pytest.raises(redis.ResponseError, match="histories reached: 'maxkeys' is 1"):
            client.execute_command("HISTORY.RESERVE", "shop")
        assert client.execute_command("HISTORY.LIST") == [b"web"]
        client.config_set("maxkeys", 0)
        client.execute_command("HISTORY.RESERVE", "shop")


def add_until_refused(client: Any) -> tuple[int, str]:
    """Numbers from 0 on: how many were acknowledged, and why the next one was not."""
    acknowledged = 0
    try:
        while True:
            assert client.execute_command("BF.ADD", "seen", str(acknowledged)) == 1
            acknowledged += 1
    except redis.ResponseError as refusal:
        return acknowledged, str(refusal)


@pytest.mark.parametrize("mode", ["always", "everysec"])
def test_a_full_disk_refuses_changes_and_loses_nothing_acknowledged(
    tmp_path: Path, mode: str
) -> None:
    with running(tmp_path / "data", "--appendfsync", mode) as server:
        client = server.client()
        client.execute_command("BF.RESERVE", "seen", "1e-6", "100000")
        # The system refuses to make any file longer than that.
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (30_000, 30_000))
        acknowledged, reason = add_until_refused(client)
        assert acknowledged > 100
        assert "MISCONF" in reason
        assert "File too large" in reason
        client = server.client()
        assert client.execute_command("BF.EXISTS", "seen", "0") == 1
        with pytest.raises(redis.ResponseError, match="takes no more changes"):
            client.execute_command("BF.ADD", "seen", "more")
        assert client.info("persistence")["aof_last_write_status"] == "err"
        code, told = server.stop()
        assert code == 0
        assert "the journal failed" in told
    with running(tmp_path / "data") as server:
        client = server.client()
        assert acknowledged <= client.execute_command("BF.CARD", "seen") <= acknowledged + 1
        asked = [str(number) for number in range(acknowledged)]
        assert all(client.execute_command("BF.MEXISTS", "seen", *asked))


@pytest.mark.skipif(not os.environ.get("BLOOMTIDE_CLIENTS"), reason="a part of `make kills`")
def test_ten_thousand_idle_clients_are_held() -> None:
    wanted = int(os.environ["BLOOMTIDE_CLIENTS"])
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    idle: list[Wire] = []
    with running(None, "--set", f"maxclients={wanted + 10}") as server:
        for _ in range(wanted):
            idle.append(server.wire())
        client = server.client()
        assert client.info("clients")["connected_clients"] == wanted + 1
        for wire in (idle[0], idle[-1]):
            wire.send(request("PING"))
            assert wire.line() == b"+PONG"
        for wire in idle:
            wire.close()
