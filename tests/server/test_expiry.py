"""Names that expire, with a real clock, a journal and kills."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.server.process import running
from tests.waiting import until


def test_what_has_expired_stays_gone_and_what_has_not_keeps_its_time(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--appendfsync", "always") as server:
        client: Any = server.client()
        client.bf().add("late", "x")
        client.bf().add("soon", "x")
        client.bf().add("kept", "x")
        end = int(time.time() * 1000) + 300_000
        assert client.pexpireat("late", end)
        assert client.pexpire("soon", 50)
        assert client.expire("kept", 100)
        assert client.persist("kept")
        until(lambda: not client.exists("soon"))
        server.kill()
    for _ in range(2):  # from the journal, then from the snapshot of a stop
        with running(tmp_path / "data") as server:
            client = server.client()
            assert client.exists("soon") == 0
            assert client.pexpiretime("late") == end
            assert client.ttl("kept") == -1
            assert client.bf().exists("late", "x") == 1
            server.stop()


def test_what_expired_while_nothing_ran_is_gone(tmp_path: Path) -> None:
    with running(tmp_path / "data") as server:
        client: Any = server.client()
        client.set("a", "x", px=200)
        end = time.time() + 0.2
        server.kill()
    until(lambda: time.time() > end)
    with running(tmp_path / "data") as server:
        assert server.client().get("a") is None


@pytest.mark.parametrize("arguments", [["--appendfsync", "always"], None], ids=["disk", "memory"])
def test_names_that_nobody_asks_for_expire_too(tmp_path: Path, arguments: list[str] | None) -> None:
    directory = None if arguments is None else tmp_path / "data"
    with running(directory, *(arguments or [])) as server:
        client: Any = server.client()
        with client.pipeline(transaction=False) as pipe:
            for number in range(5000):
                pipe.set(f"key {number}", "x", px=100)
            pipe.set("stays", "x", ex=1000)
            pipe.execute()
        until(lambda: client.info("keyspace")["db0"]["keys"] == 1)
        told = client.info()
        assert told["expired_keys"] == 5000
        assert told["db0"]["expires"] == 1
        assert 0 < told["db0"]["avg_ttl"] <= 1_000_000
