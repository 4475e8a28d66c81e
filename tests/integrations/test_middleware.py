"""The ASGI and WSGI middleware: the guard's answer stands beside each request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest

from bloomtide.errors import KeyTypeError
from bloomtide.integrations import asgi, wsgi

HEADERS: list[tuple[str, bool]] = [
    ("customer=7", True),
    ("a=b; customer=7; c=d", True),
    ("customer=8", False),
    ("", True),
    ("a=b", True),
    ("customer=ann", True),
    ("customer=" + "9" * 30, True),
    ("customer=\x00;;; =", True),
    ("customer=8; customer=7", True),
    ('customer="8"', True),
    ("mycustomer=7; customer=8", False),
]
"""A cookie header, and whether the database must be asked: a key that cannot be read says so."""


class OnlySeven:
    """A guard that holds one key."""

    def may_exist(self, key: int, /) -> bool:
        if key > 2**64:
            raise KeyTypeError("too large", got="int", index=None, added=None)
        return key == 7


def ask_asgi(header: str, *, absent: bool) -> str:
    async def answer(name: str, scope: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        text = f"{name} {scope['bloomtide.may_exist']}"
        await send({"type": "http.response.body", "body": text.encode()})

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await answer("app", scope, send)

    async def empty(scope: Any, receive: Any, send: Any) -> None:
        await answer("empty", scope, send)

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nobody reads the body")

    whole = asgi.GuardMiddleware(
        app, OnlySeven(), asgi.cookie("customer", int), absent=empty if absent else None
    )
    pairs = [(b"cookie", each.encode("latin-1")) for each in header.split("; ") if each]
    headers = [(b"host", b"shop"), *pairs]
    asyncio.run(whole({"type": "http", "headers": headers}, receive, send))
    return bytes(sent[-1]["body"]).decode()


def ask_wsgi(header: str, *, absent: bool) -> str:
    def answer(name: str) -> Callable[..., Iterable[bytes]]:
        def app(environ: Any, start_response: Any) -> Iterable[bytes]:
            start_response("200 OK", [])
            return [f"{name} {environ['bloomtide.may_exist']}".encode()]

        return app

    environ: dict[str, Any] = {"HTTP_COOKIE": header} if header else {}
    setup_testing_defaults(environ)
    whole = wsgi.GuardMiddleware(
        answer("app"),
        OnlySeven(),
        wsgi.cookie("customer", int),
        absent=answer("empty") if absent else None,
    )
    return b"".join(whole(environ, lambda *_: None)).decode()  # type: ignore[arg-type]


@pytest.mark.parametrize("ask", [ask_asgi, ask_wsgi])
@pytest.mark.parametrize(("header", "expected"), HEADERS)
def test_the_answer_stands_beside_the_request(
    ask: Callable[..., str], header: str, expected: bool
) -> None:
    assert ask(header, absent=False) == f"app {expected}"


@pytest.mark.parametrize("ask", [ask_asgi, ask_wsgi])
@pytest.mark.parametrize(("header", "expected"), HEADERS)
def test_only_what_is_certainly_absent_is_answered_elsewhere(
    ask: Callable[..., str], header: str, expected: bool
) -> None:
    assert ask(header, absent=True) == ("app True" if expected else "empty False")


def test_what_is_no_http_request_passes_untouched() -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(dict(scope))

    async def nothing(*_: Any) -> Any:
        return None

    whole = asgi.GuardMiddleware(app, OnlySeven(), asgi.cookie("customer", int), absent=app)
    asyncio.run(whole({"type": "lifespan"}, nothing, nothing))
    assert seen == [{"type": "lifespan"}]
