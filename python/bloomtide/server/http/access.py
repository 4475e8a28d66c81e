"""Around every request: who may ask, what browsers may do with the answer, and how many asked.

Without a token the server is open to this machine, but not to a page that some other site makes a
browser load: such a page may point a name of its own at 127.0.0.1 and then ask as if it were ours.
So without a token only addresses and `localhost` are accepted as the host. With a token the page
itself is public, since it is the same for all; what it shows is not.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bloomtide.errors import RequestError
from bloomtide.server.http import failures
from bloomtide.server.http.parts import Parts

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Access:
    """Middleware: token, host, headers, tally."""

    def __init__(self, app: ASGIApp, *, parts: Parts, kinds: Mapping[str, str]) -> None:
        """`kinds` says of each path what it is: `"page"`, `"api"`, `"health"` or `"metrics"`."""
        self.app = app
        self._parts = parts
        self._kinds = kinds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"]
        kind = self._kinds.get(path, "api")
        sending = self._mark(send, path if path in self._kinds else "other", kind)
        refusal = self._refusal(Headers(scope=scope), kind)
        if refusal is None:
            await self.app(scope, receive, sending)
        else:
            await failures.reply(refusal)(scope, receive, sending)

    def _mark(self, send: Send, path: str, kind: str) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-cache" if kind == "page" else "no-store")
                label = (path, str(message["status"]))
                self._parts.requests[label] = self._parts.requests.get(label, 0) + 1
            await send(message)

        return sending

    def _refusal(self, headers: Headers, kind: str) -> RequestError | None:
        token = self._parts.token
        if not token:
            host = headers.get("host", "")
            if not _is_address(host):
                return RequestError(
                    f"without a token this server answers to addresses only, not to: {host[:80]}",
                    hint="use http://127.0.0.1, or set http-token",
                    status=421, field="Host",
                )  # fmt: skip
            return None
        if kind == "page" or kind in self._parts.limits.public:
            return None
        scheme, _, given = headers.get("authorization", "").partition(" ")
        # Compared in the same time wherever they differ, and however long they are.
        same = hmac.compare_digest(_digest(given.strip().encode("latin-1")), _digest(_bytes(token)))
        if scheme.lower() == "bearer" and same:
            return None
        return RequestError(
            "this needs the server's token", hint="send `Authorization: Bearer <token>`",
            status=401, field="Authorization",
        )  # fmt: skip


def _digest(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()


def _bytes(token: str) -> bytes:
    # The environment may hold bytes that are no UTF-8; a header is bytes that came as Latin-1.
    return token.encode(errors="surrogateescape")


def _is_address(host: str) -> bool:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if name.lower() == "localhost":
        return True
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
