"""Many events and many questions in one request, in NDJSON and Arrow."""

from __future__ import annotations

import io
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("starlette", reason="Starlette is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

import pyarrow as pa

from bloomtide.server.http import Limits, rows
from tests.server_http.events import EVENTS, NOW, START, open_monitor
from tests.server_http.serving import Reply, Served, serve
from tests.waiting import until

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
LIMIT = 1 << 20


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with open_monitor(tmp_path_factory.mktemp("bulk") / "monitor", filled=False) as monitor:
        yield monitor


@pytest.fixture(scope="module")
def served(monitor: Any) -> Iterator[Served]:
    with serve(monitor=monitor, limits=Limits(body=LIMIT, seconds=5)) as served:
        yield served


def lines(*events: Any) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def arrow(*batches: dict[str, Any], compression: str | None = None) -> bytes:
    sink = io.BytesIO()
    made = [pa.RecordBatch.from_pydict(batch) for batch in batches]
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, made[0].schema, options=options) as writer:
        for batch in made:
            writer.write_batch(batch)
    return sink.getvalue()


def add(served: Served, body: bytes, media_type: str = NDJSON) -> Reply:
    return served.send("/api/events", body, Content_Type=media_type)


@contextmanager
def adds(monitor: Any, events: int) -> Iterator[None]:
    """What happens inside adds so many events."""
    before = monitor.stats().events
    yield
    assert monitor.stats().events == before + events


def test_lines_go_in_with_their_times_and_counts(served: Served, monitor: Any) -> None:
    body = lines(
        {"key": "/line", "time": START, "count": 3},
        {"key": "/line", "time": "2026-01-01T00:30:00Z"},
        {"key": 7},
        {"key_base64": "/w=="},
    )
    assert add(served, body).json == {"added": 4, "new": 3, "batches": 1}
    assert monitor.count("/line").value == 4
    assert monitor.count(7).value == 1
    assert monitor.count(b"\xff").value == 1
    assert monitor.history.count("/line", START, START + 60).upper == 3
    assert monitor.history.count("/line", START + 1800, START + 1860).upper == 1


def test_empty_lines_are_no_events_and_an_empty_body_adds_nothing(served: Served) -> None:
    assert add(served, b"\n  \n" + lines({"key": "/a"}) + b"\n").json["added"] == 1
    assert add(served, b"").json == {"added": 0, "new": 0, "batches": 0}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_arrow_goes_in_by_its_batches(served: Served, monitor: Any, unit: str) -> None:
    one, two = f"/one/{unit}", f"/two/{unit}"
    times = pa.array([int(START), int(NOW) - 1], pa.timestamp("s", "UTC"))
    body = arrow(
        {"key": [one, two], "time": times.cast(pa.timestamp(unit, "UTC")), "count": [2, 5]},
        {"key": [one, one], "time": times.cast(pa.timestamp(unit, "UTC")), "count": [1, 1]},
    )
    assert add(served, body, ARROW).json == {"added": 4, "new": 2, "batches": 2}
    assert monitor.count(one).value == 4
    assert monitor.history.count(two, NOW - 60, NOW).upper == 5


def test_arrow_keys_may_be_binary_or_numbers_and_come_alone(served: Served, monitor: Any) -> None:
    assert add(served, arrow({"key": [b"\xfe", b"/binary"]}), ARROW).json["added"] == 2
    assert add(served, arrow({"key": [1, 2, 2]}), ARROW).json == {
        "added": 3, "new": 2, "batches": 1,
    }  # fmt: skip
    assert monitor.count(2).value == 2
    assert monitor.count("/binary").value == 1


