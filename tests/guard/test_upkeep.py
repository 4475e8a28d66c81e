"""A filter is built again by itself when that is worth its while, and not all the time."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, create_engine, delete, insert, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from bloomtide import DatabaseGuard
from bloomtide.guard import upkeep
from bloomtide.guard.stats import State
from tests.guard.shop import ABSENT, Base, Basket
from tests.waiting import until


def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "_LOOK", 0.01)
    monkeypatch.setattr(upkeep, "_REST", 0.0)
    monkeypatch.setattr(upkeep, "_SHARE", 0)


def wait_for(guard: DatabaseGuard, rebuilds: int) -> None:
    until(lambda: guard.stats().rebuilds >= rebuilds)


def test_an_unseen_write_is_followed_by_a_build(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once(monkeypatch)
    with DatabaseGuard(engine, Basket.owner, 1e-6) as guard:
        guard.build()
        with engine.begin() as connection:
            connection.execute(text("INSERT INTO basket (customer_id, items) VALUES (7, 1)"))
        wait_for(guard, 2)
        assert guard.state is State.READY
        assert guard.may_exist(7)
        assert not guard.may_exist(ABSENT)


def test_many_deleted_rows_are_followed_by_a_build(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once(monkeypatch)
    with Session(engine) as session, session.begin():
        session.execute(insert(Basket), [{"owner": key} for key in range(100)])
    with DatabaseGuard(engine, Basket.owner, 1e-6) as guard:
        guard.build()
        with Session(engine) as session, session.begin():
            session.execute(delete(Basket).where(Basket.owner < 50))
        wait_for(guard, 2)
        assert not guard.may_exist(7)
        assert guard.may_exist(70)
        assert guard.stats().stale == 0


def test_a_first_build_that_failed_is_tried_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once(monkeypatch)
    Base.metadata.drop_all(engine)
    with DatabaseGuard(engine, Basket.owner, 1e-6) as guard:
        with pytest.raises(DBAPIError):
            guard.build()
        assert guard.state is State.UNKNOWN
        Base.metadata.create_all(engine)
        wait_for(guard, 1)
        assert not guard.may_exist(ABSENT)


def test_between_two_builds_there_is_a_rest(engine: Engine) -> None:
    with DatabaseGuard(engine, Basket.owner, 1e-6) as guard:
        guard.build()
        guard.distrust()
        assert guard._upkeep is not None
        guard._upkeep.look()
        assert guard.stats().rebuilds == 1


def test_nobody_builds_if_it_is_manual_or_in_memory(engine: Engine) -> None:
    with DatabaseGuard(engine, Basket.owner, rebuild="manual") as guard:
        guard.build()
        assert guard._upkeep is None
    memory = create_engine("sqlite://")
    Base.metadata.create_all(memory)
    with DatabaseGuard(memory, Basket.owner) as guard:
        guard.build()
        assert guard._upkeep is None
    memory.dispose()
