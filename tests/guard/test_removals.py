"""With `removals="commit"` a deleted key leaves the filter after its commit, and only then.

Each test that takes a key out wrongly would make some other question a wrong "absent".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from sqlalchemy import Engine, delete, event, func, insert, select, text, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, aliased
from sqlalchemy.pool import PoolProxiedConnection

from bloomtide import DatabaseGuard
from bloomtide.errors import ParameterError
from bloomtide.guard.stats import State
from tests.guard.shop import ABSENT, Basket, Customer, Visit


@pytest.fixture
def guard(engine: Engine) -> Iterator[DatabaseGuard]:
    """Of the keys 1 to 20, which have rows."""
    with Session(engine) as session, session.begin():
        session.add_all(Basket(owner=key) for key in range(1, 21))
    with DatabaseGuard(engine, Basket.owner, 1e-6, removals="commit") as made:
        assert made.build()
        yield made


def keys_in(engine: Engine) -> set[int | None]:
    with engine.connect() as connection:
        return set(connection.scalars(select(Basket.owner)))


def check(guard: DatabaseGuard, engine: Engine) -> None:
    """No row is called absent."""
    assert guard.state is State.READY, guard.stats().reason
    assert all(guard.may_exist(key) for key in keys_in(engine) if key is not None)
    assert not guard.may_exist(ABSENT)


def test_a_deleted_key_is_absent_after_the_commit_and_not_before(
    guard: DatabaseGuard, engine: Engine
) -> None:
    with Session(engine) as session:
        session.execute(delete(Basket).where(Basket.owner == 7))
        assert guard.may_exist(7)
        session.commit()
        assert not guard.may_exist(7)
    check(guard, engine)


def test_the_old_key_of_a_changed_row_is_absent_after_the_commit(
    guard: DatabaseGuard, engine: Engine
) -> None:
    with Session(engine) as session, session.begin():
        session.execute(update(Basket).where(Basket.owner == 7).values(owner=107))
        assert guard.may_exist(7)
    assert not guard.may_exist(7)
    assert guard.may_exist(107)
    check(guard, engine)


def test_a_key_that_is_the_primary_key_is_taken_out_for_a_deleted_object(engine: Engine) -> None:
    with Session(engine) as session, session.begin():
        session.add_all(Customer(id=key) for key in range(1, 11))
    with DatabaseGuard(engine, Customer.id, 1e-6, removals="commit") as guard:
        assert guard.build()
        with Session(engine) as session, session.begin():
            for key in (3, 4):
                session.delete(session.get_one(Customer, key))
        assert [guard.may_exist(key) for key in range(1, 6)] == [True, True, False, False, True]


KEEPS: dict[str, Callable[[Session], object]] = {
    "a row that is not there": lambda s: s.execute(delete(Basket).where(Basket.owner == ABSENT)),
    "rows that are not named": lambda s: s.execute(delete(Basket).where(Basket.owner < 5)),
    "a list of keys": lambda s: s.execute(delete(Basket).where(Basket.owner.in_([1, 2]))),
    "a computed key": lambda s: s.connection().execute(
        Basket.__table__.delete().where(  # type: ignore[attr-defined]
            Basket.__table__.c.customer_id == func.abs(1)
        )
    ),
    "an object whose key is not its primary key": lambda s: s.delete(s.scalars(
        select(Basket).where(Basket.owner == 1)).one()),
    "a condition that did not hold": lambda s: s.execute(
        delete(Basket).where(Basket.owner == 1, Basket.items > 100)
    ),
    "everything": lambda s: s.execute(delete(Basket)),
}  # fmt: skip


@pytest.mark.parametrize("name", KEEPS)
def test_a_key_stays_if_it_is_not_certain_that_its_row_is_gone(
    guard: DatabaseGuard, engine: Engine, name: str
) -> None:
    gone = len(keys_in(engine))
    with Session(engine) as session, session.begin():
        KEEPS[name](session)
    gone -= len(keys_in(engine))
    assert all(guard.may_exist(key) for key in range(1, 21))
    assert (guard.stats().removed, guard.stats().stale) == (0, gone)
    check(guard, engine)


def test_the_same_table_under_another_name_is_another_row(
    guard: DatabaseGuard, engine: Engine
) -> None:
    if engine.dialect.name == "sqlite":
        pytest.skip("SQLite has no DELETE with several tables")
    other = aliased(Basket)
    with Session(engine) as session, session.begin():
        session.execute(delete(Basket).where(other.owner == 7, Basket.id == other.id + 1))
    assert guard.may_exist(7), "it was the row after it"
    check(guard, engine)
    with Session(engine) as session, session.begin():
        session.connection().execute(delete(other).where(other.owner == 7))
    assert not guard.may_exist(7)
    check(guard, engine)


def test_a_rollback_and_a_rollback_to_a_savepoint_keep_their_keys(
    guard: DatabaseGuard, engine: Engine
) -> None:
    with Session(engine) as session:
        session.execute(delete(Basket).where(Basket.owner == 1))
        session.rollback()
        session.execute(delete(Basket).where(Basket.owner == 2))
        savepoint = session.begin_nested()
        session.execute(delete(Basket).where(Basket.owner == 3))
        inner = session.begin_nested()
        session.execute(delete(Basket).where(Basket.owner == 4))
        inner.commit()
        savepoint.rollback()
        with session.begin_nested():
            session.execute(delete(Basket).where(Basket.owner == 5))
        session.commit()
    assert [guard.may_exist(key) for key in range(1, 6)] == [True, False, True, True, False]
    check(guard, engine)


def test_a_savepoint_of_text_keeps_all_keys_of_its_transaction(
    guard: DatabaseGuard, engine: Engine
) -> None:
    with engine.begin() as connection:
        connection.execute(text("SAVEPOINT here"))
        connection.execute(delete(Basket).where(Basket.owner == 1))
        connection.execute(text("ROLLBACK TO SAVEPOINT here"))
    assert 1 in keys_in(engine)
    check(guard, engine)


def test_a_commit_after_an_error_keeps_its_keys(guard: DatabaseGuard, engine: Engine) -> None:
    """PostgreSQL makes a rollback of it and says nothing."""
    with engine.connect() as connection:
        connection.execute(delete(Basket).where(Basket.owner == 1))
        with suppress(DBAPIError):
            connection.execute(insert(Basket).values(owner=2))
        connection.commit()
    check(guard, engine)
    assert (1 in keys_in(engine)) == (engine.dialect.name == "postgresql")


def test_a_commit_that_fails_keeps_its_keys(guard: DatabaseGuard, engine: Engine) -> None:
    def fail(connection: object) -> None:
        raise RuntimeError("before the commit was sent")

    event.listen(engine, "commit", fail)
    with Session(engine) as session:
        session.execute(delete(Basket).where(Basket.owner == 1))
        with pytest.raises(RuntimeError):
            session.commit()
        event.remove(engine, "commit", fail)
        session.rollback()
    check(guard, engine)
    with engine.begin() as connection:
        connection.execute(delete(Basket).where(Basket.owner == 2))
    check(guard, engine)
    assert keys_in(engine) >= {1}
    assert not guard.may_exist(2)


def test_the_keys_of_a_commit_that_fails_in_the_driver_are_not_lost_by_a_build(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be that the commit arrived, and only its answer did not."""
    send, answers = engine.dialect.do_commit, [False, True, True, True]

    def do_commit(connection: PoolProxiedConnection) -> None:
        send(connection)
        if not answers.pop():
            raise ConnectionResetError

    monkeypatch.setattr(engine.dialect, "do_commit", do_commit)
    with DatabaseGuard(engine, Basket.owner, 1e-6, removals="commit") as guard:
        for key in (1, 2):
            with Session(engine) as session, session.begin():
                session.add(Basket(owner=key))
        assert guard.build()
        with Session(engine) as session, session.begin():
            session.add(Basket(owner=3))
        with Session(engine) as session:
            session.add(Basket(owner=100))
            session.execute(delete(Basket).where(Basket.owner == 1))
            with pytest.raises(ConnectionResetError):
                session.commit()
        assert not guard.may_exist(1), "the database was asked"
        assert keys_in(engine) == {2, 3, 100}
        check(guard, engine)
        assert guard.build()
        check(guard, engine)


def test_a_key_that_comes_back_is_held_again(guard: DatabaseGuard, engine: Engine) -> None:
    for _ in range(3):
        with Session(engine) as session, session.begin():
            session.execute(delete(Basket).where(Basket.owner == 1))
        assert not guard.may_exist(1)
        with Session(engine) as session, session.begin():
            session.execute(insert(Basket).values(owner=1))
        assert guard.may_exist(1)
    check(guard, engine)


def test_a_row_deleted_before_a_build_and_committed_after_it_is_not_taken_out_of_the_new_filter(
    guard: DatabaseGuard, engine: Engine
) -> None:
    if engine.dialect.name == "sqlite":
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
    with Session(engine) as session:
        session.execute(delete(Basket).where(Basket.owner == 1))
        assert guard.build(), "reads the row, which is still there for others"
        session.commit()
    check(guard, engine)
    assert guard.build()
    assert not guard.may_exist(1)


def test_removals_are_refused_for_a_column_that_is_not_unique(engine: Engine) -> None:
    with pytest.raises(ParameterError, match="not unique"):
        DatabaseGuard(engine, Visit.shop, removals="commit")