def test_arrow_with_a_dictionary_or_many_rows_goes_in(served: Served, monitor: Any) -> None:
    keys = pa.array(["/x", "/y", "/x"]).dictionary_encode()
    assert add(served, arrow({"key": keys}), ARROW).json["added"] == 3
    assert monitor.count("/x").value == 2
    with adds(monitor, 150_000):
        reply = add(served, arrow({"key": pa.array([99] * 150_000, pa.int32())}), ARROW)
    assert reply.json["batches"] == 3
    assert monitor.count(99).value == 150_000


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b"{", "body"),
        (b"[1]", "body"),
        (b"\xff\xfe", "body"),
        (b"[" * 100_000, "body"),
        (b"{}", "key"),
        (b'{"key": null}', "key"),
        (b'{"key": 1.5}', "key"),
        (b'{"key": true}', "key"),
        (b'{"key": 18446744073709551616}', "key"),
        (b'{"key": "\\ud800"}', "key"),
        (b'{"key_base64": "*"}', "key_base64"),
        (b'{"key_base64": 3}', "key_base64"),
        (b'{"key": "a", "count": 0}', "count"),
        (b'{"key": "a", "count": 1.5}', "count"),
        (b'{"key": "a", "count": true}', "count"),
        (b'{"key": "a", "count": 4294967296}', "count"),
        (b'{"key": "a", "time": "yesterday"}', "time"),
        (b'{"key": "a", "time": "2026-01-01T00:00:00"}', "time"),
        (b'{"key": "a", "time": NaN}', "time"),
        (b'{"key": "a", "tiem": 3}', "tiem"),
    ],
)
def test_a_bad_line_is_named_and_its_batch_adds_nothing(
    served: Served, monitor: Any, line: bytes, field: str
) -> None:
    with adds(monitor, 0):
        reply = add(served, lines({"key": "/a"}) + line + b"\n" + lines({"key": "/b"}))
    assert reply.status == 400
    assert reply.error["field"] == field
    assert reply.error["details"]["line"] == 2
    assert reply.error["details"]["added"] == 0


def test_batches_before_a_bad_one_stay_and_the_reply_says_how_many(
    served: Served, monitor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "BATCH", 10)
    body = lines(*({"key": f"/many/{i}"} for i in range(25))) + b"oops\n"
    with adds(monitor, 20):
        reply = add(served, body)
    assert reply.status == 400
    assert reply.error["details"] == {"line": 26, "added": 20, "new": 20, "batches": 2}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"nonsense", "body"),
        (arrow({"key": ["/a"] * 100})[:-80], "body"),
        (arrow({"page": ["/a"]}), "body"),
        (arrow({"key": ["/a"], "more": [1]}), "body"),
        (arrow({"key": ["/a", None]}), "key"),
        (arrow({"key": pa.Array.from_buffers(pa.null(), 2**31 - 1, [None])}), "body"),
        (arrow({"key": [1.5]}), "key"),
        (arrow({"key": pa.array(["/a"], pa.string_view())}), "key"),
        (arrow({"key": pa.DictionaryArray.from_arrays([0] * 60_000, ["/long" * 1000])}), "key"),
        (arrow({"key": ["/a"] * 100_000}, compression="zstd"), "body"),
        (arrow({"key": ["/a"] * 100_000}, compression="lz4"), "body"),
        (arrow({"key": ["/a"], "count": [0]}), "count"),
        (arrow({"key": ["/a"], "count": [1.0]}), "count"),
        (arrow({"key": ["/a"], "time": ["soon"]}), "time"),
    ],
)
def test_bad_arrow_is_refused_and_adds_nothing(
    served: Served, monitor: Any, body: bytes, field: str
) -> None:
    with adds(monitor, 0):
        reply = add(served, body, ARROW)
    assert (reply.status, reply.error["field"]) == (400, field)
    assert reply.error["details"]["added"] == 0


def test_a_body_that_is_too_large_changes_nothing(served: Served, monitor: Any) -> None:
    body = lines({"key": "/a"}) + b" " * LIMIT
    with adds(monitor, 0):
        told = add(served, body)
    assert (told.status, told.error["field"]) == (413, "body")
    # Without its length, it is found out while it comes.
    with adds(monitor, 0), served.connect() as connection:
        pieces = iter([lines({"key": "/a"}), *(b" " * 65_536 for _ in range(17))])
        connection.request(
            "POST", "/api/events", pieces, {"Content-Type": NDJSON}, encode_chunked=True
        )
        assert connection.getresponse().status == 413


def test_a_body_that_does_not_come_is_given_up(monitor: Any) -> None:
    with (
        adds(monitor, 0),
        serve(monitor=monitor, limits=Limits(seconds=0.1)) as served,
        socket.create_connection(("127.0.0.1", served.port), timeout=20) as slow,
    ):
        head = b"POST /api/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
        slow.sendall(head + b"Content-Type: application/x-ndjson\r\n\r\n" + lines({"key": "/a"}))
        assert b" 408 " in slow.recv(65_536).splitlines()[0]


