"""A guard is for one table, whatever a pooled session has made its name mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import Engine, create_engine, delete, event, insert

from bloomtide import DatabaseGuard
from bloomtide.guard.stats import State
from bloomtide.guard.table import separate
from tests.guard.databases import BASKET, Database

COPY = "(id INTEGER PRIMARY KEY, customer INTEGER)"
PATHS = ["SET search_path TO other", "SELECT set_config('search_path', 'other', false)"]


@pytest.fixture
def one(request: pytest.FixtureRequest) -> Iterator[Callable[[Database], Engine]]:
    """Makes an engine with a single connection, which all requests use in turn."""
    made: list[Engine] = []

    def make(database: Database) -> Engine:
        made.append(create_engine(database.url, pool_size=1, max_overflow=0))
        return made[-1]

    yield make
    for engine in made:
        engine.dispose()


Make = Callable[[Database], Engine]


def request(engine: Engine, *statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("path", PATHS)
def test_a_build_reads_the_table_of_a_fresh_connection_whatever_path_a_request_has_left(
    postgres_basket: Database, one: Make, path: str, first: bool
) -> None:
    postgres_basket.run("CREATE SCHEMA other", f"CREATE TABLE other.basket {COPY}")
    try:
        postgres_basket.insert([7])
        engine = one(postgres_basket)
        with DatabaseGuard(engine, BASKET.c.customer, 1e-6, rebuild="manual") as guard:
            if not first:
                assert guard.build()
            request(engine, path)
            assert guard.build()
            assert guard.may_exist(7)
            assert not guard.may_exist(8)
            assert guard.state is State.READY
    finally:
        postgres_basket.run("DROP SCHEMA other CASCADE")


def test_a_temporary_table_of_the_same_name_does_not_hide_the_table(
    basket: Database, one: Make
) -> None:
    basket.insert([7])
    engine = one(basket)
    with DatabaseGuard(
        engine, BASKET.c.customer, 1e-6, removals="commit", rebuild="manual"
    ) as guard:
        request(engine, f"CREATE TEMPORARY TABLE basket {COPY}")
        assert guard.build()
        assert guard.may_exist(7)
        assert not guard.may_exist(8)
        with engine.begin() as connection:
            connection.execute(delete(BASKET).where(BASKET.c.customer == 7))
        assert guard.may_exist(7), "the row that was not deleted"


def test_a_path_that_every_connection_gets_is_the_one_that_counts(
    postgres_basket: Database, one: Make
) -> None:
    postgres_basket.run("CREATE SCHEMA other", f"CREATE TABLE other.basket {COPY}")
    try:
        postgres_basket.run("INSERT INTO other.basket VALUES (1, 7)")
        engine = one(postgres_basket)

        @event.listens_for(engine, "connect")
        def set_path(driver: object, record: object) -> None:
            driver.execute(PATHS[0])  # type: ignore[attr-defined]
            driver.commit()  # type: ignore[attr-defined]

        with DatabaseGuard(engine, BASKET.c.customer, 1e-6, rebuild="manual") as guard:
            assert guard.build()
            assert guard.may_exist(7)
    finally:
        postgres_basket.run("DROP SCHEMA other CASCADE")


def test_a_table_that_moves_on_the_path_is_found_by_the_next_build(
    postgres_basket: Database, one: Make
) -> None:
    postgres_basket.run("CREATE SCHEMA other")
    try:
        postgres_basket.insert([7])
        engine = one(postgres_basket)

        @event.listens_for(engine, "connect")
        def set_path(driver: object, record: object) -> None:
            driver.execute("SET search_path TO other, public")  # type: ignore[attr-defined]
            driver.commit()  # type: ignore[attr-defined]

        with DatabaseGuard(engine, BASKET.c.customer, 1e-6, rebuild="manual") as guard:
            assert guard.build()
            postgres_basket.run("ALTER TABLE basket SET SCHEMA other")
            assert guard.build()
            assert guard.may_exist(7)
            assert not guard.may_exist(8)
    finally:
        postgres_basket.run("DROP SCHEMA other CASCADE")


def test_work_in_threads_reads_the_schema_that_the_engine_translates_to(
    postgres_basket: Database,
) -> None:
    engine = postgres_basket.engine.execution_options(schema_translate_map={None: "other"})
    own = separate(engine)
    with own.connect() as connection:
        assert connection.schema_for_object(BASKET) == "other"
    own.pool.dispose()


SESSIONS = {
    "a role that rows are hidden from": "SET ROLE tenant",
    "another path": PATHS[1],
}


@pytest.mark.parametrize("session", SESSIONS.values(), ids=SESSIONS)
def test_a_row_that_the_session_that_deleted_cannot_see_keeps_its_key(
    postgres_basket: Database, one: Make, session: str
) -> None:
    postgres_basket.run(
        "DO $$ BEGIN CREATE ROLE tenant; EXCEPTION WHEN duplicate_object THEN END $$",
        "CREATE SCHEMA other", f"CREATE TABLE other.basket {COPY}",
        "GRANT ALL ON basket TO tenant", "ALTER TABLE basket ENABLE ROW LEVEL SECURITY",
    )  # fmt: skip
    try:
        engine = one(postgres_basket)
        with DatabaseGuard(
            engine, BASKET.c.customer, 1e-6, removals="commit", rebuild="manual"
        ) as guard:
            assert guard.build()
            with engine.begin() as connection:
                connection.execute(insert(BASKET), [{"customer": 7}, {"customer": 8}])
            with engine.begin() as connection:
                connection.execute(delete(BASKET).where(BASKET.c.customer == 8))
            assert not guard.may_exist(8), "an ordinary session"
            with engine.connect() as connection:
                driver = connection.connection.driver_connection
                assert driver is not None
                driver.execute(session)  # the guard would doubt some of these, if it saw them
                gone = connection.execute(delete(BASKET).where(BASKET.c.customer == 7))
                assert gone.rowcount == 0
                connection.commit()
            assert guard.may_exist(7)
            assert guard.stats().removed == 1
    finally:
        postgres_basket.run("DROP SCHEMA other CASCADE", "DROP OWNED BY tenant")
