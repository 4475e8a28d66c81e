"""A server in a thread, and a client that says what it got."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.applications import Starlette

from bloomtide.server.http import Limits, create_app
from tests.waiting import until


@dataclass(frozen=True)
class Settings:
    http_token: str | None = None


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> Any:
        """Of a reply that must be an error."""
        assert self.status >= 400
        return self.json["error"]


@dataclass(frozen=True)
class Served:
    port: int
    app: Starlette

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self) -> closing[http.client.HTTPConnection]:
        return closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30))

    def send(
        self, path: str, body: bytes | None = None, *, method: str | None = None, **headers: str
    ) -> Reply:
        """A request; names of headers are written with underscores."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with self.connect() as connection:
            connection.request(method or ("GET" if body is None else "POST"), path, body, named)
            got = connection.getresponse()
            return Reply(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read())


@contextmanager
def serve(
    *, monitor: Any = None, keyspace: Any = None, token: str | None = None,
    limits: Limits | None = None, port: int = 0, **more: Any,
) -> Iterator[Served]:  # fmt: skip
    """Until the block ends; streams that are open then are ended."""
    app = create_app(
        monitor=monitor, keyspace=keyspace, settings=Settings(token), limits=limits, **more
    )
    with closing(socket.create_server(("127.0.0.1", port))) as listening:
        # As in `server/run.py`: uvicorn would wait for ever for a connection that a browser opens
        # while it stops and then leaves idle.
        config = uvicorn.Config(
            app, log_level="error", access_log=False, lifespan="on", timeout_graceful_shutdown=5
        )
        server = uvicorn.Server(config)

        def run() -> None:
            asyncio.run(server.serve(sockets=[listening]))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        until(lambda: server.started or not thread.is_alive())
        assert server.started
        try:
            yield Served(listening.getsockname()[1], app)
        finally:
            app.state.live.stop()
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive(), "the server did not stop"