def test_a_body_waits_for_its_turn_but_not_for_ever(monitor: Any) -> None:
    limits = Limits(bodies=1, seconds=2)
    head = b"POST /api/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n"
    enough = threading.Event()

    def trickle(connection: socket.socket) -> None:
        while not enough.wait(0.05):
            connection.sendall(b" ")

    with adds(monitor, 0), serve(monitor=monitor, limits=limits) as served:
        with socket.create_connection(("127.0.0.1", served.port), timeout=20) as slow:
            slow.sendall(head)
            sending = threading.Thread(target=trickle, args=(slow,))
            sending.start()
            until(lambda: served.app.state.parts.bodies.borrowed_tokens)
            refused = add(served, b"")
            enough.set()
            sending.join()
            assert (refused.status, refused.error["field"]) == (503, "body")
        assert add(served, b"").status == 200


@pytest.mark.parametrize("media_type", ["", "text/plain", "application/json"])
def test_other_types_are_refused(served: Served, media_type: str) -> None:
    reply = add(served, lines({"key": "/a"}), media_type)
    assert (reply.status, reply.error["field"]) == (415, "Content-Type")
    assert NDJSON in reply.error["hint"]
    squeezed = served.send("/api/events", b"x", Content_Type=NDJSON, Content_Encoding="gzip")
    assert (squeezed.status, squeezed.error["field"]) == (415, "Content-Encoding")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path = tmp_path_factory.mktemp("bulk") / "filled"
    with open_monitor(path) as monitor, serve(monitor=monitor) as served:
        yield served


def query(served: Served, what: str, *keys: Any) -> list[dict[str, Any]]:
    body = lines(*({"key": key} for key in keys))
    reply = served.send(f"/api/query?{what}", body, Content_Type=NDJSON)
    assert reply.status == 200
    assert reply.headers["content-type"] == NDJSON
    return [json.loads(line) for line in reply.body.splitlines()]


def test_many_keys_are_asked_about_in_one_request(filled: Served) -> None:
    counts = query(filled, "", "/page/0", "/nobody", "/page/1")
    assert [(row["key"], row["value"]) for row in counts] == [
        ("/page/0", 120), ("/nobody", 0), ("/page/1", 60),
    ]  # fmt: skip
    assert [row["seen"] for row in query(filled, "what=seen", "/page/0", "/nobody")] == [
        True,
        False,
    ]
    heats = query(filled, "what=heat", "/page/0", "/page/30")
    assert heats[0]["value"] > heats[1]["value"]
    past = query(filled, f"what=range&start={NOW - 600}&end={NOW}", "/late", "/page/0")
    assert [row["upper"] for row in past] == [50, 20]


def test_more_keys_than_one_thread_answers_for_keep_their_order(filled: Served) -> None:
    keys = [f"/page/{i % 40}" if i % 2 else f"/no/{i}" for i in range(5001)]
    rows = query(filled, "what=count", *keys)
    assert [row["key"] for row in rows] == keys
    assert [row["value"] for row in rows[:4]] == [0, 60, 0, 30]


def test_arrow_is_answered_with_arrow_to_those_who_accept_it(filled: Served) -> None:
    body = arrow({"key": ["/page/0", "/nobody"]})
    reply = filled.send("/api/query", body, Content_Type=ARROW, Accept=ARROW)
    assert reply.headers["content-type"] == ARROW
    with pa.ipc.open_stream(reply.body) as reader:
        table = reader.read_all().to_pydict()
    assert table["key"] == ["/page/0", "/nobody"]
    assert table["value"] == [120, 0]
    assert set(table) == {"key", "value", "lower", "upper", "confidence", "saturated"}


def test_keys_of_several_types_are_no_arrow_column(filled: Served) -> None:
    body = lines({"key": "/page/0"}, {"key": 7})
    reply = filled.send("/api/query", body, Content_Type=NDJSON, Accept=ARROW)
    assert (reply.status, reply.error["field"]) == (400, "body")


def test_a_bad_query_is_refused_before_any_answer(filled: Served) -> None:
    for path, body, field in (
        ("/api/query?what=all", lines({"key": "/a"}), "what"),
        ("/api/query?what=range&last=1h&start=3", lines({"key": "/a"}), "last"),
        ("/api/query", lines({"key": "/a"}) * 3000 + b"x\n", "body"),
    ):
        reply = filled.send(path, body, Content_Type=NDJSON)
        assert (reply.status, reply.error["field"]) == (400, field)
    assert filled.send("/api/stats").json["monitor"]["events"] == EVENTS
