"""Keeping up with others: work that is repeated, a promise that is kept, and a call to wake up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from math import inf

import psycopg
import pytest
from sqlalchemy import create_engine, text

from bloomtide.errors import ParameterError
from bloomtide.guard.follow import Freshness, Repeated
from bloomtide.guard.notify import Alarm, Listener, connector
from tests.guard.databases import Database
from tests.waiting import until

PATIENCE = 20.0


class Events:
    """What happened, to be waited for."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._changed = threading.Condition()

    def add(self, event: str) -> None:
        with self._changed:
            self.seen.append(event)
            self._changed.notify_all()

    def wait(self, *wanted: str) -> None:
        with self._changed:
            arrived = self._changed.wait_for(
                lambda: self.seen[-len(wanted) :] == [*wanted], PATIENCE
            )
        assert arrived, self.seen

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.seen) >= count, PATIENCE), self.seen


class Keys(Events):
    fresh_until = inf

    def pause(self, reason: str) -> None:
        self.add(reason)

    def resume(self) -> None:
        self.add("resumed")


@pytest.fixture
def keys() -> Keys:
    return Keys()


class Clock:
    """Time that passes when a test says so."""

    now = 5000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def freshness(keys: Keys, clock: Clock) -> Iterator[Freshness]:
    made = Freshness(keys, "too old", clock=clock)
    yield made
    made.close()


def test_keys_pass_everything_until_the_work_has_succeeded_once(
    keys: Keys, clock: Clock, freshness: Freshness
) -> None:
    assert keys.seen == ["too old"]
    freshness.renew(clock.now + 1000)
    assert keys.seen == ["too old", "resumed"], "at once, not when a thread gets to it"


def test_keys_pass_everything_again_when_the_time_is_up(
    keys: Keys, clock: Clock, freshness: Freshness
) -> None:
    freshness.renew(clock.now + 0.01)
    assert keys.seen == ["too old", "resumed"], "however long this takes"
    clock.now += 0.01
    keys.wait("too old", "resumed", "too old")
    freshness.renew(clock.now + 1000)
    assert keys.seen[-1] == "resumed"


def test_keys_that_another_process_renewed_are_trusted(
    keys: Keys, clock: Clock, freshness: Freshness
) -> None:
    keys.fresh_until = clock.now + 1000
    keys.wait("too old", "resumed")


def test_keys_that_are_fresh_already_are_not_paused(keys: Keys, clock: Clock) -> None:
    keys.fresh_until = clock.now + 1000
    Freshness(keys, "too old", clock=clock).close()
    assert keys.seen == []


def repeated(work: Callable[[], object], every: float) -> Repeated:
    made = Repeated("test", work, every)
    made.start()
    return made


def test_work_is_done_at_once_and_then_every_so_often() -> None:
    events = Events()
    thread = repeated(lambda: events.add("run"), 0.01)
    events.wait_for(3)
    thread.close()


def test_work_is_done_when_the_alarm_rings() -> None:
    events = Events()
    thread = repeated(lambda: events.add("run"), 1000)
    events.wait_for(1)
    thread.ring()
    events.wait_for(2)
    thread.close()
    assert len(events.seen) == 2


def test_work_that_fails_is_tried_again() -> None:
    events = Events()

    def fail_twice() -> None:
        events.add("run")
        if len(events.seen) < 3:
            raise ConnectionError("away")

    thread = repeated(fail_twice, 0.01)
    events.wait_for(4)
    thread.close()
    assert thread.failures == 0


def test_an_alarm_rung_before_the_wait_ends_it_once() -> None:
    alarm = Alarm()
    for _ in range(3):
        alarm.ring()
    assert alarm.wait(PATIENCE)
    assert not alarm.wait(0)
    alarm.close()


# --- NOTIFY -------------------------------------------------------------------------------------


@pytest.fixture
def listener(postgres_basket: Database) -> Iterator[Listener]:
    made = Listener(connector(postgres_basket.engine), 'odd "name"')
    yield made
    made.close()


def notify(database: Database) -> None:
    database.run("""SELECT pg_notify('odd "name"', '')""")


def test_a_listener_first_connects_and_returns_so_that_changes_are_read(
    listener: Listener,
) -> None:
    assert not listener.listening
    assert listener.wait(PATIENCE)
    assert listener.listening


def test_a_notification_ends_the_wait(postgres_basket: Database, listener: Listener) -> None:
    assert listener.wait(0), "it connects"
    assert not listener.wait(0)
    notify(postgres_basket)
    assert listener.wait(PATIENCE)
    assert not listener.wait(0), "nothing new"


def test_a_connection_that_was_lost_is_made_again(
    postgres_basket: Database, listener: Listener
) -> None:
    assert listener.wait(0), "it connects"
    postgres_basket.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE query LIKE 'LISTEN%' AND datname = current_database()"
    )
    # The server's last words, then the end, or both at once.
    until(lambda: listener.wait(PATIENCE) and not listener.listening)
    assert listener.wait(PATIENCE), "what was missed is to be read"
    assert listener.listening
    notify(postgres_basket)
    assert listener.wait(PATIENCE)
    assert not listener.wait(0), "and the notification came through the new one"


def test_a_server_that_is_away_makes_a_listener_wait_as_an_alarm_does() -> None:
    def away() -> psycopg.Connection[object]:
        raise psycopg.OperationalError("away")

    listener = Listener(away, "channel")
    assert not listener.wait(0)
    listener.ring()
    assert listener.wait(PATIENCE)
    listener.close()


def test_a_database_without_notify_is_refused_with_a_way_out() -> None:
    engine = create_engine("sqlite://")
    with pytest.raises(ParameterError) as caught:
        connector(engine)
    assert caught.value.name == "notify"
    assert "change table" in caught.value.hint
    with engine.connect() as connection:
        connection.execute(text("SELECT 1"))
    engine.dispose()
