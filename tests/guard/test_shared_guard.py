"""Guards of several processes on one table: what one writes, all know before it is committed."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Executable, event, insert, select, text

from bloomtide import DatabaseGuard
from bloomtide.guard.stats import State
from tests.guard.databases import BASKET, Database
from tests.guard.guards import ABSENT, NEVER, Make
from tests.waiting import until


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
    monkeypatch.setattr("bloomtide.guard.upkeep._LOOK", 0.02)
    monkeypatch.setattr("bloomtide.guard.upkeep._REST", 0.0)
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


WRITES: dict[str, Executable] = {
    "a key that is known": insert(BASKET).values(customer=7),
    "a key that nobody saw": text("INSERT INTO basket (customer) VALUES (7)"),
}


@pytest.mark.parametrize("write", WRITES)
def test_who_closes_a_guard_beside_its_open_transaction_leaves_when_that_has_ended(
    basket: Database, guarded: Make, tmp_path: Path, write: str
) -> None:
    one, two = guarded(shared=tmp_path / "guard"), guarded(shared=tmp_path / "guard")
    with two.engine.connect() as connection:
        connection.execute(WRITES[write])
        two.close()
        assert two.may_exist(ABSENT)
        assert two.state is State.UNKNOWN
        assert one.build() == (write == "a key that is known")
        connection.commit()
        assert one.may_exist(7)
    until(lambda: two._store.detached)
    assert one.build()
    assert one.may_exist(7)
    assert not one.may_exist(ABSENT)


def test_the_last_one_that_closes_its_guard_leaves_its_open_keys_to_the_next_one(
    basket: Database, guarded: Make, tmp_path: Path
) -> None:
    one = guarded(shared=tmp_path / "guard")
    with one.engine.connect() as connection:
        connection.execute(WRITES["a key that is known"])
        one.close()
        two = guarded(shared=tmp_path / "guard")
        assert not two.may_exist(ABSENT)
        connection.commit()
    assert two.may_exist(7)
    until(lambda: one._store.detached)


def test_a_guard_that_is_closed_without_open_transactions_is_gone_at_once(
    basket: Database, guarded: Make, tmp_path: Path
) -> None:
    one = guarded(shared=tmp_path / "guard")
    with one.engine.begin() as connection:
        connection.execute(WRITES["a key that is known"])
    one.close()
    assert one._store.detached
    assert not list((tmp_path / "guard").glob("keys-*"))
