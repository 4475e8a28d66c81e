"""A guard and writers that do not use its engine: what each option promises, and keeps."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, create_engine, insert, inspect, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from bloomtide import DatabaseGuard
from bloomtide.errors import IncompatibleError, ParameterError, StorageError
from bloomtide.guard.outbox.table import Outbox
from bloomtide.guard.stats import State
from tests.guard.databases import BASKET, METADATA, Database
from tests.guard.guards import ABSENT, NEVER, Make
from tests.services.postgres import Postgres
from tests.waiting import until

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
    with basket.engine.begin() as connection:
        Outbox([BASKET.c.customer], basket.engine.dialect).uninstall(connection)
    basket.insert([7])
    until(lambda: guard.may_exist(7) and not guard.may_exist(ABSENT))
    basket.insert([8])
    until(lambda: guard.may_exist(8) and not guard.may_exist(ABSENT))


@pytest.mark.parametrize("closed", [False, True])
def test_what_is_uninstalled_stays_away_until_somebody_builds(
    basket: Database, guarded: Make, closed: bool
) -> None:
    guard = guarded(outbox="20ms")
    if closed:
        guard.close()
    guard.uninstall()
    assert [name for name in inspect(basket.engine).get_table_names() if "bloom" in name] == []
    assert guard.may_exist(ABSENT)
    basket.insert([7])  # whose trigger would fail
    if not closed:
        assert guard._upkeep is not None
        changes = guard._upkeep._threads[-1]
        runs = changes.runs
        until(lambda: changes.runs > runs + 2)
        guard._upkeep.look()
        with pytest.raises(StorageError, match="removed"):  # a thread's that began before
            guard._upkeep._queries.run(guard._build_again)
        assert inspect(basket.engine).get_table_names() == ["basket"]
        assert guard.state is State.DEGRADED
        assert guard.build()
        assert guard.may_exist(7)
        assert not guard.may_exist(ABSENT)
        basket.insert([8])
        until(lambda: guard.may_exist(8))
        assert not guard.may_exist(ABSENT)


def test_tables_and_columns_whose_names_join_alike_have_change_tables_of_their_own() -> None:
    pairs = [("a_b", "c"), ("a", "b_c"), ("a_b_c", "d"), ("a", "b", "c"), ("a", "b")]
    made = [
        Table(table, MetaData(), *(Column(name, Integer) for name in names))
        for table, *names in pairs
    ]
    names = {Outbox(list(table.columns), sqlite.dialect()).name for table in made}
    assert len(names) == len(pairs)
    assert "bloomtide_a_b" in names


def test_a_reader_that_sees_the_end_of_a_build_late_does_not_build_again(guarded: Make) -> None:
    guard = guarded(outbox=NEVER)

    class Late:
        """Has looked for the position just before the build wrote it."""

        looks = 0

        def __init__(self, place: Any) -> None:
            self.place = place

        def __getattr__(self, name: str) -> Any:
            self.looks += name == "position"
            return None if (name, self.looks) == ("position", 1) else getattr(self.place, name)

    others: Any = guard._upkeep
    late = others._place = Late(others._place)
    others._read_changes()
    others._place = late.place
    assert late.looks == 2
    assert guard.stats().rebuilds == 1


def test_a_guard_that_cannot_read_passes_everything_and_recovers(
    basket: Database, guarded: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = guarded(outbox="20ms")
    until(lambda: not guard.may_exist(ABSENT))
    tried: list[bool] = []

    def away(*arguments: object) -> None:
        tried.append(True)
        raise OperationalError("SELECT", {}, ConnectionError("away"))

    with monkeypatch.context() as patch:
        patch.setattr("bloomtide.guard.background.BackgroundQueries.run", away)
        # A reading that had begun before has ended: it may have looked before the key came.
        until(lambda: tried and guard.may_exist(ABSENT))
        assert guard.stats().state is State.DEGRADED
        assert "followed" in guard.stats().reason
        basket.insert([7])
    until(lambda: not guard.may_exist(ABSENT))
    assert guard.state is State.READY
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
        patch.setattr("bloomtide.guard.background.BackgroundQueries.run", hang)
        until(lambda: guard.may_exist(ABSENT))
        released.append(True)
    until(lambda: not guard.may_exist(ABSENT))


def test_changes_are_pruned_when_everybody_has_had_the_time_to_read_them(
    basket: Database, guarded: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bloomtide.guard.outbox.table._KEEP", 0.1)
    guarded(outbox="20ms")
    basket.insert(range(50))

    def changes() -> int:
        with basket.engine.connect() as connection:
            count = connection.execute(text("SELECT count(*) FROM bloomtide_basket_customer"))
            return int(count.scalar_one())

    until(lambda: changes() == 0)


def test_changes_that_cannot_be_deleted_are_read_all_the_same(
    basket: Database, guarded: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[bool] = []

    def no_rights(*arguments: object) -> None:
        tried.append(True)
        raise OperationalError("DELETE", {}, PermissionError("no rights"))

    monkeypatch.setattr("bloomtide.guard.outbox.table._KEEP", 0.0)
    monkeypatch.setattr("bloomtide.guard.outbox.table.Outbox.prune", no_rights)
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


def test_the_first_build_is_up_to_the_caller(basket: Database, guarded: Make) -> None:
    """A second one beside it would keep an event loop waiting."""
    guard = guarded(refresh="20ms", build=False)
    refresh = guard._upkeep and guard._upkeep._threads[0]
    assert refresh
    until(lambda: refresh.runs > 2)
    assert guard.stats().rebuilds == 0
    assert guard.build()
    until(lambda: guard.stats().rebuilds > 2)


def test_a_guard_that_cannot_be_refreshed_passes_everything_and_recovers(
    basket: Database, guarded: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = guarded(refresh="50ms")

    def away(*arguments: object) -> None:
        raise OperationalError("SELECT", {}, ConnectionError("away"))

    with monkeypatch.context() as patch:
        patch.setattr("bloomtide.guard.background.BackgroundQueries.run", away)
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


def test_a_file_of_the_same_name_elsewhere_is_another_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process has its own working directory."""
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        engine = create_engine("sqlite:///shop.db")
        METADATA.create_all(engine)
        if name == "here":
            first = DatabaseGuard(engine, BASKET.c.customer, shared=tmp_path / "guard")
            assert first.build()
            continue
        with pytest.raises(IncompatibleError) as caught:
            DatabaseGuard(engine, BASKET.c.customer, shared=tmp_path / "guard")
        assert caught.value.field == "database"
    with first:
        same = create_engine(f"sqlite:///{tmp_path}/there/../here/shop.db")
        DatabaseGuard(same, BASKET.c.customer, shared=tmp_path / "guard").close()
    first.engine.dispose()


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:x?mode=memory&uri=true"]
)
def test_a_database_in_memory_is_not_shared(tmp_path: Path, url: str) -> None:
    engine = create_engine(url, poolclass=NullPool)
    with pytest.raises(ParameterError) as caught:
        DatabaseGuard(engine, BASKET.c.customer, shared=tmp_path / "guard")
    assert caught.value.name == "shared"


def test_who_shares_keys_makes_them_in_the_same_way(guarded: Make, tmp_path: Path) -> None:
    guarded(shared=tmp_path)
    with pytest.raises(IncompatibleError) as caught:
        guarded(shared=tmp_path, normal=str)
    assert caught.value.field == "normal"


def test_the_same_name_on_another_server_or_in_another_schema_is_another_table(
    postgres_basket: Database, tmp_path: Path
) -> None:
    url = postgres_basket.engine.url
    with DatabaseGuard(postgres_basket.engine, BASKET.c.customer, shared=tmp_path) as guard:
        assert guard.build()
        for query in ({"host": "/another/socket"}, {"options": "-csearch_path=other"}):
            elsewhere = create_engine(url.update_query_dict(query))
            with pytest.raises(IncompatibleError) as caught:
                DatabaseGuard(elsewhere, BASKET.c.customer, shared=tmp_path)
            assert caught.value.field == "database"


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
