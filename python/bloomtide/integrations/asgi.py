"""ASGI: ask the guard once for each request, before the application does.

    app = GuardMiddleware(app, guard, cookie("customer", int))

The application finds the answer in `scope["bloomtide.may_exist"]`: False means that there is
certainly nothing to ask the database for. With `absent` such requests do not reach it at all. Wrap
a single route with that, such as the fragment of a page that shows the basket:

    GuardMiddleware(badge, guard, cookie("customer", int), absent=empty_badge)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, MutableMapping
from typing import Any

from bloomtide.integrations.web import FLAG, Guard, may_exist, read_cookie

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
KeyOf = Callable[[Scope], Hashable | None]


def cookie(name: str, convert: Callable[[str], Hashable] = str) -> KeyOf:
    """The key is the value of a cookie."""

    def key(scope: Scope) -> Hashable | None:
        # HTTP/2 may send each cookie in a field of its own.
        fields = [
            value.decode("latin-1") for field, value in scope["headers"] if field == b"cookie"
        ]
        return read_cookie(";".join(fields), name, convert)

    return key


class GuardMiddleware:
    """Puts the guard's answer beside every HTTP request."""

    def __init__(self, app: App, guard: Guard, key: KeyOf, *, absent: App | None = None) -> None:
        self.app = app
        self.guard = guard
        self.key = key
        self.absent = absent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self.app
        if scope["type"] == "http":
            scope[FLAG] = may_exist(self.guard, self.key(scope))
            if self.absent and not scope[FLAG]:
                app = self.absent
        await app(scope, receive, send)
