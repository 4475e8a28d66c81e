"""Limits that pages name, asked for at the limit and one beyond it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import run
from tests.resp.test_dialogues import Conversation


@pytest.mark.parametrize("seconds", [59, 100, 101, 3600, 86_400, 86_400 * 365, 86_400 * 3650])
def test_a_series_has_at_most_a_hundred_steps(tmp_path: Path, seconds: int) -> None:
    start = 1_700_000_000
    lines = [{"at": start, "page": "/a"}, {"at": start + seconds - 1, "page": "/b"}]
    log = "".join(json.dumps(line) + "\n" for line in lines).encode()
    named = "time=at,path=page"
    run("history", "ingest", tmp_path / "s", "--window", "1s", "--format", "json",
        "--json-map", named, stdin=log)  # fmt: skip
    span = ("--start", str(start), "--end", str(start + seconds))
    rows = run("history", "series", tmp_path / "s", *span, "--json").stdout.splitlines()
    assert 1 <= len(rows) <= 100
    assert sum(json.loads(row)["upper"] for row in rows) >= 2


def test_the_limits_are_those_of_the_page() -> None:
    http = pytest.importorskip("bloomtide.server.http.parts", reason="no extra `server`")
    questions = pytest.importorskip("bloomtide.server.http.questions")
    limits = http.Limits()
    assert (limits.body, limits.streams, limits.labels) == (64 << 20, 64, 200)
    assert questions.STEPS == 1000
    talk = Conversation(2)
    talk.say("TOPK.RESERVE t 2")
    assert talk.say("TOPK.INCRBY t a 100000").startswith("*1")
    assert "smaller or equal to 100,000" in talk.say("TOPK.INCRBY t a 100001")


@pytest.mark.parametrize("level", ["info", "warning"])
def test_the_server_logs_no_key(tmp_path: Path, level: str) -> None:
    pytest.importorskip("uvicorn", reason="the extra `server` is not installed")
    pytest.importorskip("redis", reason="redis-py is not installed")
    from tests.server.process import Running, request

    server = Running(tmp_path / "data", "--set", f"loglevel={level}")
    with server.wire() as wire:
        for words in (
            ("BF.ADD", "name", "hidden-key"),
            ("BF.ADD", "name"),
            ("COUNT.RESERVE", "counts", "10", "0.01"),
            ("COUNT.ADD", "counts", "hidden-key", "nonsense"),
            ("COUNT.REMOVE", "counts", "hidden-key", "5"),
            ("NONSENSE", "hidden-key"),
            ("DECAY.ADD", "counts", "hidden-key"),
        ):
            wire.send(request(*words))
            assert wire.line()
        wire.send(b"hidden-key\r\n*1\r\nhidden-key\r\n")
        assert wire.line()
        wire.rest()
    _, told = server.stop()
    assert "hidden-key" not in told
    for file in (tmp_path / "data").rglob("*.log"):
        assert b"hidden-key" not in file.read_bytes()
