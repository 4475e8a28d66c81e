"""What a guard's hooks cost an INSERT, and that what they leave out for it is nobody's loss."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, insert
from sqlalchemy.exc import IntegrityError

from bloomtide import DatabaseGuard
from bloomtide.guard import commits
from bloomtide.guard.commits import unless_empty
from bloomtide.guard.pending import Pending
from bloomtide.guard.shared import SharedKeys
from bloomtide.guard.state import State
from tests.guard.shop import ABSENT, Basket

GUARD = Path(commits.__file__).parent


def add(engine: Engine, owner: int) -> None:
    with engine.begin() as connection:
        connection.execute(insert(Basket), {"customer_id": owner})


def calls(work: Callable[[], object]) -> tuple[int, int]:
    """How many functions written in Python are called: the guard's, and others."""
    ours = others = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal ours, others
        if event == "call":
            of_the_guard = Path(frame.f_code.co_filename).parent == GUARD
            ours, others = ours + of_the_guard, others + (not of_the_guard)

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return ours, others


def open_keys(guard: DatabaseGuard) -> list[Any]:
    """The keys of transactions that have not ended, as far as the guard knows."""
    return [key for pending in guard._held.pendings for key in pending.keys]


def under_way(guard: DatabaseGuard) -> int:
    """How many commits a shared guard has under way in this process."""
    assert isinstance(guard._held, SharedKeys)
    return len(guard._held._sections)


def test_a_guard_adds_eight_calls_of_its_own_to_an_insert_and_its_commit(engine: Engine) -> None:
    for owner in range(10):  # whatever is made once is made
        add(engine, owner)
    plain = calls(lambda: add(engine, 100))
    with DatabaseGuard(engine, Basket.owner, 1e-6, rebuild="manual") as guard:
        assert guard.build()
        for owner in range(10, 20):
            add(engine, owner)
        guarded = calls(lambda: add(engine, 101))
        assert guard.filter_many([101, ABSENT]) == [101]
    assert plain[0] == 0
    assert 0 < guarded[0] <= 8
    assert guarded[1] <= plain[1], "SQLAlchemy has no more to do than without it"


def test_a_dialect_gets_an_event_only_if_an_error_can_matter(engine: Engine) -> None:
    with DatabaseGuard(engine, Basket.owner):
        assert not engine.dialect._has_events
    with DatabaseGuard(engine, Basket.owner, removals="commit"):
        assert engine.dialect._has_events


@pytest.mark.parametrize("end", ["commit", "rollback", "close"])
def test_the_keys_of_a_transaction_are_listed_until_its_end_and_no_longer(
    engine: Engine, end: str
) -> None:
    with DatabaseGuard(engine, Basket.owner, 1e-6) as guard:
        with engine.connect() as connection:
            connection.execute(insert(Basket), {"customer_id": 100})
            assert open_keys(guard) == [100]
            getattr(connection, end)()
            assert open_keys(guard) == []
        assert guard.build()
        assert guard.filter_many([100, ABSENT]) == ([100] if end == "commit" else [])
        assert guard.state is State.READY


def test_a_transaction_begins_with_no_keys_of_one_that_was_rolled_back_unseen(
    engine: Engine,
) -> None:
    with DatabaseGuard(engine, Basket.owner, 1e-6) as guard, engine.connect() as connection:
        connection.execute(insert(Basket), {"customer_id": 100})
        pooled = connection.connection
        assert pooled.dbapi_connection is not None
        pooled.dbapi_connection.rollback()
        engine.dialect.do_begin(pooled)
        assert open_keys(guard) == []


def test_keys_written_one_by_one_that_are_too_many_to_list_spoil_a_build_beside_them(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pending, "most", 3)
    with DatabaseGuard(engine, Basket.owner, 1e-6, rebuild="manual") as guard:
        with engine.connect() as connection:
            for owner in range(5):
                connection.execute(insert(Basket), {"customer_id": owner})
            assert len(open_keys(guard)) <= 3
            assert not guard._held.rebuild(lambda: iter([[]]))
            connection.commit()
        assert guard.build()
        assert guard.filter_many([*range(5), ABSENT]) == [*range(5)]


