"""An engine whose statements are transactions of their own: a build makes one for itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, insert, select
from sqlalchemy.ext.asyncio import create_async_engine

from bloomtide import DatabaseGuard
from tests.guard.databases import BASKET, Database
from tests.guard.guards import ABSENT, NEVER


def of_the_engine(url: str) -> Engine:
    return create_engine(url, isolation_level="AUTOCOMMIT", pool_size=1, max_overflow=0)


def of_an_option(url: str) -> Engine:
    return create_engine(url, pool_size=1).execution_options(isolation_level="AUTOCOMMIT")


@pytest.mark.parametrize("options", [{}, {"outbox": NEVER}, {"refresh": NEVER}])
@pytest.mark.parametrize("make", [of_the_engine, of_an_option])
def test_a_build_takes_a_transaction_and_gives_the_connection_back_as_it_was(
    basket: Database, make: Any, options: dict[str, Any]
) -> None:
    basket.insert([7])
    engine = make(basket.url)
    with DatabaseGuard(engine, BASKET.c.customer, 1e-6, **options) as guard:
        assert guard.build()
        assert not guard.may_exist(8)
        with engine.connect() as connection:
            connection.execute(insert(BASKET), {"customer": 8})
            with basket.engine.connect() as other:
                assert other.scalars(select(BASKET.c.customer)).all() == [7, 8]
        assert guard.may_exist(8)
        if "outbox" in options:
            basket.insert([9])
            guard.catch_up()
            assert guard.may_exist(9)
            guard.uninstall()
        assert guard.build()
        assert guard.may_exist_many([7, 8]).all()
        assert not guard.may_exist(ABSENT)
    engine.dispose()


def test_also_an_async_one(postgres_basket: Database) -> None:
    postgres_basket.insert([7])
    engine = create_async_engine(postgres_basket.url, isolation_level="AUTOCOMMIT")

    async def build() -> None:
        with DatabaseGuard(engine, BASKET.c.customer, 1e-6, rebuild="manual") as guard:
            assert await guard.abuild()
            assert guard.may_exist(7)
            assert not guard.may_exist(ABSENT)
        await engine.dispose()

    asyncio.run(build())
