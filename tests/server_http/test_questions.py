"""Every question over HTTP answers as the monitor does, and says what is wrong with a bad one."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("starlette", reason="Starlette is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")

from bloomtide.server.http.openapi import document
from bloomtide.server.http.routes import PATHS
from bloomtide.server.http.schemas import SCHEMAS
from tests.server_http.events import EVENTS, NOW, START, open_monitor
from tests.server_http.serving import Served, serve

HOUR = f"start={START}&end={NOW}"
BYTES = b"/caf\xe9"
QUESTIONS = {
    "/api/stats": "Stats",
    "/api/hot?n=5": "Hot",
    "/api/seen?key=/page/0": "Seen",
    "/api/count?key=/page/0": "Count",
    "/api/heat?key=/page/0": "Count",
    "/api/pulse": "Pulse",
    "/api/structures": "Structures",
    "/api/guards": "Guards",
    "/api/sources": "Sources",
    f"/api/history/count?key=/page/0&{HOUR}": "RangeCount",
    f"/api/history/series?key=/page/0&{HOUR}&step=10m": "Series",
    f"/api/history/total?{HOUR}": "Total",
    f"/api/history/total?{HOUR}&step=10m": "Total",
    f"/api/history/top?{HOUR}&n=3": "TopKeys",
    "/openapi.json": "Anything",
}


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with open_monitor(tmp_path_factory.mktemp("http") / "monitor") as monitor:
        monitor.add_many([7], None, [NOW])
        monitor.add_many([BYTES], None, [NOW])
        yield monitor


@pytest.fixture(scope="module")
def served(monitor: Any) -> Iterator[Served]:
    with serve(monitor=monitor) as served:
        yield served


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """As much of JSON Schema as the schemas here use."""
    if "anyOf" in schema:
        return any(fits(value, each) for each in schema["anyOf"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    types: dict[str, Any] = {
        "object": dict, "array": list, "string": str, "integer": int, "number": (int, float),
        "boolean": bool, "null": type(None),
    }  # fmt: skip
    if not any(
        isinstance(value, types[kind]) and not (isinstance(value, bool) and kind != "boolean")
        for kind in kinds
    ):
        return False
    if isinstance(value, dict):
        return all(name in value for name in schema.get("required", ())) and all(
            fits(value[name], each) for name, each in schema.get("properties", {}).items()
        )
    return not isinstance(value, list) or all(fits(each, schema["items"]) for each in value)


@pytest.mark.parametrize(("path", "schema"), QUESTIONS.items())
def test_an_answer_is_json_of_the_shape_that_openapi_says(
    served: Served, path: str, schema: str
) -> None:
    reply = served.send(path)
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    assert fits(reply.json, SCHEMAS[schema]), reply.json


def test_a_wrong_answer_does_not_fit_its_schema() -> None:
    assert not fits({"key": "/a", "seen": "yes"}, SCHEMAS["Seen"])
    assert not fits({"seen": True}, SCHEMAS["Seen"])
    assert not fits({"items": [{"key": "/a"}]}, SCHEMAS["Hot"])


def test_the_answers_are_the_monitors(served: Served, monitor: Any) -> None:
    assert served.send("/api/stats").json["monitor"]["events"] == EVENTS + 2
    assert served.send("/api/seen?key=/page/0").json == {"key": "/page/0", "seen": True}
    assert served.send("/api/seen?key=/nobody").json["seen"] is False
    count = served.send("/api/count?key=/page/0").json
    assert count["lower"] <= 120 <= count["value"] == monitor.count("/page/0").value
    heat = served.send("/api/heat?key=/page/0").json
    assert heat["value"] == monitor.heat("/page/0").value > 0
    hot = served.send("/api/hot?n=5").json["items"]
    assert [(item["key"], item["count"]) for item in hot] == [
        (item.key, item.count) for item in monitor.hot(5)
    ]
    names = [each["name"] for each in served.send("/api/structures").json["items"]]
    assert names == [each.name for each in monitor.stats().structures]


def test_history_is_asked_by_range_step_and_number(served: Served, monitor: Any) -> None:
    total = served.send(f"/api/history/total?{HOUR}").json
    assert total["upper"] == total["inner"] == EVENTS
    steps = served.send(f"/api/history/total?{HOUR}&step=10m").json
    assert len(steps["start"]) == 6
    assert sum(steps["upper"]) == EVENTS
    assert steps["start"][1] - steps["start"][0] == steps["step"] == 600
    series = served.send(f"/api/history/series?key=/late&{HOUR}&step=10m").json
    assert series["upper"] == series["inner"] == [0, 0, 0, 0, 0, 50]
    one = served.send(f"/api/history/count?key=/late&start={NOW - 600}&end={NOW}").json
    assert one["upper"] == 50
    top = served.send(f"/api/history/top?{HOUR}&n=2").json
    assert [(item["key"], item["count"]) for item in top["items"]] == [
        ("/page/0", 120), ("/page/1", 60),
    ]  # fmt: skip
    assert top["total"] == EVENTS


def test_last_ends_at_the_streams_own_time(served: Served) -> None:
    total = served.send("/api/history/total?last=10m").json
    assert total["upper"] >= 50
    series = served.send("/api/history/series?key=/late&last=10m&step=5m").json
    assert sum(series["upper"]) == 50
    assert all(start % 300 == 0 for start in series["start"])


def test_keys_are_text_numbers_or_bytes(served: Served) -> None:
    number = served.send("/api/count?key_int=7").json
    assert (number["key"], number["value"]) == (7, 1)
    assert served.send("/api/count?key=7").json["value"] == 0
    large = served.send(f"/api/seen?key_int={2**63}").json
    assert large == {"key": 2**63, "key_int": str(2**63), "seen": False}
    spelled = base64.urlsafe_b64encode(BYTES).decode().replace("_", "/").replace("-", "%2B")
    known = served.send(f"/api/count?key_base64={spelled}").json
    assert known["value"] == 1
    assert known["key"] == "/caf�"
    assert base64.b64decode(known["key_base64"]) == BYTES


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/api/hot?n=0", "n"),
        ("/api/hot?n=1001", "n"),
        ("/api/hot?n=ten", "n"),
        (f"/api/hot?n={'9' * 5000}", "n"),
        ("/api/hot?N=3", "N"),
        ("/api/hot?n=3&n=4", "n"),
        ("/api/seen", "key"),
        ("/api/seen?key=a&key_int=1", "key"),
        ("/api/seen?key_int=18446744073709551616", "key_int"),
        ("/api/seen?key_base64=***", "key_base64"),
        ("/api/seen?key_base64=%C3%A9", "key_base64"),
        ("/api/history/count?key=a&start=2026-01-01T00:00:00", "start"),
        ("/api/history/count?key=a&start=5&end=4", "start"),
        ("/api/history/count?key=a&last=1h&start=4", "last"),
        ("/api/history/series?key=a&last=1h&start=4", "last"),
        ("/api/history/count?key=a&last=soon", "last"),
        ("/api/history/series?key=a&start=0&end=1e9&step=1s", "step"),
        ("/api/history/series?key=a&step=0", "step"),
        ("/api/history/total?step=-1h", "step"),
        ("/api/history/top?n=0", "n"),
        ("/api/stats?key=a", "key"),
        ("/metrics?names=a", "names"),
        ("/livez?verbose=", "verbose"),
        ("/readyz?verbose=", "verbose"),
        ("/healthz?verbose=", "verbose"),
        ("/openapi.json?format=yaml", "format"),
        ("/api/live?since=5", "since"),
    ],
)
def test_a_bad_parameter_is_named_with_a_hint(served: Served, path: str, field: str) -> None:
    reply = served.send(path)
    assert reply.status == 400
    assert reply.error["type"] == "ParameterError"
    assert reply.error["code"] == "parameter"
    assert reply.error["field"] == field
    assert reply.error["hint"]
    assert fits(reply.json, SCHEMAS["Error"])


def test_what_does_not_exist_is_told_in_the_same_form(served: Served) -> None:
    missing = served.send("/api/nothing")
    assert (missing.status, missing.error["type"], missing.error["field"]) == (
        404, "RequestError", "path",
    )  # fmt: skip
    method = served.send("/api/stats", b"{}")
    assert (method.status, method.error["field"]) == (405, "method")
    assert "GET" in method.headers["allow"]


def test_the_table_the_routes_and_the_description_agree(served: Served) -> None:
    described = served.send("/openapi.json").json
    assert described == json.loads(json.dumps(document(PATHS)))
    routes = {
        (route.path, method)  # type: ignore[attr-defined]
        for route in served.app.routes
        for method in route.methods - {"HEAD"}  # type: ignore[attr-defined]
    }
    told = {(path, method.upper()) for path, ways in described["paths"].items() for method in ways}
    assert told == {(path.path, path.method) for path in PATHS}
    pages = {path for path, _ in routes - told}
    assert told < routes
    assert pages == {"/", *(path for path in pages if path.rpartition(".")[2] in "js css svg")}
    names = {name for path in PATHS if "/" not in (name := path.answer)}
    assert names <= SCHEMAS.keys()


def test_a_server_without_a_monitor_says_so() -> None:
    with serve() as served:
        stats = served.send("/api/stats").json
        assert stats["monitor"] is stats["history"] is stats["keyspace"] is None
        assert served.send("/api/structures").json == {"items": []}
        assert served.send("/api/guards").json == {"items": []}
        assert served.send("/api/sources").json == {"items": [], "problems": []}
        for path in ("/api/hot", "/api/seen?key=a", "/api/pulse", "/api/history/total"):
            reply = served.send(path)
            assert (reply.status, reply.error["type"]) == (409, "UnsupportedError")
            assert "bloomtide watch" in reply.error["hint"]


def test_a_monitor_in_memory_has_no_history_to_ask() -> None:
    with open_monitor(None) as monitor, serve(monitor=monitor) as served:
        assert served.send("/api/seen?key=/page/0").json["seen"] is True
        reply = served.send("/api/history/total")
        assert (reply.status, reply.error["details"]["verb"]) == (409, "history")
        assert served.send("/api/stats").json["history"] is None


def test_an_answer_that_takes_too_long_is_given_up() -> None:
    from threading import Event

    from bloomtide.server.http import Limits

    blocked = Event()

    class Stuck:
        loading = False
        read_only = None

        def stats(self) -> dict[str, Any]:
            blocked.wait(20)
            return {}

        def structures(self, limit: int = 1000) -> list[dict[str, Any]]:
            return []

    with serve(keyspace=Stuck(), limits=Limits(seconds=0.05)) as served:
        try:
            reply = served.send("/api/stats")
            assert (reply.status, reply.error["field"]) == (503, "time")
            assert served.send("/livez").status == 200
        finally:
            blocked.set()
