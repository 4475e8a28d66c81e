"""The stream of live numbers: whole pictures, for everybody, until the server stops."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="Starlette is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")

from bloomtide.errors import ClosedError
from bloomtide.monitor import Monitor
from bloomtide.records import HotItem
from bloomtide.server.http import Limits, live
from bloomtide.server.http.trail import EVERY, KEYS, LENGTH, PastSteps, Trail, trend_of
from tests.server_http.events import EVENTS, NOW, open_monitor
from tests.server_http.serving import Served, serve
from tests.waiting import until


@pytest.fixture(scope="module")
def monitor() -> Iterator[Any]:
    with open_monitor(None) as monitor:
        yield monitor


@contextmanager
def listen(served: Served, **headers: str) -> Iterator[Iterator[dict[str, str]]]:
    """The events of a stream as their fields; a comment is an event without any."""
    with served.connect() as connection:
        connection.request("GET", "/api/live", headers=headers)
        reply = connection.getresponse()
        assert reply.status == 200
        assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
        yield read(reply)


def read(reply: Any) -> Iterator[dict[str, str]]:
    fields: dict[str, str] = {}
    while line := reply.readline().decode():
        name, _, value = line.rstrip("\n").partition(": ")
        if line == "\n":
            yield fields
            fields = {}
        elif name:
            fields[name] = value


def test_each_event_is_a_whole_picture(monitor: Any) -> None:
    with serve(monitor=monitor) as served:
        with listen(served) as events:
            first, second = next(events), next(events)
        stats = served.send("/api/stats").json
        hot = served.send(f"/api/hot?n={live.HOT}").json["items"]
        structures = served.send("/api/structures").json["items"]
    assert (first["event"], second["event"]) == ("picture", "picture")
    assert int(second["id"]) > int(first["id"])
    told = json.loads(second["data"])
    assert told["monitor"]["events"] == stats["monitor"]["events"] == EVENTS
    assert [item["key"] for item in told["hot"]] == [item["key"] for item in hot]
    assert [each["name"] for each in told["structures"]] == [each["name"] for each in structures]
    assert len(told["pulse"]["events"]) == len(told["pulse"]["new"]) == 300


def test_the_head_of_a_stream_comes_without_it(monitor: Any) -> None:
    with serve(monitor=monitor) as served:
        reply = served.send("/api/live", method="HEAD")
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"


@pytest.mark.parametrize("last", ["1", "999999999", "-1", "nonsense", "é"])
def test_any_last_event_id_is_welcome(monitor: Any, last: str) -> None:
    with serve(monitor=monitor) as served, listen(served, **{"Last-Event-ID": last}) as events:
        assert next(events)["event"] == "picture"


def test_many_listen_and_one_too_many_is_refused(monitor: Any) -> None:
    with serve(monitor=monitor, limits=Limits(streams=2)) as served:
        with listen(served) as one, listen(served) as two:
            assert next(one)["event"] == next(two)["event"] == "picture"
            reply = served.send("/api/live")
            assert (reply.status, reply.error["field"]) == (503, "streams")
        # A stream whose listener has gone makes room again.
        until(lambda: served.app.state.live._listeners < 2)
        with listen(served) as three:
            assert next(three)["event"] == "picture"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ClosedError("the monitor was closed", hint="open it again", path=""), "ClosedError"),
        (ZeroDivisionError("a mistake"), "RequestError"),
    ],
)
def test_a_picture_that_fails_is_a_problem_and_not_the_end(
    monitor: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    def fail(self: Any) -> None:
        raise error

    with serve(monitor=monitor) as served, listen(served) as events:
        assert next(events)["event"] == "picture"
        with monkeypatch.context() as patch:
            patch.setattr(type(monitor), "pulse", fail)
            problem = next(event for event in events if event["event"] == "problem")
            assert json.loads(problem["data"])["error"]["type"] == told
        assert next(event for event in events if event["event"] == "picture")


def test_silence_is_filled_with_beats(monitor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "BEAT", 0.05)
    with serve(monitor=monitor) as served, listen(served) as events:
        assert next(events)["event"] == "picture"
        assert next(event for event in events if not event) == {}


def test_a_server_that_stops_ends_its_streams(monitor: Any) -> None:
    with serve(monitor=monitor) as served:
        got: list[dict[str, str]] = []
        begun = threading.Event()

        def hear() -> None:
            with listen(served) as events:
                for event in events:
                    got.append(event)
                    begun.set()

        hearing = threading.Thread(target=hear)
        hearing.start()
        assert begun.wait(20)
    hearing.join(20)
    assert not hearing.is_alive()


# --- the trail of a hot key


def hot(**counts: float) -> list[HotItem]:
    return [HotItem(key, count, count, 0.1) for key, count in counts.items()]


def test_a_trail_tells_what_came_between_two_looks() -> None:
    trail = Trail(half_life=5.0)
    trail.look(hot(a=100.0), 0.0, 1000.0)
    assert trail.came("a") == []  # nobody knows when it came
    trail.look(hot(a=57.0), 5.0, 1005.0)  # 100 has become 50
    trail.look(hot(a=28.5, b=3.0), 10.0, 1010.0)
    assert trail.came("a") == [7.0, 0.0]
    assert trail.came("b") == [3.0]
    assert trail.came("c") == []


def test_a_trail_looks_from_time_to_time_and_forgets_who_cooled() -> None:
    trail = Trail(half_life=None)
    assert trail.due(0.0)
    trail.look(hot(a=1.0), 0.0, 0.0)
    assert not trail.due(EVERY - 0.1)
    assert trail.due(EVERY)
    assert trail.due(-1.0)  # a clock that went back
    for i in range(LENGTH + 5):
        trail.look(hot(b=float(i)), EVERY * (i + 1), 0.0)
    assert trail.came("a") == []
    assert trail.came("b") == [1.0] * LENGTH


def test_steps_are_of_equal_length_when_the_streams_time_runs_ahead() -> None:
    trail = Trail(half_life=None)
    trail.look(hot(a=0.0), 0.0, 0.0)
    trail.look(hot(a=720.0), EVERY, 3600.0)
    trail.look(hot(a=721.0), 2 * EVERY, 3600.0 + EVERY)
    trail.look(hot(a=722.0), 3 * EVERY, 3600.0 + EVERY)
    assert trail.came("a") == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("steps", "trend"),
    [
        ([10.0] * 23, None),
        ([10.0] * 24, "flat"),
        ([10.0] * 48 + [13.0] * 12, "up"),
        ([10.0] * 48 + [11.0] * 12, "flat"),
        ([10.0] * 48 + [7.0] * 12, "down"),
        ([1.0] * 48 + [1.4] * 12, "flat"),  # chance does that
        ([100.0] * 48 + [0.0] * 12, "down"),
        ([0.0] * 24, "flat"),
        ([0.0] * 52 + [60.0] * 3 + [0.0] * 5, "down"),  # it had come up, and falls again
        ([0.0] * 54 + [3.0] * 3 + [0.0] * 3, "flat"),
        ([0.0] * 54 + [3.0] * 6, "up"),
    ],
)
def test_a_trend_compares_the_last_minute_with_those_before(
    steps: list[float], trend: str | None
) -> None:
    trail, total = Trail(half_life=None), 1.0
    trail.look(hot(a=total), 0.0, 0.0)
    for number, step in enumerate(steps, start=1):
        total += step
        trail.look(hot(a=total), EVERY * number, EVERY * number)
    assert trend_of(trail.came("a")) == trend


def test_a_stream_whose_time_goes_back_begins_anew() -> None:
    trail = Trail(half_life=None)
    trail.look([], 0.0, 900.0)
    trail.look(hot(a=1.0), 0.0, 1000.0)
    assert trail.came("a") == []
    trail.look(hot(a=5.0), 5.0, 1005.0)
    trail.look(hot(a=9000.0), 10.0, 100.0)
    assert trail.came("a") == []
    trail.look(hot(a=9001.0), 15.0, 105.0)
    assert trail.came("a") == [1.0]


def test_a_key_new_on_a_full_list_may_have_been_just_below_it() -> None:
    trail = Trail(half_life=None)
    full = {f"k{i}": 50.0 for i in range(KEYS)}
    trail.look(hot(**full), 0.0, 0.0)
    trail.look(hot(**{"x": 70.0, **dict(list(full.items())[: KEYS - 1])}), 5.0, 5.0)
    assert trail.came("x") == [20.0]


# --- an old log


def test_the_steps_of_an_old_log_are_those_of_its_own_time(tmp_path: Path) -> None:
    with open_monitor(tmp_path / "old", clock=NOW + 10 * 86400) as monitor:
        steps = PastSteps(monitor.history, monitor.now())
        assert steps.every == 60
        came = steps.came("/late")
        assert len(came) == LENGTH
        assert (came[:-10], came[-10:]) == ([0.0] * 50, [5.0] * 10)
        with serve(monitor=monitor) as served, listen(served) as events:
            told = json.loads(next(events)["data"])
    assert told["old"] is True
    late = next(item for item in told["hot"] if item["key"] == "/late")
    assert (late["every"], late["came"], late["trend"]) == (60, came, "up")


def test_an_old_log_that_is_short_has_no_steps_before_its_first(tmp_path: Path) -> None:
    with Monitor.open(tmp_path / "short", clock=lambda: NOW + 10 * 86400) as monitor:
        monitor.add_many(["/a"] * 30, at=[NOW - 10.0 * i for i in range(30)])
        assert PastSteps(monitor.history, monitor.now()).came("/a") == [
            5.0,
            6.0,
            6.0,
            6.0,
            6.0,
            1.0,
        ]


def test_a_stream_of_now_is_not_old(monitor: Any) -> None:
    with serve(monitor=monitor) as served, listen(served) as events:
        assert json.loads(next(events)["data"])["old"] is False
