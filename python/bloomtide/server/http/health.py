"""Is it alive, is it ready? For supervisors and load balancers, which look at the status only."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from bloomtide.server.http.parts import Parts


async def alive(request: Request) -> Response:
    """The process answers; nothing else is looked at."""
    return PlainTextResponse("ok\n")


async def ready(request: Request) -> Response:
    """503 while data is loaded, and after a journal failed."""
    parts: Parts = request.app.state.parts
    reason = parts.why_not_ready()
    return PlainTextResponse(f"{reason or 'ok'}\n", 503 if reason else 200)
