"""Errors as replies: the class decides the status, the error says the rest.

    {"error": {"type", "code", "message", "field", "hint", "details"}}

`field` names the parameter or the part of the request; `details` are the other facts of the error.
"""

from __future__ import annotations

import http
import logging
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from bloomtide import errors
from bloomtide.errors import BloomtideError, RequestError
from bloomtide.server.http.plain import to_json

STATUS: dict[type[BloomtideError], int] = {
    BloomtideError: 500,
    errors.ParameterError: 400,
    errors.KeyTypeError: 400,
    errors.NullKeyError: 400,
    errors.AbsentKeyError: 409,
    errors.CapacityError: 507,
    errors.IncompatibleError: 409,
    errors.UnsupportedError: 409,
    errors.ClosedError: 503,
    errors.ReadOnlyError: 409,
    errors.MissingExtraError: 503,
    errors.StorageError: 503,
}
"""A class that is not here has the status of its base."""

_log = logging.getLogger(__name__)


def status_of(error: BloomtideError) -> int:
    """The HTTP status that fits."""
    if isinstance(error, RequestError):
        return error.status
    return next(STATUS[cls] for cls in type(error).__mro__ if cls in STATUS)


def describe(error: BloomtideError, **more: Any) -> dict[str, Any]:
    """The body of the reply; `more` goes to the details."""
    facts = {**error.fields, **more}
    field = next((facts.pop(name) for name in ("field", "name") if name in facts), None)
    facts.pop("status", None)
    told = {
        "type": type(error).__name__,
        "code": error.code,
        "message": error.message,
        "field": field,
        "hint": error.hint or None,
        "details": {name: fact for name, fact in facts.items() if fact is not None},
    }
    return {"error": told}


def reply(error: BloomtideError, **more: Any) -> Response:
    """The error as a response."""
    status = status_of(error)
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    body = to_json(describe(error, **more))
    return Response(body, status, headers, media_type="application/json")


async def on_bloomtide_error(request: Request, error: Exception) -> Response:
    """For errors that a handler raised."""
    assert isinstance(error, BloomtideError)
    return reply(error)


async def on_http_exception(request: Request, error: Exception) -> Response:
    """For paths and methods that do not exist."""
    assert isinstance(error, HTTPException)
    what = "method" if error.status_code == 405 else "path"
    told = RequestError(
        http.HTTPStatus(error.status_code).phrase, hint="see /openapi.json",
        status=error.status_code, field=what,
    )  # fmt: skip
    response = reply(told)
    response.headers.update(error.headers or {})
    return response


async def on_surprise(request: Request, error: Exception) -> Response:
    """For a mistake of ours; a client learns that there was one, and no more."""
    # The path is one of ours, the query may hold keys.
    return reply(mistake(f"{request.method} {request.url.path}", error))


def mistake(what: str, error: Exception) -> RequestError:
    """Writes a mistake of ours to the log; what a client is told of it."""
    _log.error("%s failed", what, exc_info=error)
    return RequestError(
        "the server made a mistake", hint="its log says more", status=500, field="server"
    )
