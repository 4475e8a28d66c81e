"""A guard and writers that do not use its engine: what each option promises, and keeps."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, event, insert, select, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import create_async_engine

from bloomery import DatabaseGuard
from bloomery.errors import IncompatibleError, ParameterError
from bloomery.guard.state import State
from tests.guard.databases import BASKET, METADATA, Database
from tests.services.postgres import Postgres

ABSENT = -1
PATIENCE = 20.0
NEVER = "1h"
"""Between two readings that no test waits for."""


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


@pytest.fixture
def guarded(basket: Database) -> Iterator[Callable[..., DatabaseGuard]]:
    """Makes a guard on an engine of its own, and builds it."""
    made: list[DatabaseGuard] = []

    def make(*, build: bool = True, **options: Any) -> DatabaseGuard:
        guard = DatabaseGuard(create_engine(basket.url), BASKET.c.customer, 1e-6, **options)
        made.append(guard)
        if build:
            assert guard.build()
        return guard

    yield make
    for guard in made:
        guard.close()
        guard.engine.dispose()


Make = Callable[..., DatabaseGuard]

# --- the change table ---------------------------------------------------------------------------


def test_without_an_option_other_writers_are_not_seen(basket: Database, guarded: Make) -> None:
    """Or the tests below would prove nothing."""
    guard = guarded()
    basket.insert([7])
    assert not guard.may_exist(7)


def test_what_others_commit_is_known_after_catching_up(basket: Database, guarded: Make) -> None:
    basket.insert([1])
    guard = guarded(outbox=NEVER)
    assert not guard.may_exist(7)
    basket.insert([7])
    basket.run("UPDATE basket SET customer = 8 WHERE customer = 1")
    guard.catch_up()
    assert guard.may_exist_many([7, 8]).all()
    assert not guard.may_exist(ABSENT)


def test_the_change_table_is_read_by_itself(basket: Database, guarded: Make) -> None:
    guard = guarded(outbox="20ms")
    basket.insert([7])
    until(lambda: guard.may_exist(7) and not guard.may_exist(ABSENT))


def test_what_others_commit_during_a_build_is_known_after_it(
    basket: Database, guarded: Make
) -> None:
    basket.insert(range(100, 110))
    guard = guarded(outbox=NEVER, build=False)

    def somebody_writes(done: int, of: int | None) -> None:
        basket.insert([7])

    assert guard.build(somebody_writes)
    assert guard.may_exist(7)
    assert not guard.may_exist(ABSENT)


def test_two_guards_on_one_column_share_the_change_table(basket: Database, guarded: Make) -> None:
    one, two = guarded(outbox=NEVER), guarded(outbox=NEVER)
    with one.engine.begin() as connection:
        connection.execute(insert(BASKET), {"customer": 7})
    assert one.may_exist(7)
    assert not two.may_exist(7)
    two.catch_up()
    assert two.may_exist(7)


def test_two_guards_on_one_engine_both_see_its_writes(basket: Database) -> None:
    with (
        DatabaseGuard(basket.engine, BASKET.c.customer, 1e-6) as one,
        DatabaseGuard(basket.engine, BASKET.c.customer, 1e-6) as two,
    ):
        one.build()
        two.build()
        with basket.engine.begin() as connection:
            connection.execute(insert(BASKET), {"customer": 7})
        assert one.may_exist(7)
        assert two.may_exist(7)
        one.close()
        with basket.engine.begin() as connection:
            connection.execute(insert(BASKET), {"customer": 8})
        assert two.may_exist(8)
        assert not two.may_exist(ABSENT)


def test_lost_changes_make_the_guard_build_again(basket: Database, guarded: Make) -> None:
    guard = guarded(outbox="20ms")
    guard.uninstall()
    basket.insert([7])
    until(lambda: guard.may_exist(7) and not guard.may_exist(ABSENT))
    basket.insert([8])
    until(lambda: guard.may_exist(8) and not guard.may_exist(ABSENT))


def test_a_guard_that_cannot_read_passes_everything_and_recovers(
    basket: Database, guarded: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = guarded(outbox="20ms")
    assert not guard.may_exist(ABSENT)

    def away(*arguments: object) -> None:
        raise OperationalError("SELECT", {}, ConnectionError("away"))

    with monkeypatch.context() as patch:
        patch.setattr("bloomery.guard.errands.Errands.run", away)
        until(lambda: guard.may_exist(ABSENT))
        assert guard.state is State.READY
        assert "followed" in guard.stats().reason
        basket.insert([7])
    until(lambda: not guard.may_exist(ABSENT))
    assert guard.may_exist(7), "it caught up before it was trusted"


def test_a_reading_that_hangs_does_not_keep_the_guard_trusted(
    guarded: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = guarded(outbox="20ms")
    released: list[bool] = []

    def hang(*arguments: object) -> None:
        until(lambda: bool(released))
        raise ConnectionError("at last")

    with monkeypatch.context() as patch:
        patch.setattr("bloomery.guard.errands.Errands.run", hang)
        until(lambda: guard.may_exist(ABSENT))
        released.append(True)
    until(lambda: not guard.may_exist(ABSENT))


def test_changes_are_pruned_when_everybody_has_had_the_time_to_read_them(
    basket: Database, guarded: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bloomery.guard.changes._KEEP", 0.1)
    guarded(outbox="20ms")
    basket.insert(range(50))

    def changes() -> int:
        with basket.engine.connect() as connection:
            count = connection.execute(text("SELECT count(*) FROM bloomery_basket_customer"))
            return int(count.scalar_one())

    until(lambda: changes() == 0)


def test_changes_that_cannot_be_deleted_are_read_all_the_same(
    basket: Database, guarded: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[bool] = []

    def no_rights(*arguments: object) -> None:
        tried.append(True)
        raise OperationalError("DELETE", {}, PermissionError("no rights"))

    monkeypatch.setattr("bloomery.guard.changes._KEEP", 0.0)
    monkeypatch.setattr("bloomery.guard.outbox.Outbox.prune", no_rights)
    guard = guarded(outbox=NEVER)
    for key in (7, 8):
        basket.insert([key])
        guard.catch_up()
        assert guard.may_exist(key)
    assert tried
    assert not guard.may_exist(ABSENT)


def test_a_key_that_a_stranger_writes_is_read_as_the_column_compares_it(
    sqlite_basket: Database,
) -> None:
    with DatabaseGuard(
        sqlite_basket.engine, (BASKET.c.note, BASKET.c.customer), 1e-6, outbox=NEVER
    ) as guard:
        guard.build()
        assert not guard.may_exist(("é", 7))
        stranger = create_engine(sqlite_basket.url)
        with stranger.begin() as connection:
            connection.execute(insert(BASKET), {"note": "é", "customer": 7})
        stranger.dispose()
        guard.catch_up()
        assert guard.may_exist(("é", 7))


# --- NOTIFY -------------------------------------------------------------------------------------


def test_a_commit_wakes_the_guard_long_before_its_next_reading(postgres_basket: Database) -> None:
    engine = create_engine(postgres_basket.url)
    with DatabaseGuard(engine, BASKET.c.customer, 1e-6, outbox=NEVER, notify=True) as guard:
        guard.build()
        postgres_basket.insert([7])
        until(lambda: guard.may_exist(7))
        postgres_basket.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE query LIKE 'LISTEN%' AND datname = current_database()"
        )
        postgres_basket.insert([8])
        until(lambda: guard.may_exist(8))
        assert not guard.may_exist(ABSENT)
    engine.dispose()


# --- refresh ------------------------------------------------------------------------------------


def test_a_refresh_sees_everybody(basket: Database, guarded: Make) -> None:
    guard = guarded(refresh="50ms")
    basket.insert([7])
    until(lambda: guard.may_exist(7) and not guard.may_exist(ABSENT))
    basket.run("DELETE FROM basket")
    until(lambda: not guard.may_exist(7))


def test_a_guard_that_cannot_be_refreshed_passes_everything_and_recovers(
    basket: Database, guarded: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = guarded(refresh="50ms")

    def away(*arguments: object) -> None:
        raise OperationalError("SELECT", {}, ConnectionError("away"))

    with monkeypatch.context() as patch:
        patch.setattr("bloomery.guard.errands.Errands.run", away)
        until(lambda: guard.may_exist(ABSENT))
        basket.insert([7])
    until(lambda: not guard.may_exist(ABSENT))
    assert guard.may_exist(7)


def test_the_database_going_away_makes_no_answer_wrong(postgres: Postgres) -> None:
    """A real server that stops and starts again, with a change table and during a build."""
    url = postgres.new_database()
    engine, stranger = (
        create_engine(url, pool_pre_ping=True),
        create_engine(url, pool_pre_ping=True),
    )
    METADATA.create_all(engine)
    outside = Database(stranger)
    outside.insert([1])
    with DatabaseGuard(engine, BASKET.c.customer, 1e-6, outbox="50ms", notify=True) as guard:
        assert guard.build()
        postgres.stop()
        try:
            with pytest.raises(OperationalError):
                guard.build()
            assert guard.may_exist(1)
            until(lambda: guard.may_exist(ABSENT))
        finally:
            postgres.start()
        outside.insert([7])
        until(lambda: not guard.may_exist(ABSENT))
        until(lambda: guard.may_exist(7))
    engine.dispose()
    stranger.dispose()


# --- processes ----------------------------------------------------------------------------------


def test_guards_that_share_a_directory_share_their_keys(
    basket: Database, guarded: Make, tmp_path: Path
) -> None:
    one, two = guarded(shared=tmp_path / "guard"), guarded(shared=tmp_path / "guard")
    assert two.stats().rebuilds == 1, "the second one found it built"
    for writer, reader, key in ((one, two, 7), (two, one, 8)):
        with writer.engine.connect() as connection:
            connection.execute(insert(BASKET), {"customer": key})
            assert reader.may_exist(key), "before the commit"
            connection.commit()
    assert not one.may_exist(ABSENT)
    with two.engine.begin() as connection:
        connection.execute(text("INSERT INTO basket (customer) VALUES (9)"))
    assert one.may_exist(9)
    assert one.state is State.DEGRADED
    assert one.build()
    assert not two.may_exist(ABSENT)
    one.close()
    assert not two.may_exist(ABSENT), "who closes its guard disturbs nobody"
    assert one.may_exist(ABSENT)
    assert one.stats().reason == "the guard is closed"


def test_statements_that_are_committed_at_once_are_seen_everywhere(
    basket: Database, guarded: Make, tmp_path: Path
) -> None:
    one, two = guarded(shared=tmp_path / "guard"), guarded(shared=tmp_path / "guard")
    with one.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(insert(BASKET), [{"customer": key} for key in (7, 8)])
        assert two.may_exist_many([7, 8]).all()
        assert two.build(), "no section is left open"
        connection.execute(text("INSERT INTO basket (customer) VALUES (9)"))
        assert two.may_exist(9)
        assert two.build(), "nor by a statement whose keys are not seen"
        assert two.may_exist(9)
        assert not two.may_exist(ABSENT)


@pytest.mark.parametrize("seen", [True, False])
def test_a_build_waits_for_a_statement_of_another_process_that_is_committed_at_once(
    basket: Database, guarded: Make, tmp_path: Path, seen: bool
) -> None:
    one, two = guarded(shared=tmp_path / "guard"), guarded(shared=tmp_path / "guard")
    builder = threading.Thread(target=two.build)

    @event.listens_for(one.engine, "do_execute")
    def build_before_it_is_sent(*about: object) -> None:
        builder.start()
        builder.join(0.3)  # time enough to scan without the row

    with one.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        statement = insert(BASKET).values(customer=7)
        connection.execute(statement if seen else text("INSERT INTO basket (customer) VALUES (7)"))
    builder.join()
    assert two.may_exist(7)
    assert not two.may_exist(ABSENT), "it did build"


@pytest.mark.parametrize("way", ["release", "raw"])
def test_a_build_waits_for_whatever_may_be_a_commit(
    basket: Database, guarded: Make, tmp_path: Path, way: str
) -> None:
    """SQLite commits when it releases a savepoint that stands for the whole transaction."""
    one, two = guarded(shared=tmp_path / "guard"), guarded(shared=tmp_path / "guard")
    builder = threading.Thread(target=two.build)

    @event.listens_for(one.engine, "do_execute")
    def build_before_it_is_sent(*about: Any) -> None:
        if about[1].startswith(("RELEASE", "COMMIT")):
            builder.start()
            builder.join(0.3)  # time enough to scan without the row

    with one.engine.connect() as connection:
        if way == "release":
            with connection.begin_nested():
                connection.execute(insert(BASKET).values(customer=7))
        else:
            connection.execute(insert(BASKET).values(customer=7))
            connection.execute(text("COMMIT"))
        builder.join()
        with basket.engine.connect() as witness:
            is_there = witness.execute(select(BASKET.c.customer)).scalars().all() == [7]
        assert is_there == (basket.kind == "sqlite" or way == "raw")
        assert two.may_exist(7) or not is_there
    assert not two.may_exist(ABSENT), "it did build"


def test_one_process_reads_the_changes_and_another_takes_over(
    basket: Database, guarded: Make, tmp_path: Path
) -> None:
    directory = tmp_path / "guard"
    one = guarded(shared=directory, outbox="20ms")
    two = guarded(shared=directory, outbox="20ms")
    basket.insert([7])
    until(lambda: two.may_exist(7) and not two.may_exist(ABSENT))
    one.close()
    basket.insert([8])
    until(lambda: two.may_exist(8) and not two.may_exist(ABSENT))
    assert two.stats().rebuilds == 1, "it went on from the position of the other"


def test_a_shared_filter_is_refreshed_for_all(
    basket: Database, guarded: Make, tmp_path: Path
) -> None:
    one = guarded(shared=tmp_path / "guard", refresh="100ms")
    two = guarded(shared=tmp_path / "guard", refresh="100ms")
    basket.insert([7])
    until(lambda: one.may_exist(7) and not one.may_exist(ABSENT))
    until(lambda: two.may_exist(7) and not two.may_exist(ABSENT))


def test_a_process_that_joined_builds_again_when_it_is_time_if_the_builder_is_gone(
    guarded: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bloomery.guard.keeper._LOOK", 0.02)
    monkeypatch.setattr("bloomery.guard.keeper._REST", 0.0)
    one, two = guarded(shared=tmp_path / "guard"), guarded(shared=tmp_path / "guard")
    one.close()
    two.distrust()
    until(lambda: not two.may_exist(ABSENT))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(("options", "answers"), [({}, True), ({"outbox": NEVER}, False)])
def test_a_forked_child_shares_the_keys_unless_threads_have_to_keep_them_up(
    sqlite_basket: Database, tmp_path: Path, options: dict[str, Any], answers: bool
) -> None:
    with DatabaseGuard(
        sqlite_basket.engine, BASKET.c.customer, 1e-6, shared=tmp_path / "guard", **options
    ) as guard:
        guard.build()
        child = os.fork()
        if not child:
            verdict = 2
            try:
                sqlite_basket.engine.dispose(close=False)
                verdict = int(guard.may_exist(ABSENT))
                with sqlite_basket.engine.begin() as connection:
                    connection.execute(insert(BASKET), {"customer": 7})
            finally:
                os._exit(verdict)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == int(not answers)
        assert guard.may_exist(7), "what the child wrote"
        assert not guard.may_exist(ABSENT)


# --- asynchronous engines -----------------------------------------------------------------------


@pytest.mark.parametrize("option", [{"outbox": "20ms"}, {"refresh": "50ms"}])
def test_an_asynchronous_guard_is_kept_up_as_well(basket: Database, option: dict[str, Any]) -> None:
    asynchronous = basket.url.replace("sqlite://", "sqlite+aiosqlite://")

    async def visit() -> None:
        engine = create_async_engine(asynchronous)
        with DatabaseGuard(engine, BASKET.c.customer, 1e-6, **option) as guard:
            assert await guard.abuild()
            basket.insert([7])
            await asyncio.to_thread(until, lambda: guard.may_exist(7))
            await asyncio.to_thread(until, lambda: not guard.may_exist(ABSENT))
        await engine.dispose()

    asyncio.run(visit())


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"refresh": "soon"}, "refresh"),
        ({"refresh": 0}, "refresh"),
        ({"outbox": "-1s"}, "outbox"),
        ({"notify": True}, "notify"),
        ({"outbox": True, "notify": True}, "notify"),
        ({"outbox": True, "removals": "commit"}, "removals"),
        ({"shared": "guard", "removals": "commit"}, "removals"),
    ],
)
def test_options_that_make_no_sense_are_refused_and_leave_nothing_behind(
    sqlite_basket: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any], field: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError) as caught:
        DatabaseGuard(sqlite_basket.engine, BASKET.c.customer, **options)
    assert caught.value.name == field
    assert not (tmp_path / "guard").exists()


def test_the_directory_of_another_column_or_rate_is_refused(
    guarded: Make, basket: Database, tmp_path: Path
) -> None:
    guarded(shared=tmp_path)
    for column, rate, field in (
        (BASKET.c.id, 1e-6, "columns"),
        (BASKET.c.customer, 0.1, "error_rate"),
    ):
        with pytest.raises(IncompatibleError) as caught:
            DatabaseGuard(basket.engine, column, rate, shared=tmp_path)
        assert caught.value.field == field


def test_who_shares_keys_follows_others_in_the_same_way(guarded: Make, tmp_path: Path) -> None:
    one = guarded(shared=tmp_path, outbox=NEVER)
    with pytest.raises(IncompatibleError) as caught:
        guarded(shared=tmp_path)
    assert caught.value.field == "follows"
    one.close()
    assert not guarded(shared=tmp_path).may_exist(ABSENT), "nobody is there to be misled"


def test_only_a_guard_with_a_change_table_can_catch_up(guarded: Make) -> None:
    guard = guarded()
    for verb in (guard.catch_up, guard.uninstall):
        with pytest.raises(ParameterError, match="outbox"):
            verb()
