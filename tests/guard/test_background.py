"""Keeping up with others: work that is repeated, and a call to wake up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import psycopg
import pytest
from sqlalchemy import create_engine, text

from bloomtide.errors import ParameterError
from bloomtide.guard.background import Notifications, Repeated, connector
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
    thread.alarm.set()
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


# --- NOTIFY -------------------------------------------------------------------------------------


@pytest.fixture
def notifications(postgres_basket: Database) -> Iterator[Notifications]:
    made = Notifications(connector(postgres_basket.engine), 'odd "name"')
    yield made
    made.close()


def notify(database: Database) -> None:
    database.run("""SELECT pg_notify('odd "name"', '')""")


def test_a_notifications_first_connects_and_returns_so_that_changes_are_read(
    notifications: Notifications,
) -> None:
    assert not notifications.listening
    assert notifications.wait(PATIENCE)
    assert notifications.listening


def test_a_notification_ends_the_wait(
    postgres_basket: Database, notifications: Notifications
) -> None:
    assert notifications.wait(0), "it connects"
    assert not notifications.wait(0)
    notify(postgres_basket)
    assert notifications.wait(PATIENCE)
    assert not notifications.wait(0), "nothing new"


def test_a_connection_that_was_lost_is_made_again(
    postgres_basket: Database, notifications: Notifications
) -> None:
    assert notifications.wait(0), "it connects"
    postgres_basket.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE query LIKE 'LISTEN%' AND datname = current_database()"
    )
    # The server's last words, then the end, or both at once.
    until(lambda: notifications.wait(PATIENCE) and not notifications.listening)
    assert notifications.wait(PATIENCE), "what was missed is to be read"
    assert notifications.listening
    notify(postgres_basket)
    assert notifications.wait(PATIENCE)
    assert not notifications.wait(0), "and the notification came through the new one"


def test_a_server_that_is_away_makes_a_notifications_wait_as_an_alarm_does() -> None:
    def away() -> psycopg.Connection[object]:
        raise psycopg.OperationalError("away")

    notifications = Notifications(away, "channel")
    assert not notifications.wait(0)
    notifications.set()
    assert notifications.wait(PATIENCE)
    notifications.close()


def test_a_database_without_notify_is_refused_with_a_way_out() -> None:
    engine = create_engine("sqlite://")
    with pytest.raises(ParameterError) as caught:
        connector(engine)
    assert caught.value.name == "notify"
    assert "change table" in caught.value.hint
    with engine.connect() as connection:
        connection.execute(text("SELECT 1"))
    engine.dispose()
