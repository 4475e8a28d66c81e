"""Many events in, many questions at once: bodies and answers in NDJSON or Arrow.

A body is received whole, beyond a megabyte into a temporary file, before anything is done with it:
one that is too large, cut short or too slow changes nothing. Then it goes in batch by batch, each
of them whole or not at all; at the first bad one the reply says how many events went in before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import IO, Any

import anyio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from bloomtide.errors import BloomtideError, RequestError
from bloomtide.server.http import arrow_stream, failures
from bloomtide.server.http.params import RANGE, Param, range_of
from bloomtide.server.http.parts import Key, Parts
from bloomtide.server.http.plain import key_fields, to_json
from bloomtide.server.http.rows import ARROW, NDJSON, Batch, read_batches

_IN_MEMORY = 1 << 20
_ANSWERS = 2000
"""Keys that one thread answers for before others get their turn."""
_WHAT = ("seen", "count", "heat", "range")
QUERY = (
    Param("what", "text", "What to ask of each key.", "count", choices=_WHAT),
    *RANGE,
)


async def add_events(request: Request) -> Response:
    """`POST /api/events`."""
    parts: Parts = request.app.state.parts
    monitor = parts.require_monitor()
    told = {"added": 0, "new": 0, "batches": 0}

    def add(batch: Batch) -> None:
        new = monitor.add_many(batch.keys, batch.counts, batch.times)
        told["added"] += len(batch.keys)
        told["new"] += new
        told["batches"] += 1

    async with _body(request, parts) as body:
        try:
            batches = read_batches(body, _media_type(request))
            while (batch := await parts.ask(lambda: next(batches, None))) is not None:
                await _finish(parts, add, batch)
        except BloomtideError as error:
            return failures.reply(error, **told)
    return Response(to_json(told), media_type="application/json")


async def _finish(parts: Parts, add: Callable[[Batch], None], batch: Batch) -> None:
    """Adds a batch, however long it takes: the reply must say what became of it."""
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(add, batch)


async def query(request: Request) -> Response:
    """`POST /api/query`: one answer for each key, in their order."""
    parts: Parts = request.app.state.parts
    answer = _answer(parts, request.state.given)
    async with _body(request, parts) as body:
        media_type = _media_type(request)
        keys = await parts.ask(lambda: _keys(read_batches(body, media_type)))
    if ARROW in request.headers.get("accept", ""):
        return Response(await parts.ask(lambda: _arrow(keys, answer)), media_type=ARROW)
    # The first answers come before the status: what is wrong with the question is told properly.
    rest = iter(keys)
    first = await parts.ask(lambda: _told(list(islice(rest, _ANSWERS)), answer))

    async def answers() -> AsyncIterator[bytes]:
        yield first
        while some := list(islice(rest, _ANSWERS)):
            yield await parts.ask(partial(_told, some, answer))

    return StreamingResponse(answers(), media_type=NDJSON)


def _answer(parts: Parts, given: dict[str, Any]) -> Callable[[Key], dict[str, Any]]:
    """The question, to be asked of a key."""
    monitor = parts.require_monitor()
    match given["what"]:
        case "seen":
            return lambda key: {"seen": monitor.seen(key)}
        case "count":
            return lambda key: asdict(monitor.count(key))
        case "heat":
            return lambda key: asdict(monitor.heat(key))
    history, span = parts.require_history(), range_of(given) | {"now": monitor.now()}
    return lambda key: asdict(history.count(key, **span))


def _keys(batches: Iterator[Batch]) -> list[Key]:
    keys: list[Key] = []
    for batch in batches:
        keys += batch.keys if isinstance(batch.keys, list) else batch.keys.to_pylist()
    return keys


def _told(keys: list[Key], answer: Callable[[Key], dict[str, Any]]) -> bytes:
    return b"".join(to_json({**key_fields(key), **answer(key)}) + b"\n" for key in keys)


def _arrow(keys: list[Key], answer: Callable[[Key], dict[str, Any]]) -> bytes:
    rows = [answer(key) for key in keys]
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    columns.pop("missing", None)
    return arrow_stream.write({"key": keys, **columns})


def _media_type(request: Request) -> str:
    if request.headers.get("content-encoding", "identity") != "identity":
        raise RequestError(
            "the body is compressed", hint="send it as it is", status=415, field="Content-Encoding"
        )
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


@asynccontextmanager
async def _body(request: Request, parts: Parts) -> AsyncIterator[IO[bytes]]:
    """The whole body, in memory or in a file."""
    limit = parts.limits.body
    too_large = RequestError(
        f"the body has more than {limit} bytes", hint="send it in several requests",
        status=413, field="body",
    )  # fmt: skip
    claimed = request.headers.get("content-length", "0")
    if claimed.isdigit() and (len(claimed) > 18 or int(claimed) > limit):
        raise too_large
    turn = object()
    with anyio.move_on_after(parts.limits.seconds) as waiting:
        await parts.bodies.acquire_on_behalf_of(turn)
    if waiting.cancelled_caught:
        raise RequestError(
            "too many bodies are on their way", hint="send it again later", status=503, field="body"
        )
    try:
        with SpooledTemporaryFile(max_size=_IN_MEMORY) as body:
            try:
                with anyio.fail_after(parts.limits.body_seconds):
                    await _receive(request, parts, body, too_large)
            except TimeoutError:
                raise RequestError(
                    "the body did not come in time", hint="nothing was changed; send it again",
                    status=408, field="body",
                ) from None  # fmt: skip
            except ClientDisconnect:
                raise RequestError(
                    "the body was cut short", hint="nothing was changed", status=400, field="body"
                ) from None
            body.seek(0)
            yield body
    finally:
        parts.bodies.release_on_behalf_of(turn)


async def _receive(
    request: Request, parts: Parts, body: IO[bytes], too_large: RequestError
) -> None:
    """Piece by piece, none of which may take long."""
    pieces = request.stream()
    size = 0
    while True:
        with anyio.fail_after(parts.limits.seconds):
            piece = await anext(pieces, None)
        if piece is None:
            return
        size += len(piece)
        if size > parts.limits.body:
            raise too_large
        await parts.ask(partial(body.write, piece))