def test_a_connection_that_leaves_its_pool_takes_its_open_keys_along(engine: Engine) -> None:
    def write(connection: Connection, owner: int) -> None:
        connection.execute(insert(Basket), {"customer_id": owner})

    with DatabaseGuard(engine, Basket.owner, 1e-6) as guard:
        assert guard.build()
        with engine.connect() as connection:
            write(connection, 100)
            connection.detach()
            write(connection, 101)
            assert sorted(open_keys(guard)) == [100, 101]
            connection.commit()
            assert open_keys(guard) == []
            write(connection, 102)
            connection.rollback()
            assert open_keys(guard) == []
        assert guard.filter_many([100, 101, ABSENT]) == [100, 101]
        assert guard.state is State.READY


def test_the_key_of_a_commit_that_broke_off_stays_for_ever(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(connection: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr(engine.dialect, "do_commit", break_off)
    with DatabaseGuard(engine, Basket.owner, 1e-6) as guard:
        with engine.connect() as connection:
            connection.execute(insert(Basket), {"customer_id": 100})
            with pytest.raises(ConnectionError):
                connection.commit()
        assert guard.build()
        assert guard.filter_many([100, ABSENT]) == [100], "though its row was not to be seen"


def test_a_commit_of_one_key_is_a_section_of_a_shared_guard(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sections: list[int] = []
    commit = engine.dialect.do_commit

    def look(connection: Any) -> None:
        sections.append(under_way(guard))
        commit(connection)

    monkeypatch.setattr(engine.dialect, "do_commit", look)
    with DatabaseGuard(engine, Basket.owner, 1e-6, shared=tmp_path / "guard") as guard:
        assert guard.build()
        sections.clear()
        add(engine, 100)
        assert sections == [1]
        assert under_way(guard) == 0
        assert guard.filter_many([100, ABSENT]) == [100]


def test_a_statement_without_a_key_that_fails_to_commit_itself_ends_its_section(
    engine: Engine, tmp_path: Path
) -> None:
    with DatabaseGuard(engine, Basket.owner, 1e-6, shared=tmp_path / "guard") as guard:
        assert guard.build()
        at_once = engine.execution_options(isolation_level="AUTOCOMMIT")
        with at_once.connect() as connection:
            row = {"id": 1, "customer_id": None}
            connection.execute(insert(Basket), row)
            assert under_way(guard) == 0
            with pytest.raises(IntegrityError):
                connection.execute(insert(Basket), row)
            assert under_way(guard) == 0


def test_what_a_dialect_does_at_the_same_moments_is_still_done(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    original = engine.dialect.execution_ctx_cls

    class Busy(original):  # type: ignore[misc, valid-type]
        def pre_exec(self) -> None:
            done.append("before")

        def post_exec(self) -> None:
            done.append("after")

    def begin(connection: Any) -> None:
        done.append("begin")

    monkeypatch.setattr(engine.dialect, "execution_ctx_cls", Busy)
    monkeypatch.setattr(engine.dialect, "do_begin", begin)
    with DatabaseGuard(engine, Basket.owner, 1e-6) as guard:
        assert guard.build()
        done.clear()
        add(engine, 100)
        assert done == ["begin", "before", "after"]
        assert guard.filter_many([100, ABSENT]) == [100]


def test_only_a_function_without_a_body_is_left_out() -> None:
    def bare(connection: Any) -> None:
        pass

    def documented(connection: Any) -> None:
        """It would be here."""

    def busy(connection: Any) -> None:
        connection.begin()

    class Dialect:
        def bare(self, connection: Any) -> None: ...
        def busy(self, connection: Any) -> None:
            connection.begin()

    dialect = Dialect()
    for empty in (bare, documented, Dialect.bare, dialect.bare):
        assert unless_empty(empty) is None
    for full in (busy, dialect.busy, print, lambda it: it.begin()):
        assert unless_empty(full) is full or full == dialect.busy == unless_empty(full)
