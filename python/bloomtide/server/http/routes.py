"""Every path, in one table: the app, OpenAPI and the tests are made from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from bloomtide.server.http import bulk, health, live, metrics, openapi, questions
from bloomtide.server.http.params import KEY, RANGE, Param, read_params
from bloomtide.server.http.parts import Parts
from bloomtide.server.http.plain import to_json
from bloomtide.server.http.rows import ARROW, NDJSON

Endpoint = Callable[[Request], Awaitable[Response]]
Question = Callable[[Parts, Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A path that programs use."""

    path: str
    endpoint: Endpoint
    about: str
    """A sentence without its full stop."""
    kind: str = "api"
    method: str = "GET"
    params: tuple[Param, ...] = ()
    answer: str = "Anything"
    """The name of its schema in `schemas.py`, or the media type of an answer that is no JSON."""
    takes: tuple[str, ...] = ()
    """Media types of the body."""


def with_params(path: Path) -> Endpoint:
    """The path's endpoint, once the query holds what is declared and nothing else."""

    async def endpoint(request: Request) -> Response:
        request.state.given = read_params(path.params, request.query_params)
        return await path.endpoint(request)

    return endpoint


def ask(question: Question) -> Endpoint:
    """An endpoint that asks a question in a thread and tells the answer as JSON."""

    async def endpoint(request: Request) -> Response:
        parts: Parts = request.app.state.parts
        given = request.state.given
        told = await parts.ask(lambda: to_json(question(parts, given)))
        return Response(told, media_type="application/json")

    return endpoint


def _question(
    path: str, question: Question, about: str, answer: str, params: tuple[Param, ...] = ()
) -> Path:
    return Path(path=path, endpoint=ask(question), about=about, answer=answer, params=params)


async def _hot(request: Request) -> Response:
    """Like a question, but the trails are the live stream's."""
    shown: live.Live = request.app.state.live
    return await ask(lambda _, given: {"items": shown.hot(given["n"])})(request)


async def _openapi(request: Request) -> Response:
    return Response(to_json(openapi.document(PATHS)), media_type="application/json")


N = Param("n", "int", "How many at most.", 20, most=1000)
STEP = Param("step", "duration", "How long each step is; as the history's rows if left out.")
BODIES = (NDJSON, ARROW)

PATHS: tuple[Path, ...] = (
    _question("/api/stats", questions.stats, "What there is, in one answer", "Stats"),
    Path(path="/api/hot", endpoint=_hot, about="The hottest keys now", answer="Hot", params=(N,)),
    _question("/api/seen", questions.seen, "Did a key ever come? No is certain", "Seen", KEY),
    _question("/api/count", questions.count, "How often a key came, with bounds", "Count", KEY),
    _question("/api/heat", questions.heat, "A key's count, faded by the half-life", "Count", KEY),
    _question("/api/pulse", questions.pulse, "Events and new keys by second", "Pulse"),
    _question(
        "/api/structures", questions.structures, "Structures: fill, error, memory", "Structures",
        (Param("n", "int", "How many at most.", 100, most=10_000),),
    ),
    _question("/api/guards", questions.guards, "What guards spared their databases", "Guards"),
    _question("/api/sources", questions.sources, "What became of each log's lines", "Sources"),
    _question(
        "/api/history/count", questions.history_count, "How often a key came in a range",
        "RangeCount", (*KEY, *RANGE),
    ),
    _question(
        "/api/history/series", questions.history_series, "A key's counts step by step",
        "Series", (*KEY, *RANGE, STEP),
    ),
    _question(
        "/api/history/total", questions.history_total,
        "All events of a range, or of each step of it if a step is given",
        "Total", (*RANGE, Param("step", "duration", "How long each step is.")),
    ),
    _question(
        "/api/history/top", questions.history_top, "The most frequent keys of a range",
        "TopKeys", (*RANGE, N),
    ),
    Path(
        path="/api/events", method="POST", endpoint=bulk.add_events, takes=BODIES, answer="Added",
        about="Adds events; a batch goes in whole or not at all",
    ),
    Path(
        path="/api/query", method="POST", endpoint=bulk.query, takes=BODIES, answer=NDJSON,
        about="Asks about many keys; Arrow comes back to those who accept it", params=bulk.QUERY,
    ),
    Path(
        path="/api/live", endpoint=live.stream, answer="text/event-stream",
        about="A picture of everything each second, as server-sent events",
    ),
    Path(
        path="/metrics", kind="metrics", endpoint=metrics.metrics, answer="text/plain",
        about="Figures for Prometheus",
    ),
    Path(path="/livez", kind="health", endpoint=health.alive, answer="text/plain",
         about="Whether the process answers"),
    Path(path="/readyz", kind="health", endpoint=health.ready, answer="text/plain",
         about="Whether it is ready: 503 while it loads, or after its journal failed"),
    Path(path="/healthz", kind="health", endpoint=health.alive, answer="text/plain",
         about="As `/livez`"),
    Path(path="/openapi.json", endpoint=_openapi, about="This description"),
)  # fmt: skip
