"""Who may ask, what browsers are told, health, and figures for Prometheus."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("starlette", reason="Starlette is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")

from prometheus_client.parser import text_string_to_metric_families

from bloomtide import errors
from bloomtide.errors import BloomtideError, list_error_codes
from bloomtide.server.http import Limits
from bloomtide.server.http.app import PAGE, page_files
from bloomtide.server.http.failures import describe, status_of
from bloomtide.server.http.parts import Family
from tests.server.resp import Talk
from tests.server_http.events import EVENTS, open_monitor
from tests.server_http.keys import Keys
from tests.server_http.serving import Served, serve

TOKEN = "a-long-token"
DATA = ("/api/stats", "/api/hot", "/api/live", "/api/seen?key=/page/0", "/openapi.json")
HEALTH = ("/livez", "/readyz", "/healthz")


@pytest.fixture(scope="module")
def monitor() -> Iterator[Any]:
    with open_monitor(None) as monitor:
        yield monitor


@pytest.fixture(scope="module")
def closed(monitor: Any) -> Iterator[Served]:
    with serve(monitor=monitor, token=TOKEN) as served:
        yield served


@pytest.fixture(scope="module")
def open_to_all(monitor: Any) -> Iterator[Served]:
    with serve(monitor=monitor) as served:
        yield served


@pytest.mark.parametrize("path", DATA)
@pytest.mark.parametrize(
    "sent", ["", "Bearer", "Bearer wrong", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer é"]
)
def test_without_the_token_there_is_no_answer(closed: Served, path: str, sent: str) -> None:
    headers = {"Authorization": sent.encode("latin-1").decode("latin-1")} if sent else {}
    reply = closed.send(path, None, **headers)
    assert (reply.status, reply.error["field"]) == (401, "Authorization")
    assert reply.headers["www-authenticate"] == "Bearer"
    assert TOKEN not in reply.body.decode()


def test_with_the_token_there_is(closed: Served) -> None:
    for scheme in ("Bearer", "bearer"):
        reply = closed.send("/api/stats", Authorization=f"{scheme} {TOKEN}")
        assert reply.json["monitor"]["events"] == EVENTS
    body = b'{"key": "/page/0"}'
    assert closed.send("/api/query", body, Content_Type="application/x-ndjson").status == 401


def test_the_page_and_health_need_no_token_and_hold_no_data(closed: Served) -> None:
    for path in (*page_files(), *HEALTH, "/metrics"):
        assert closed.send(path).status == 200


def test_health_and_metrics_can_be_closed_too(monitor: Any) -> None:
    limits = Limits(public=frozenset())
    with serve(monitor=monitor, token=TOKEN, limits=limits) as served:
        for path in (*HEALTH, "/metrics"):
            assert served.send(path).status == 401
            assert served.send(path, Authorization=f"Bearer {TOKEN}").status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8380", "127.0.0.1.evil.example", ""]
)
def test_without_a_token_a_foreign_name_for_this_machine_is_refused(
    open_to_all: Served, host: str
) -> None:
    reply = open_to_all.send("/api/stats", Host=host)
    assert (reply.status, reply.error["field"]) == (421, "Host")


@pytest.mark.parametrize("host", ["127.0.0.1:80", "localhost", "LOCALHOST:1", "[::1]", "[::1]:80"])
def test_addresses_and_localhost_are_welcome(open_to_all: Served, host: str) -> None:
    assert open_to_all.send("/api/stats", Host=host).status == 200


def test_every_reply_tells_browsers_to_be_strict(open_to_all: Served) -> None:
    for path in ("/", "/main.js", "/api/stats", "/api/nothing", "/livez"):
        headers = open_to_all.send(path).headers
        assert headers["content-security-policy"].startswith("default-src 'self';")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] in ("no-cache", "no-store")
    assert "access-control-allow-origin" not in open_to_all.send("/api/stats").headers


def test_the_page_is_small_and_asks_nobody_else() -> None:
    files = list(PAGE.iterdir())
    assert {file.suffix for file in files} == {".html", ".css", ".js", ".svg"}
    assert sum(file.stat().st_size for file in files) < 64_000
    for file in files:
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text
        assert "https://" not in text
        assert "innerHTML" not in text


def test_the_page_has_words_for_every_kind_of_structure() -> None:
    talk = Talk()
    for words in (
        "BF.RESERVE a 0.1 10", "BF.RESERVE b 0.1 10 NONSCALING", "CF.RESERVE c 10", "SET d x",
        "CMS.INITBYDIM e 9 3", "TOPK.RESERVE f 3", "URL.RESERVE g 10 0.1",
        "DECAY.RESERVE h 10 0.1 HALFLIFE 10m", "COUNT.RESERVE i 10 0.1",
        "COUNT.RESERVE j 10 0.1 KIND DCF", "COUNT.RESERVE k 10 0.1 KIND SBF",
        "COUNT.RESERVE l 10 0.1 KIND PSBF", "COUNT.RESERVE m 10 0.1 KIND COUNTING",
    ):  # fmt: skip
        assert talk(*words.split()) == "OK"
    kinds = {str(each["kind"]) for each in talk.keyspace.structures()}
    with open_monitor(None) as monitor:
        kinds |= {each.kind for each in monitor.stats().structures}
    assert len(kinds) > 10
    known = (PAGE / "live.js").read_text()
    assert [kind for kind in kinds if f" {kind}: " not in known] == []


def test_ready_is_told_by_the_status() -> None:
    keys = Keys()
    reason: list[str | None] = [None]
    with serve(keyspace=keys, ready=lambda: reason[0]) as served:
        assert served.send("/readyz").status == 200
        keys.loading = True
        loading = served.send("/readyz")
        assert (loading.status, loading.body) == (503, b"loading\n")
        assert b"bloomtide_loading 1" in served.send("/metrics").body
        assert served.send("/livez").status == 200
        keys.loading = False
        keys.read_only = "the journal failed"
        assert served.send("/readyz").body == b"the journal failed\n"
        keys.read_only = None
        reason[0] = "not yet"
        assert served.send("/readyz").status == 503


def test_a_monitor_that_failed_is_not_ready(
    monitor: Any, open_to_all: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert open_to_all.send("/readyz").status == 200
    monkeypatch.setattr(type(monitor), "failure", "the disk is full")
    assert open_to_all.send("/readyz").body == b"the disk is full\n"


def metrics(served: Served) -> dict[str, dict[tuple[str, ...], float]]:
    """What Prometheus' own parser reads."""
    reply = served.send("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        sample.name: {
            tuple(each.labels.values()): each.value
            for each in family.samples
            if each.name == sample.name
        }
        for family in text_string_to_metric_families(reply.body.decode())
        for sample in family.samples
    }


