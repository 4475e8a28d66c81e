"""The whole program: `bloomtide serve` tells over HTTP what it was told over the Redis protocol."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing

import pytest

pytest.importorskip("starlette", reason="Starlette is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("redis", reason="redis-py is not installed")

from tests.server.process import Running

TOKEN = "a-long-token"


@pytest.fixture
def server() -> Iterator[Running]:
    server = Running(None, "--http-port", "auto", BLOOMTIDE_HTTP_TOKEN=TOKEN)
    yield server
    if server.process.returncode is None:
        server.kill()


def get(server: Running, path: str, token: str | None = TOKEN) -> tuple[int, str]:
    with closing(
        http.client.HTTPConnection("127.0.0.1", server.ports["http_port"], timeout=20)
    ) as connection:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        connection.request("GET", path, headers=headers)
        reply = connection.getresponse()
        return reply.status, reply.read().decode()


def test_filters_made_by_one_protocol_are_told_by_the_other(server: Running) -> None:
    client = server.client()
    client.bf().reserve("crawl", 0.01, 1000)
    client.bf().madd("crawl", *(f"/{i}" for i in range(100)))
    client.close()
    status, text = get(server, "/api/structures")
    assert status == 200
    [crawl] = json.loads(text)["items"]
    assert (crawl["of"], crawl["name"]) == ("keyspace", "crawl")
    assert 90 <= crawl["items"] <= 110
    assert json.loads(get(server, "/api/stats")[1])["keyspace"]["keys"] == 1
    told = get(server, "/metrics", token=None)[1]
    assert 'bloomtide_commands_total{cmd="bf.madd",status="ok"} 1' in told
    assert 'bloomtide_filter_memory_bytes{name="crawl"' in told
    assert "bloomtide_connections_total 1" in told
    assert get(server, "/api/stats", token=None)[0] == 401
    assert get(server, "/readyz", token=None) == (200, "ok\n")
    assert "<title>bloomtide</title>" in get(server, "/", token=None)[1]


def test_sigterm_ends_a_server_that_somebody_listens_to(server: Running) -> None:
    with closing(
        http.client.HTTPConnection("127.0.0.1", server.ports["http_port"], timeout=20)
    ) as connection:
        connection.request("GET", "/api/live", headers={"Authorization": f"Bearer {TOKEN}"})
        reply = connection.getresponse()
        assert reply.readline().startswith(b"id: ")
        code, told = server.stop()
        reply.read()
    assert code == 0
    assert TOKEN not in told
    assert "Traceback" not in told
