"""What a program sees of a guard: its questions, its modes, its counters, and what it refuses."""

from __future__ import annotations

import asyncio
import os
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Column, Engine, Integer, MetaData, Table, create_engine, func, insert, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

import bloomtide
from bloomtide import DatabaseGuard
from bloomtide.errors import KeyTypeError, NullKeyError, ParameterError
from bloomtide.guard.stats import State
from tests.guard.shop import ABSENT, Basket, Customer, Visit


def fill(engine: Engine, count: int = 20) -> None:
    with Session(engine) as session, session.begin():
        session.add_all(Basket(owner=key, items=key) for key in range(1, count + 1))


@pytest.fixture
def guard(engine: Engine) -> Iterator[DatabaseGuard]:
    """Of the keys 1 to 20."""
    fill(engine)
    with DatabaseGuard(engine, Basket.owner, 1e-6) as made:
        assert made.build()
        yield made


# --- questions ------------------------------------------------------------------------------------


def test_before_it_is_built_everything_passes(engine: Engine) -> None:
    with DatabaseGuard(engine, Basket.owner) as guard, Session(engine) as session:
        assert guard.state is State.UNKNOWN
        assert guard.may_exist(ABSENT)
        assert guard.get(session, ABSENT) is None
        assert guard.stats().false_true == 0, "it had promised nothing"


def test_get_and_exists_ask_the_database_only_if_they_must(
    guard: DatabaseGuard, engine: Engine
) -> None:
    with Session(engine) as session:
        found = guard.get(session, 7)
        assert isinstance(found, Basket)
        assert found.items == 7
        assert guard.exists(session, 7)
    engine.dispose()
    broken = create_engine("sqlite:////nowhere/at/all")
    with Session(broken) as session:
        assert guard.get(session, ABSENT) is None
        assert guard.exists(session, ABSENT) is False
        with pytest.raises(DBAPIError):
            guard.get(session, 7)


def test_a_column_of_a_table_gives_rows(guard: DatabaseGuard, engine: Engine) -> None:
    table: Any = Basket.__table__
    with DatabaseGuard(engine, table.c.customer_id, 1e-6) as other, engine.connect() as connection:
        other.build()
        assert other.get(connection, 7)._mapping["items"] == 7
        assert other.get(connection, ABSENT) is None


def test_what_a_session_has_not_sent_yet_is_found(guard: DatabaseGuard, engine: Engine) -> None:
    with Session(engine) as session:
        session.add(Basket(owner=100))
        assert guard.get(session, 100) is not None
        session.rollback()
        found = guard.get(session, 7)
        found.owner = 107
        assert guard.exists(session, 107)


def test_many_keys_are_asked_for_at_once(guard: DatabaseGuard) -> None:
    assert guard.filter_many(iter([ABSENT, 7, ABSENT, 3])) == [7, 3]
    assert guard.may_exist_many([ABSENT, 7]).tolist() == [False, True]
    assert guard.filter_many([]) == []
    assert guard.may_exist_many(["not a number", ABSENT]).tolist() == [True, False]
    assert (guard.stats().asked, guard.stats().avoided) == (8, 4)


def test_a_decorated_function_is_not_called_for_an_absent_key(guard: DatabaseGuard) -> None:
    called: list[int] = []

    @guard.check("customer_id")
    def basket(shop: str, customer_id: int = ABSENT) -> str:
        """Looks it up."""
        called.append(customer_id)
        return shop

    @guard.check("customer_id", absent=list)
    async def items(customer_id: int) -> list[int]:
        return [customer_id]

    assert basket("tea", 7) == "tea"
    assert basket("tea", customer_id=8) == "tea"
    assert basket("tea") is None
    assert called == [7, 8]
    assert basket.__doc__ == "Looks it up."
    assert asyncio.run(items(7)) == [7]
    assert asyncio.run(items(ABSENT)) == []


def test_a_decorated_function_may_have_a_key_of_two_arguments(engine: Engine) -> None:
    with DatabaseGuard(engine, [Visit.shop, Visit.day], 1e-6) as guard:
        guard.build()

        @guard.check("shop", "day", absent=0)
        def visits(day: int, shop: str) -> int:
            return 5

        assert visits(1, "a") == 0
        with Session(engine) as session, session.begin():
            session.add(Visit(shop="a", day=1))
        assert visits(1, "a") == 5
        with Session(engine) as session:
            assert guard.get(session, ("a", 2)) is None
            assert guard.get(session, ("a", 1)).day == 1