def test_prometheus_reads_the_figures(monitor: Any) -> None:
    extra = Family("bloomtide_connected_clients", "gauge", "Clients.", [({}, 4.0)])
    with serve(monitor=monitor, keyspace=Keys(), metrics=[lambda: [extra]]) as served:
        served.send("/api/stats")
        served.send("/api/no/such/path")
        told = metrics(served)
    assert told["bloomtide_events_total"][()] == EVENTS
    assert told["bloomtide_commands_total"] == {
        ("bf.add", "ok"): 9, ("bf.add", "error"): 1, ("get", "ok"): 2, ("get", "error"): 0,
    }  # fmt: skip
    seen = {each.name: each for each in monitor.stats().structures}["seen"]
    assert told["bloomtide_filter_items"]["seen", seen.kind] == seen.items
    assert told["bloomtide_filter_memory_bytes"]["seen", seen.kind] == seen.bytes
    assert told["bloomtide_filter_fill_ratio"]['filter "0"\n', "bloom"] == 0.5
    assert told["bloomtide_http_requests_total"]["/api/stats", "200"] == 1
    assert told["bloomtide_http_requests_total"]["other", "404"] == 1
    assert told["bloomtide_connected_clients"][()] == 4
    assert told["bloomtide_labels_left_out"][()] == 0


def test_labels_are_no_more_than_allowed() -> None:
    with serve(keyspace=Keys(), limits=Limits(labels=2)) as served:
        told = metrics(served)
    assert len(told["bloomtide_filter_items"]) == 2
    assert told["bloomtide_labels_left_out"][()] == 1


def test_guards_are_told_by_name() -> None:
    class Guard:
        def stats(self) -> dict[str, Any]:
            return {"asked": 10, "avoided": 9, "items": float("inf")}

    with open_monitor(None) as monitor, serve(monitor=monitor) as served:
        monitor.guards["baskets"] = Guard()
        assert served.send("/api/guards").json == {
            "items": [{"name": "baskets", "asked": 10, "avoided": 9, "items": None}]
        }
        assert metrics(served)["bloomtide_guard_avoided_total"]["baskets",] == 9


@pytest.mark.parametrize("code", list_error_codes())
def test_every_error_has_a_status_and_a_body(code: str) -> None:
    cls = list_error_codes()[code]
    error: BloomtideError = cls("it went wrong", hint="do better", status=418, name="x", needed=3)
    status = status_of(error)
    assert 400 <= status < 600
    told = describe(error)["error"]
    assert told["type"] == cls.__name__
    assert (told["code"], told["field"], told["hint"]) == (code, "x", "do better")
    assert told["details"] == {"needed": 3}
    if issubclass(cls, errors.StorageError):
        assert status == 503
    if issubclass(cls, errors.ParameterError | errors.KeyTypeError):
        assert status == 400


def test_a_mistake_of_ours_is_logged_without_the_key_and_not_explained(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_monitor(None) as monitor, serve(monitor=monitor) as served:
        monkeypatch.setattr(type(monitor), "seen", lambda self, key: 1 / 0)
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        with caplog.at_level(logging.DEBUG, logger="bloomtide"):
            reply = served.send("/api/seen?key=/secret")
    assert (reply.status, reply.error["field"]) == (500, "server")
    assert "Zero" not in reply.body.decode()
    assert "/api/seen failed" in caplog.text
    assert "secret" not in caplog.text
