"""The badge of a basket, served by ASGI and by WSGI; who has no basket costs no query.

python examples/badges.py
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Column, Integer, MetaData, Table, create_engine, func, insert, select
from sqlalchemy.pool import StaticPool

from bloomtide import DatabaseGuard
from bloomtide.integrations import asgi, wsgi

engine = create_engine("sqlite://", poolclass=StaticPool)
lines = Table(
    "line", MetaData(), Column("id", Integer, primary_key=True), Column("customer", Integer)
)
lines.metadata.create_all(engine)

guard = DatabaseGuard(engine, lines.c.customer)
guard.build()
with engine.begin() as connection:
    connection.execute(insert(lines), [{"customer": 7}, {"customer": 7}])

queries = 0


def count_items(header: str) -> bytes:
    """Asks the database."""
    global queries
    queries += 1
    customer = int(header.removeprefix("customer="))
    with engine.connect() as connection:
        query = select(func.count()).where(lines.c.customer == customer)
        return str(connection.scalar(query)).encode()


# --- ASGI: two applications, one of them for empty baskets ---------------------------------------


async def badge(scope: Any, receive: Any, send: Any) -> None:
    await answer(send, count_items(dict(scope["headers"])[b"cookie"].decode()))


async def no_badge(scope: Any, receive: Any, send: Any) -> None:
    await answer(send, b"0")


async def answer(send: Any, body: bytes) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


asgi_app = asgi.GuardMiddleware(badge, guard, asgi.cookie("customer", int), absent=no_badge)

# --- WSGI: one application that looks at the guard's answer --------------------------------------


def page(environ: Any, start_response: Any) -> Iterable[bytes]:
    start_response("200 OK", [])
    return [count_items(environ["HTTP_COOKIE"]) if environ["bloomtide.may_exist"] else b"0"]


wsgi_app = wsgi.GuardMiddleware(page, guard, wsgi.cookie("customer", int))

# --- A server would do this ----------------------------------------------------------------------


async def get(cookie: str) -> str:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "headers": [(b"cookie", cookie.encode())]}
    await asgi_app(scope, no_badge, send)  # nobody reads the body
    return str(sent[-1]["body"].decode())


for customer in (7, 8, 9):
    cookie = f"customer={customer}"
    by_asgi = asyncio.run(get(cookie))
    by_wsgi = b"".join(wsgi_app({"HTTP_COOKIE": cookie}, lambda *_: None)).decode()
    sys.stdout.write(f"customer {customer}: {by_asgi} by ASGI, {by_wsgi} by WSGI\n")
sys.stdout.write(f"{queries} queries for 6 pages\n")
guard.close()
engine.dispose()
