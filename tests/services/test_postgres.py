"""The server that the tests start is a real one, and is gone afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from tests.services.postgres import Postgres, why_not

pytestmark = pytest.mark.postgres


@pytest.fixture
def own() -> Iterator[Postgres]:
    """Not the one of all tests: a restart would end their connections."""
    if reason := why_not():
        pytest.skip(reason)
    with Postgres.running() as server:
        yield server


def test_each_database_is_new_and_survives_a_restart(own: Postgres) -> None:
    first, second = create_engine(own.new_database()), create_engine(own.new_database())
    with first.begin() as connection:
        connection.execute(text("CREATE TABLE here (x int)"))
    with second.connect() as connection:
        assert connection.scalar(text("SELECT to_regclass('here')")) is None
    first.dispose()
    second.dispose()
    own.stop()
    try:
        with pytest.raises(OperationalError):
            first.connect()
    finally:
        own.start()
    with first.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM here")) == 0
    first.dispose()