def test_a_decorated_function_finds_what_its_session_has_not_sent_yet(
    guard: DatabaseGuard, engine: Engine
) -> None:
    @guard.check("key")
    def basket(session: Session, key: int) -> Basket | None:
        return session.scalars(select(Basket).where(Basket.owner == key)).first()

    with Session(engine) as session:
        session.add(Basket(owner=100))
        assert basket(session, 100) is not None
        session.rollback()
        assert basket(session, 100) is None

    @guard.check("key")
    def hidden(key: int, *others: Session, **words: Session) -> Basket | None:
        session = next(iter((*others, *words.values())))
        return session.scalars(select(Basket).where(Basket.owner == key)).first()

    with Session(engine) as session:
        session.add(Basket(owner=102))
        assert hidden(102, session) is not None
        session.rollback()
        session.add(Basket(owner=103))
        assert hidden(103, session=session) is not None
    asked = scoped_session(sessionmaker(engine))
    asked.add(Basket(owner=101))
    assert basket(asked, 101) is not None
    asked.remove()


def test_a_decorated_function_decides_itself_about_null(guard: DatabaseGuard) -> None:
    assert guard.check("key")(lambda key: "asked")(None) == "asked"


def test_what_a_decorated_function_returns_is_compared_with_what_it_would_have_been_spared(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    fill(engine)
    with DatabaseGuard(engine, Basket.owner, 1e-6, mode="shadow") as guard:
        guard.build()

        @guard.check("key")
        def one(key: int) -> str | None:
            return "tea" if key == 7 else None

        @guard.check("key", absent=list)
        async def many(key: int) -> list[int]:
            return [key] if key == 7 else []

        @guard.check("key", absent=list)
        def later(key: int) -> Iterator[int]:
            yield key

        assert [one(7), one(ABSENT), one(8)] == ["tea", None, None]
        assert [asyncio.run(many(key)) for key in (7, ABSENT, 8)] == [[7], [], []]
        assert [*later(7), *later(ABSENT)] == [7, ABSENT], "nobody knows what that has found"
        stats = guard.stats()
        assert (stats.asked, stats.avoided, stats.true_keys) == (8, 3, 2)
        assert (stats.false_true, stats.wrong_false) == (2, 0)

        @guard.check("key")
        def wrong(key: int) -> list[int]:
            return []  # and not None, which `absent` says

        assert wrong(ABSENT) == []
        assert guard.stats().wrong_false == 1
        assert str(ABSENT) in caplog.text


def test_who_asks_the_database_himself_can_tell_what_it_said(engine: Engine) -> None:
    fill(engine)
    with DatabaseGuard(engine, Basket.owner, 1e-6, mode="shadow") as guard:
        guard.build()
        for key, found in ((7, True), (8, False), (ABSENT, False)):
            guard.note(key, found)
        assert (guard.stats().true_keys, guard.stats().false_true) == (1, 1)
        assert guard.stats().wrong_false == 0
        guard.note(ABSENT, found=True)
        assert guard.stats().wrong_false == 1
        assert guard.may_exist(ABSENT)


# --- modes ----------------------------------------------------------------------------------------


def test_shadow_lets_everything_pass_and_counts_what_it_would_have_said(engine: Engine) -> None:
    fill(engine)
    with DatabaseGuard(engine, Basket.owner, 1e-6, mode="shadow") as guard:
        guard.build()
        with Session(engine) as session:
            assert [guard.exists(session, key) for key in (1, 2, ABSENT)] == [True, True, False]
        assert guard.may_exist(ABSENT)
        assert guard.filter_many([ABSENT]) == [ABSENT]
        stats = guard.stats()
        assert (stats.asked, stats.avoided, stats.true_keys) == (5, 3, 2)
        assert (stats.false_true, stats.wrong_false) == (0, 0)


def test_shadow_finds_a_wrong_false_and_ends_the_trust(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    with DatabaseGuard(engine, Basket.owner, 1e-6, mode="shadow") as guard:
        guard.build()
        other = create_engine(engine.url)
        fill(other)  # a writer that the guard does not see
        other.dispose()
        with Session(engine) as session:
            assert guard.exists(session, 7)
        assert guard.stats().wrong_false == 1
        assert guard.state is State.DEGRADED
        assert "7" in caplog.text


def test_false_trues_are_counted(engine: Engine) -> None:
    fill(engine, 2000)
    with DatabaseGuard(engine, Basket.owner, 0.05) as guard, engine.connect() as connection:
        guard.build()
        absent = range(10_000, 10_500)
        passed = guard.filter_many(absent)
        assert passed, "a filter of five percent errs on some of five hundred"
        assert not any(guard.exists(connection, key) for key in absent)
        assert guard.stats().false_true == len(passed)
        assert guard.stats().passed == 2 * len(passed)


def test_auto_steps_aside_while_nearly_every_key_exists_and_comes_back(engine: Engine) -> None:
    fill(engine)
    with DatabaseGuard(engine, Basket.owner, 1e-6, mode="auto") as guard:
        guard.build()
        for _ in range(1001):
            guard.may_exist(1)
        assert guard.stats().bypassed
        assert guard.may_exist(ABSENT)
        for _ in range(10_000):
            guard.may_exist(1)
        assert not guard.stats().bypassed
        for _ in range(3000):
            assert not guard.may_exist(ABSENT)
        assert not guard.stats().bypassed, "it is of use now"


def test_auto_judges_batches_by_their_share_too(engine: Engine) -> None:
    fill(engine)
    with DatabaseGuard(engine, Basket.owner, 1e-6, mode="auto") as guard:
        guard.build()
        for _ in range(3):
            assert guard.filter_many([ABSENT] * 4000 + [1] * 1000) == [1] * 1000
        assert not guard.stats().bypassed, "four of five are avoided"
        for _ in range(2):
            guard.filter_many([ABSENT] * 200 + [1] * 4800)
        guard.may_exist(1)
        assert guard.stats().bypassed, "hundreds are avoided, but few of a hundred"


def test_off_asks_nothing(engine: Engine) -> None:
    with DatabaseGuard(engine, Basket.owner, mode="off") as guard:
        guard.build()
        assert guard.may_exist(ABSENT)
        assert guard.may_exist_many([ABSENT]).tolist() == [True]
        assert guard.stats().avoided == 0


# --- building -------------------------------------------------------------------------------------


def test_a_build_tells_its_progress(engine: Engine) -> None:
    fill(engine, 30)
    told: list[tuple[int, int | None]] = []
    with DatabaseGuard(engine, Basket.owner) as guard:
        guard.build(lambda done, of: told.append((done, of)))
    assert told[-1] == (30, 30)


def test_a_build_that_fails_leaves_everything_as_it_was(
    guard: DatabaseGuard, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(done: int, of: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guard.build(stop)
    assert guard.state is State.READY
    assert guard.may_exist(7)
    assert not guard.may_exist(ABSENT)


def test_a_table_or_column_that_is_not_there_is_an_error_of_the_database(engine: Engine) -> None:
    missing = Table("missing", MetaData(), Column("x", Integer))
    other = Table("basket", MetaData(), Column("y", Integer))
    for column in (missing.c.x, other.c.y):
        with DatabaseGuard(engine, column) as guard:
            with pytest.raises(DBAPIError):
                guard.build()
            assert guard.state is State.UNKNOWN
            assert guard.may_exist(1)


def test_rows_without_a_key_are_left_out(engine: Engine) -> None:
    with Session(engine) as session, session.begin():
        session.add_all([Basket(owner=None), Basket(owner=1)])
    with DatabaseGuard(engine, Basket.owner, 1e-6) as guard:
        assert guard.build()
        assert round(guard.stats().items) == 1


# --- asynchronous ---------------------------------------------------------------------------------


def test_an_async_engine_is_guarded_as_well(engine: Engine, url: str) -> None:
    fill(engine)

    async def run() -> None:
        later = create_async_engine(url.replace("sqlite:", "sqlite+aiosqlite:"))
        with DatabaseGuard(later, Basket.owner, 1e-6) as guard:
            assert all(await asyncio.gather(guard.abuild(), guard.abuild()))
            assert not guard.may_exist(ABSENT)
            async with AsyncSession(later) as session:
                assert (await guard.aget(session, 7)).items == 7
                assert await guard.aget(session, ABSENT) is None
                session.add(Basket(owner=100))
                assert await guard.aexists(session, 100)
                await session.commit()
            async with later.begin() as connection:
                await connection.execute(
                    insert(Basket), [{"customer_id": 101}, {"customer_id": 102}]
                )
            assert guard.filter_many([100, 101, 102, 103]) == [100, 101, 102]
            async with AsyncSession(later) as session:
                assert await session.scalar(select(func.count(Basket.id))) == 23
                assert await guard.aexists(session, 102)
                assert not await guard.aexists(session, ABSENT)
            with pytest.raises(ParameterError, match="abuild"):
                guard.build()
        await later.dispose()

    asyncio.run(run())


def test_an_ordinary_engine_has_no_asynchronous_build(guard: DatabaseGuard) -> None:
    with pytest.raises(ParameterError, match="AsyncEngine"):
        asyncio.run(guard.abuild())


# --- bad input, and the end -----------------------------------------------------------------------


def test_null_among_many_keys_is_told_by_its_place(guard: DatabaseGuard) -> None:
    with pytest.raises(NullKeyError) as caught:
        guard.filter_many([1, 2, None])
    assert caught.value.index == 2


def test_null_is_no_key(guard: DatabaseGuard, engine: Engine) -> None:
    with pytest.raises(NullKeyError, match="NULL"):
        guard.may_exist(None)
    with pytest.raises(NullKeyError), Session(engine) as session:
        guard.get(session, None)


@pytest.mark.parametrize("key", [b"7", object(), [7], {}])
def test_a_key_of_another_type_is_refused(guard: DatabaseGuard, key: Any) -> None:
    with pytest.raises(KeyTypeError, match="integer"):
        guard.may_exist(key)


@pytest.mark.parametrize("key", [2**70, -(2**70), "many", 1.5])
def test_a_key_that_is_not_understood_is_left_to_the_database(
    guard: DatabaseGuard, key: Any
) -> None:
    assert guard.may_exist(key) or abs(key) == 2**70


@pytest.mark.parametrize(
    "column",
    [
        "customer_id",
        None,
        (),
        (Basket.owner, Customer.id),
        (Basket.owner, Basket.owner),
        func.lower(Customer.name),
        select(Customer.id).subquery().c.id,
    ],
)
def test_what_is_no_column_of_one_table_is_refused(engine: Engine, column: Any) -> None:
    with pytest.raises(ParameterError, match="column"):
        DatabaseGuard(engine, column)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("mode", "maybe"), ("removals", "now"), ("error_rate", 0), ("capacity", 0),
        ("rebuild", "now"), ("notify", True), ("normal", 5), ("shared", ""),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused(engine: Engine, field: str, value: object) -> None:
    with pytest.raises(ParameterError, match=field) as caught:
        DatabaseGuard(engine, Basket.owner, **{field: value})  # type: ignore[arg-type]
    assert caught.value.hint or field == "error_rate"
    with pytest.raises(ParameterError, match="engine"):
        DatabaseGuard("sqlite://", Basket.owner)  # type: ignore[arg-type]


def test_a_decorator_that_names_no_argument_is_refused(guard: DatabaseGuard) -> None:
    with pytest.raises(ParameterError, match="names"):
        guard.check("a", "b")
    with pytest.raises(ParameterError, match="arguments of"):
        guard.check("key")(lambda customer: customer)


def test_a_decorated_generator_needs_something_to_iterate(guard: DatabaseGuard) -> None:
    def later(key: int) -> Iterator[int]:
        yield key

    with pytest.raises(ParameterError, match="absent") as caught:
        guard.check("key")(later)
    assert "absent=list" in caught.value.hint


def test_a_closed_guard_passes_everything_and_builds_no_more(
    guard: DatabaseGuard, engine: Engine
) -> None:
    guard.close()
    guard.close()
    assert guard.may_exist(ABSENT)
    with pytest.raises(ParameterError, match="closed"):
        guard.build()


def test_a_forked_process_trusts_its_copy_no_more(guard: DatabaseGuard) -> None:
    """Its parent goes on writing, and the copy would not know."""
    child = os.fork()
    if child == 0:
        try:
            with pytest.raises(ParameterError, match="made before a fork"):
                guard.build()
            passes = guard.may_exist(ABSENT) and guard.state is State.DEGRADED
        except BaseException:  # noqa: BLE001 - a failure must not leave this line
            passes = False
        os._exit(0 if passes else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not guard.may_exist(ABSENT), "the parent's is as it was"


def test_statistics_are_plain_values(guard: DatabaseGuard) -> None:
    guard.may_exist(ABSENT)
    stats = guard.stats()
    assert stats.as_dict()["state"] == "ready"
    assert stats.as_dict()["avoided"] == 1
    assert 0 < stats.saturation < 1
    assert stats.rebuild_seconds > 0
    assert pickle.loads(pickle.dumps(stats)) == stats
    assert "ready" in repr(guard)
    assert bloomtide.DatabaseGuard is DatabaseGuard
