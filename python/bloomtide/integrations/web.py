"""What the ASGI and the WSGI middleware share: the question, and where its key comes from."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol

from bloomtide.errors import KeyTypeError

FLAG = "bloomtide.may_exist"
"""Where the answer is found: in an ASGI scope or a WSGI environment."""


class Guard(Protocol):
    """A `DatabaseGuard`, a `ModelGuard`, or anything that answers as they do."""

    def may_exist(self, key: Any, /) -> bool:
        """False only if the key is certainly absent."""


def may_exist(guard: Guard, key: Hashable | None) -> bool:
    """What the guard says. A request without a key, or with one that cannot be, is let through."""
    if key is None:
        return True
    try:
        return guard.may_exist(key)
    except KeyTypeError:
        return True


def read_cookie(header: str, name: str, convert: Callable[[str], Hashable]) -> Hashable | None:
    """The key in a cookie; None if there is none, or not exactly one that `convert` takes.

    Visitors may send anything, and the application may read it in another way: of two cookies of
    one name it may take the other one. In doubt there is no key.
    """
    pairs = (pair.partition("=") for pair in header.split(";"))
    found = [value.strip() for field, _, value in pairs if field.strip() == name]
    if len(found) != 1 or '"' in found[0]:
        return None
    try:
        return convert(found[0])
    except ValueError:
        return None
