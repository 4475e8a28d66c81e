"""The web application: routes, and what is set up before the first page.

The cookie names the customer and is believed: this is an example, with no login.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from bloomtide import DatabaseGuard
from webshop import pages
from webshop.baskets import Baskets
from webshop.seed import seed
from webshop.tables import BasketLine
from webshop.teas import TEAS, Tea

COOKIE = "customer"


@dataclass(frozen=True, slots=True)
class Settings:
    """How the shop is run."""

    database: str = "sqlite+aiosqlite:///shop.db"
    customers: int = 100_000
    full: float = 0.05
    """Share of customers who begin with something in their basket."""
    guard: bool = True
    error_rate: float = 0.01
    connections: int = 10


def create_app(settings: Settings) -> Starlette:
    """The shop. Customers are seeded when the database has none."""

    @asynccontextmanager
    async def open_shop(app: Starlette) -> AsyncIterator[None]:
        engine = create_async_engine(settings.database, pool_size=settings.connections)
        await seed(engine, settings.customers, settings.full)
        guard = None
        if settings.guard:
            # Every five minutes it forgets the baskets that were emptied meanwhile.
            guard = DatabaseGuard(
                engine, BasketLine.customer_id, error_rate=settings.error_rate, refresh="5m"
            )
        app.state.baskets = Baskets(engine, guard)
        app.state.customers = settings.customers
        # The shop is open meanwhile: until the guard is ready every page asks the database.
        building = asyncio.create_task(guard.abuild()) if guard else None
        try:
            yield
        finally:
            if guard and building:
                building.cancel()
                await asyncio.gather(building, return_exceptions=True)
                guard.close()
            await engine.dispose()

    return Starlette(
        routes=[
            Route("/", _catalogue),
            Route("/tea/{tea:int}", _article),
            Route("/basket", _basket),
            Route("/basket/{tea:int}", _put, methods=["POST"]),
            Route("/basket/{tea:int}/remove", _take, methods=["POST"]),
            Route("/become/{whom}", _become),
            Route("/guard", _guard),
            Route("/guard.json", _told),
            Route("/guard/{what}", _switch, methods=["POST"]),
            Route("/metrics", _metrics),
            Route("/style.css", _style),
        ],
        lifespan=open_shop,
    )


def _baskets(request: Request) -> Baskets:
    baskets: Baskets = request.app.state.baskets
    return baskets


def _customer(request: Request) -> int:
    """Who the cookie says; a new visitor is made someone."""
    cookie = request.cookies.get(COOKIE, "")
    if cookie.isascii() and cookie.isdigit() and len(cookie) < 10:
        return int(cookie)
    return random.randint(1, request.app.state.customers)


def _tea(request: Request) -> Tea:
    tea = TEAS.get(request.path_params["tea"])
    if not tea:
        raise HTTPException(404)
    return tea


async def _page(request: Request, title: str, body: str) -> Response:
    customer = _customer(request)
    badge = await _baskets(request).badge(customer)
    response = HTMLResponse(pages.page(title, customer, badge, body))
    if COOKIE not in request.cookies:
        response.set_cookie(COOKIE, str(customer))
    return response


async def _catalogue(request: Request) -> Response:
    return await _page(request, "Teas", pages.catalogue())


async def _article(request: Request) -> Response:
    tea = _tea(request)
    return await _page(request, tea.name, pages.article(tea))


async def _basket(request: Request) -> Response:
    lines = await _baskets(request).lines(_customer(request))
    return await _page(request, "Basket", pages.basket(lines))


async def _put(request: Request) -> Response:
    tea = _tea(request)
    await _baskets(request).put(_customer(request), tea.number)
    return RedirectResponse(f"/tea/{tea.number}", 303)


async def _take(request: Request) -> Response:
    await _baskets(request).take(_customer(request), _tea(request).number)
    return RedirectResponse("/basket", 303)


async def _become(request: Request) -> Response:
    whom = request.path_params["whom"]
    if whom not in ("full", "empty"):
        raise HTTPException(404)
    customer = await _baskets(request).someone(with_basket=whom == "full")
    response = RedirectResponse("/", 303)
    response.set_cookie(COOKIE, str(customer))
    return response


async def _guard(request: Request) -> Response:
    return await _page(request, "The guard", pages.LIVE)


async def _told(request: Request) -> Response:
    return JSONResponse(_baskets(request).told())


async def _switch(request: Request) -> Response:
    baskets, what = _baskets(request), request.path_params["what"]
    if not baskets.guard or what not in ("on", "off", "rebuild"):
        raise HTTPException(404)
    if what == "rebuild":
        await baskets.guard.abuild()
    else:
        baskets.guarded = what == "on"
    return JSONResponse(baskets.told())


async def _metrics(request: Request) -> Response:
    """For Prometheus, if its client is installed."""
    guard = _baskets(request).guard
    if not guard:
        raise HTTPException(404)
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

    from bloomtide.guard.metrics import GuardMetrics

    registry = CollectorRegistry()
    registry.register(GuardMetrics({"baskets": guard}))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


async def _style(request: Request) -> Response:
    return Response(pages.STYLE, media_type="text/css")
