"""The shop over HTTP, on SQLite and PostgreSQL: no page shows a basket that is not so."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="Starlette is not installed")

from sqlalchemy import create_engine, func, select

from tests.services.postgres import Postgres
from tests.shop.running import CUSTOMERS, FULL, Shop, ask, look, open_shop
from webshop.client import Visits
from webshop.load import Side, table
from webshop.tables import BasketLine


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def new_database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], str]:
    if request.param == "sqlite":
        return lambda: f"sqlite+aiosqlite:///{tmp_path_factory.mktemp('shop') / 'shop.db'}"
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database


@pytest.fixture(scope="module")
def shop(new_database: Callable[[], str]) -> Iterator[Shop]:
    with open_shop(new_database()) as shop:
        yield shop


@pytest.fixture
def visitor(shop: Shop) -> Iterator[http.client.HTTPConnection]:
    with shop.visitor() as visitor:
        yield visitor


def test_ninety_percent_of_the_basket_queries_are_avoided_and_no_basket_is_missed(
    new_database: Callable[[], str],
) -> None:
    database = new_database()
    with open_shop(database) as shop, shop.visitor() as visitor:
        guarded = [look(visitor, customer) for customer in range(1, CUSTOMERS + 1)]
        told = shop.told()
    assert told["asked"] + told["avoided"] == CUSTOMERS
    assert told["avoided"] == sum(not seen.asked for seen in guarded)
    assert told["avoided"] >= 0.9 * CUSTOMERS
    assert sum(seen.items > 0 for seen in guarded) == FULL * CUSTOMERS
    truth = what_is_in_the_baskets(database)
    assert [seen.items for seen in guarded] == [truth.get(i, 0) for i in range(1, CUSTOMERS + 1)]


def what_is_in_the_baskets(database: str) -> dict[int, int]:
    engine = create_engine(database.replace("+aiosqlite", ""))
    total = func.sum(BasketLine.quantity)
    with engine.connect() as connection:
        rows = connection.execute(
            select(BasketLine.customer_id, total).group_by(BasketLine.customer_id)
        )
        found = {customer: int(items) for customer, items in rows}
    engine.dispose()
    return found


def test_without_the_guard_every_page_asks(tmp_path: Path) -> None:
    database = f"sqlite+aiosqlite:///{tmp_path / 'shop.db'}"
    with open_shop(database, "--guard=off") as shop, shop.visitor() as visitor:
        assert all(look(visitor, customer).asked for customer in range(1, 20))
        told = shop.told()
    assert (told["asked"], told["avoided"], told["guard"]) == (19, 0, None)


def test_customers_who_fill_their_baskets_at_once_see_what_they_bought(shop: Shop) -> None:
    """While others come and go, and while the guard is rebuilt again and again."""

    def buy(first: int) -> list[int]:
        wrong = []
        with shop.visitor() as visitor:
            for customer in range(first + 1, first + 16):
                before = look(visitor, customer).items
                for bought in (1, 2):
                    ask(visitor, "/basket/3", customer, "POST")
                    if look(visitor, customer).items != before + bought:
                        wrong.append(customer)
        return wrong

    def rebuild(times: int) -> list[int]:
        with shop.visitor() as visitor:
            for _ in range(times):
                ask(visitor, "/guard/rebuild", method="POST")
        return []

    with ThreadPoolExecutor(9) as pool:
        wrong = [pool.submit(buy, 100 * i) for i in range(8)]
        built = pool.submit(rebuild, 10)
        assert [each.result() for each in wrong] == [[]] * 8
        built.result()
    told = shop.told()
    assert told["guard"]["state"] == "ready"
    assert told["guard"]["rebuilds"] > 10


def test_an_emptied_basket_costs_a_query_until_the_guard_is_rebuilt(
    shop: Shop, visitor: http.client.HTTPConnection
) -> None:
    customer = next(i for i in range(970, CUSTOMERS) if not look(visitor, i).asked)
    ask(visitor, "/basket/5", customer, "POST")
    assert look(visitor, customer).items == 1
    ask(visitor, "/basket/5/remove", customer, "POST")
    before = shop.told()["guard"]["false_true"]
    assert (look(visitor, customer).items, look(visitor, customer).asked) == (0, True)
    assert shop.told()["guard"]["false_true"] == before + 2
    ask(visitor, "/guard/rebuild", method="POST")
    assert not look(visitor, customer).asked


def test_the_switch_turns_the_guard_off_and_on_and_nothing_is_forgotten(
    shop: Shop, visitor: http.client.HTTPConnection
) -> None:
    customer = next(i for i in range(940, 970) if not look(visitor, i).asked)
    ask(visitor, "/guard/off", method="POST")
    assert look(visitor, customer).asked
    ask(visitor, "/basket/5", customer, "POST")
    ask(visitor, "/guard/on", method="POST")
    assert look(visitor, customer).items == 1
    assert shop.told()["guarded"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/tea/99", 404),
        ("POST", "/basket/99", 404),
        ("GET", "/become/queen", 404),
        ("POST", "/guard/explode", 404),
        ("GET", "/nowhere", 404),
        ("GET", "/basket/3/remove", 405),
        ("GET", "/become/full", 303),
        ("GET", "/basket", 200),
        ("GET", "/style.css", 200),
    ],
)
def test_pages_that_are_not_there_are_refused(
    visitor: http.client.HTTPConnection, method: str, path: str, status: int
) -> None:
    visitor.request(method, path, headers={"Cookie": "customer=nobody"})
    assert visitor.getresponse().status == status


def test_prometheus_is_told_what_the_guard_did(
    shop: Shop, visitor: http.client.HTTPConnection
) -> None:
    pytest.importorskip("prometheus_client")
    lines = ask(visitor, "/metrics").decode().splitlines()
    told = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    avoided = float(told['bloomtide_guard_avoided_total{guard="baskets"}'])
    assert avoided == shop.told()["guard"]["avoided"]


def test_a_new_visitor_becomes_a_customer(visitor: http.client.HTTPConnection) -> None:
    visitor.request("GET", "/")
    cookie = visitor.getresponse().getheader("Set-Cookie", "")
    assert cookie.startswith("customer=")
    assert 1 <= int(cookie.partition("=")[2].partition(";")[0]) <= CUSTOMERS


def test_the_table_of_a_load_shows_both_sides() -> None:
    slow = Side(Visits(2.0, [0.001 * i for i in range(1, 101)]), asked=100)
    quick = Side(Visits(1.0, [0.001] * 200), asked=10, avoided=190, transactions=12)
    lines = {
        line[:32].strip(): line[32:].split()
        for line in table({"off": slow, "on": quick}).splitlines()
    }
    assert lines["pages a second"] == ["50", "200"]
    assert lines["p50, ms"] == ["51.00", "1.00"]
    assert lines["p99, ms"] == ["100.00", "1.00"]
    assert lines["basket queries avoided"] == ["0.0%", "95.0%"]
    assert lines["transactions of the database"] == ["-", "12"]
