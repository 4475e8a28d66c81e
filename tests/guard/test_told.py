"""What an engine does is told to its guards, whoever else listens, and whoever comes or goes."""

from __future__ import annotations

import gc
from typing import Any
from weakref import ref

import pytest
from sqlalchemy import Engine, create_engine, delete, event, insert, text
from sqlalchemy.orm import Session

from bloomtide import DatabaseGuard
from bloomtide.guard.stats import State
from tests.guard.shop import ABSENT, Base, Basket


def test_statements_that_a_listener_sends_himself_are_seen(engine: Engine) -> None:
    sent = []

    @event.listens_for(engine, "do_execute")
    def send(cursor: Any, statement: str, parameters: Any, context: Any) -> bool:
        sent.append(statement)
        cursor.execute(statement, parameters)
        return True

    with DatabaseGuard(engine, Basket.owner, 1e-6, removals="commit") as guard:
        assert guard.build()
        sent.clear()
        with engine.begin() as connection:
            connection.execute(insert(Basket).values(owner=100))
            assert guard.may_exist(100)
        with engine.begin() as connection:
            connection.execute(delete(Basket).where(Basket.owner == 100))
        assert len(sent) == 2
        assert not guard.may_exist(100)
        assert guard.state is State.READY


@pytest.mark.parametrize("shared", [False, True])
def test_a_transaction_older_than_its_guard_ends_the_trust_when_it_writes_again(
    engine: Engine, tmp_path: Any, shared: bool
) -> None:
    if engine.dialect.name == "sqlite":
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
    with engine.connect() as connection:
        connection.execute(insert(Basket).values(owner=100))
        directory = tmp_path / "guard" if shared else None
        with DatabaseGuard(engine, Basket.owner, 1e-6, shared=directory) as guard:
            # PostgreSQL tells who has written.
            assert guard.build() == (shared or engine.dialect.name == "sqlite")
            connection.execute(insert(Basket).values(owner=101))
            assert guard.may_exist(100)
            assert guard.stats().reason
            connection.commit()
            assert guard.build()
            assert guard.filter_many([100, 101, ABSENT]) == [100, 101]


def test_what_a_guard_leaves_behind_when_it_is_closed_disturbs_nobody(engine: Engine) -> None:
    with DatabaseGuard(engine, Basket.owner, 1e-6) as early, Session(engine) as session:
        assert early.build()
        session.add(Basket(owner=100))
        session.flush()
        early.close()
        with DatabaseGuard(engine, Basket.owner, 1e-6) as late:
            session.commit()
            assert late.build()
            session.add(Basket(owner=101))
            session.commit()
            assert late.state is State.READY
            assert late.filter_many([100, 101, ABSENT]) == [100, 101]


def test_a_rolled_back_unseen_write_does_not_stand_in_the_way_of_a_build(engine: Engine) -> None:
    with DatabaseGuard(engine, Basket.owner, 1e-6) as guard:
        with engine.connect() as connection:
            connection.execute(text("INSERT INTO basket (customer_id, items) VALUES (100, 1)"))
            connection.rollback()
            assert guard.build(), "the connection is still out"
        assert not guard.may_exist(100)


def test_an_engine_that_is_dropped_is_let_go(tmp_path: Any) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/shop.db")
    Base.metadata.create_all(engine)
    with DatabaseGuard(engine, Basket.owner, 1e-6) as guard:
        assert guard.build()
    dialect = ref(engine.dialect)
    engine.dispose()
    del engine, guard
    gc.collect()
    assert dialect() is None
