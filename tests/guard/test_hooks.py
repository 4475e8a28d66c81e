"""What an engine tells its guards: the end of each transaction, and nothing that costs much."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, insert
from sqlalchemy.exc import IntegrityError

from bloomtide import DatabaseGuard
from bloomtide.guard import values
from bloomtide.guard.stats import State
from bloomtide.guard.writes.transaction import OpenTransaction
from tests.guard.shop import ABSENT, Basket

PACKAGE = Path(values.__file__).parents[1]
_PRIVATE = re.compile(r"(?<!\bself)(?<!\bcls)\._(?!_)[a-z]\w*|import _[a-z]")
# Django documents `Model._meta` and `Model._base_manager`.
_ALLOWED = re.compile(
    r"from bloomtide\._core import|guard\._\w+|model\._meta\b|model\._base_manager\b"
)


def add(engine: Engine, owner: int) -> None:
    with engine.begin() as connection:
        connection.execute(insert(Basket), {"customer_id": owner})


def open_keys(guard: DatabaseGuard) -> list[Any]:
    """The keys of transactions that have not ended, as far as the guard knows."""
    return [key for pending in guard._store.transactions for key in pending.keys]


def under_way(guard: DatabaseGuard) -> int:
    """How many commits a shared guard has under way in this process."""
    return len(guard._store._sections)


@pytest.mark.parametrize("part", ["guard", "integrations/django"])
def test_no_private_name_of_another_library_is_used(part: str) -> None:
    found = []
    for path in sorted((PACKAGE / part).rglob("*.py")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            code = _ALLOWED.sub("", line.partition("#")[0])
            found += [f"{path.name}:{number} {each}" for each in _PRIVATE.findall(code)]
    assert found == []


@pytest.mark.parametrize("end", ["commit", "rollback", "close"])
def test_the_keys_of_a_transaction_are_listed_until_its_connection_is_free(
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
        driver = connection.connection.dbapi_connection
        assert driver is not None
        driver.rollback()
        connection.execute(insert(Basket), {"customer_id": 101})
        assert open_keys(guard) == [101]


def test_keys_written_one_by_one_that_are_too_many_to_list_spoil_a_build_beside_them(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenTransaction, "most", 3)
    with DatabaseGuard(engine, Basket.owner, 1e-6, rebuild="manual") as guard:
        with engine.connect() as connection:
            for owner in range(5):
                connection.execute(insert(Basket), {"customer_id": owner})
            assert len(open_keys(guard)) <= 3
            assert not guard._store.rebuild(lambda: iter([[]]))
            connection.commit()
            assert guard._store.rebuild(lambda: iter([[]])), "the driver says that it has ended"
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
            write(connection, 102)
            assert open_keys(guard) == [102]
            connection.rollback()
        assert open_keys(guard) == []
        assert guard.filter_many([100, 101, ABSENT]) == [100, 101]
        assert guard.state is State.READY


def test_the_keys_of_a_connection_that_broke_stay_for_ever(engine: Engine) -> None:
    """Its commit may have been sent."""
    with DatabaseGuard(engine, Basket.owner, 1e-6) as guard:
        with engine.connect() as connection:
            connection.execute(insert(Basket), {"customer_id": 100})
            connection.invalidate()
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
