"""The application: the table of paths, the page, and the live stream that runs beside them.

Run it with uvicorn in the server's own event loop, without its access log: that would write keys,
which stand in the query. Call `app.state.live.stop()` before the server is told to stop, or else it
waits for listeners that never leave.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from bloomtide.errors import BloomtideError
from bloomtide.server.http import failures
from bloomtide.server.http.access import Access
from bloomtide.server.http.live import Live
from bloomtide.server.http.parts import Family, Feeding, Keyspace, Limits, Monitor, Parts, Settings
from bloomtide.server.http.routes import PATHS, Endpoint, with_params

PAGE = Path(__file__).parent / "page"
_TYPES = {
    ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml",
}  # fmt: skip


def create_app(
    *,
    monitor: Monitor | None = None,
    keyspace: Keyspace | None = None,
    settings: Settings,
    limits: Limits | None = None,
    ready: Callable[[], str | None] | None = None,
    metrics: Sequence[Callable[[], Iterable[Family]]] = (),
    feeding: Feeding | None = None,
) -> Starlette:
    """The app around a monitor, a keyspace, or both.

    `ready` says why the server is not ready, or None; `metrics` are more figures for `/metrics`;
    `feeding` tells of the logs and streams that the monitor is fed from.
    """
    parts = Parts(
        monitor=monitor, keyspace=keyspace, token=settings.http_token or None,
        limits=limits or Limits(), ready=ready, metrics=tuple(metrics), feeding=feeding,
    )  # fmt: skip
    live = Live(parts)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        running = asyncio.create_task(live.run())
        try:
            yield
        finally:
            live.stop()
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    routes = [Route(path.path, with_params(path), methods=[path.method]) for path in PATHS]
    files = page_files()
    routes += [Route(path, _file(file), methods=["GET"]) for path, file in files.items()]
    kinds = {path.path: path.kind for path in PATHS} | dict.fromkeys(files, "page")
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Access, parts=parts, kinds=kinds)],
        exception_handlers={
            BloomtideError: failures.on_bloomtide_error,
            HTTPException: failures.on_http_exception,
            Exception: failures.on_surprise,
        },
        lifespan=lifespan,
    )
    app.state.parts = parts
    app.state.live = live
    return app


def page_files() -> dict[str, Path]:
    """The files of the page, by their paths."""
    found = {f"/{file.name}": file for file in sorted(PAGE.iterdir()) if file.suffix in _TYPES}
    return {"/": found.pop("/index.html"), **found}


def _file(file: Path) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return FileResponse(file, media_type=_TYPES[file.suffix])

    return endpoint
