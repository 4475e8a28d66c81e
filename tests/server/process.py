"""A real server in a process of its own, and a socket to speak to it byte by byte."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

ROOT = Path(__file__).resolve().parents[2]


class Running:
    """`bloomtide serve` on a port that the system chose."""

    def __init__(self, directory: Path | None, *arguments: str, **environment: str) -> None:
        place = ["--memory"] if directory is None else ["--dir", str(directory)]
        ports = [] if "--http-port" in arguments else ["--http-port", "0"]
        command = [sys.executable, "-m", "bloomtide", "serve", "--json", "--port", "auto"]
        self.process = subprocess.Popen(
            [*command, *place, *ports, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | environment,
        )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"the server did not start: {self.ended()[1]}")
        self.ports: dict[str, int] = json.loads(line)
        self.port = self.ports["port"]

    def client(self, **options: Any) -> Any:
        """redis-py, connected to it; its types know only a part of what it answers.

        What fails is not tried again: redis-py would rest for seconds between.
        """
        defaults: dict[str, Any] = {"protocol": 2, "retry": Retry(NoBackoff(), 0)}
        return redis.Redis(host="127.0.0.1", port=self.port, **(defaults | options))

    def wire(self) -> Wire:
        """A bare connection."""
        return Wire(socket.create_connection(("127.0.0.1", self.port), timeout=20))

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.ended()

    def stop(self) -> tuple[int, str]:
        """SIGTERM: the exit code, and what it said."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self) -> tuple[int, str]:
        """Waits for the end: the exit code, and what it said."""
        _, told = self.process.communicate(timeout=60)
        return self.process.returncode, told.decode()


class Wire:
    """A connection to which anything may be written."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._file = connection.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def raw_line(self) -> bytes:
        """The next line; empty if the server closed."""
        return self._file.readline()

    def line(self) -> bytes:
        """The same without its end."""
        return self.raw_line().rstrip(b"\r\n")

    def rest(self) -> bytes:
        """All that comes until the server closes, which it must."""
        with contextlib.suppress(ConnectionResetError):
            return self._file.read()
        return b""

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def request(*words: str | bytes) -> bytes:
    """A command as clients send it."""
    parts = [word.encode() if isinstance(word, str) else word for word in words]
    bulks = b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
    return b"*%d\r\n%s" % (len(parts), bulks)


@contextlib.contextmanager
def running(directory: Path | None, *arguments: str, **environment: str) -> Iterator[Running]:
    """A server for as long as the block lasts; killed at the end if it still runs."""
    server = Running(directory, *arguments, **environment)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.kill()
        assert server.process.stdout is not None
        assert server.process.stderr is not None
        server.process.stdout.close()
        server.process.stderr.close()
