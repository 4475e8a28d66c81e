"""WSGI: ask the guard once for each request, before the application does.

    app = GuardMiddleware(app, guard, cookie("customer", int))

The application finds the answer in `environ["bloomtide.may_exist"]`: False means that there is
certainly nothing to ask the database for. With `absent` such requests do not reach it at all; see
`bloomtide.integrations.asgi`, which is the same for ASGI.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING

from bloomtide.integrations.web import FLAG, Guard, may_exist, read_cookie

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    KeyOf = Callable[[WSGIEnvironment], Hashable | None]


def cookie(name: str, convert: Callable[[str], Hashable] = str) -> KeyOf:
    """The key is the value of a cookie."""

    def key(environ: WSGIEnvironment) -> Hashable | None:
        return read_cookie(environ.get("HTTP_COOKIE", ""), name, convert)

    return key


class GuardMiddleware:
    """Puts the guard's answer beside every request."""

    def __init__(
        self,
        app: WSGIApplication,
        guard: Guard,
        key: KeyOf,
        *,
        absent: WSGIApplication | None = None,
    ) -> None:
        self.app = app
        self.guard = guard
        self.key = key
        self.absent = absent

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        environ[FLAG] = may_exist(self.guard, self.key(environ))
        app = self.absent if self.absent and not environ[FLAG] else self.app
        return app(environ, start_response)
