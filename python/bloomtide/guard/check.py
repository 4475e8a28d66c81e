"""The decorator of a guard: a function that queries is not called for keys that are not there.

It must make no difference but time. So a function is called if its session has something to send
first that no filter can know, or if its key is NULL; and what it returns is compared with what it
would have been spared: that is how `mode="shadow"` finds out that the guard would change an answer.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterable
from itertools import chain
from typing import Any, Protocol

from sqlalchemy.orm import Session, scoped_session

from bloomtide.errors import require

_UNKNOWN = object()


class Asked(Protocol):
    """What is needed of a guard."""

    def may_exist(self, key: Any) -> bool: ...
    def pass_on(self) -> None: ...
    def note(self, key: Any, found: bool) -> None: ...


def async_classes(*names: str) -> tuple[type, ...]:
    """Classes of `sqlalchemy.ext.asyncio` for `isinstance`; none while nobody has imported it.

    SQLAlchemy 2.1 cannot import it without greenlet, which only async engines need.
    """
    module = sys.modules.get("sqlalchemy.ext.asyncio")
    return tuple(getattr(module, name) for name in names) if module else ()


def has_unsent(session: Any) -> bool:
    """What a session has not sent yet no filter can know; its query will send it first."""
    return bool(getattr(session, "new", None) or getattr(session, "dirty", None))


def _is_session(value: Any) -> bool:
    kinds = (Session, scoped_session, *async_classes("AsyncSession", "async_scoped_session"))
    return isinstance(value, kinds)


def _each(argument: Any) -> Iterable[Any]:
    """One argument, or those in `*args` or `**kwargs`."""
    if isinstance(argument, dict):
        return argument.values()
    return argument if isinstance(argument, tuple) else (argument,)


def checked(guard: Asked, names: tuple[str, ...], absent: Any, function: Any) -> Any:
    """The function, called only if it may find something; the arguments `names` hold the key."""
    signature = inspect.signature(function)
    unknown = [name for name in names if name not in signature.parameters]
    require("names", unknown, f"arguments of `{function.__name__}`", not unknown)
    streams = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    require(
        "absent", absent, "what can be iterated instead of a generator",
        not streams or absent is not None, hint="give `absent=list`",
    )  # fmt: skip

    def nothing() -> Any:
        return absent() if callable(absent) else absent

    def ask(arguments: tuple[Any, ...], words: dict[str, Any]) -> tuple[Any, bool]:
        """The key, and whether the function has to be called."""
        bound = signature.bind(*arguments, **words)
        bound.apply_defaults()
        values = tuple(bound.arguments[name] for name in names)
        sessions = filter(_is_session, chain.from_iterable(map(_each, bound.arguments.values())))
        if None in values or any(map(has_unsent, sessions)):
            guard.pass_on()
            return _UNKNOWN, True
        key = values if len(values) > 1 else values[0]
        return key, guard.may_exist(key)

    def noted(key: Any, result: Any) -> Any:
        comes_later = inspect.isgenerator(result) or inspect.isasyncgen(result)
        if key is not _UNKNOWN and not comes_later and not inspect.isawaitable(result):
            if absent is None:
                guard.note(key, result is not None)
            elif type(result) is type(spared := nothing()):
                guard.note(key, bool(result != spared))
        return result

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def asked_later(*arguments: Any, **words: Any) -> Any:
            key, must = ask(arguments, words)
            return noted(key, await function(*arguments, **words)) if must else nothing()

        return asked_later

    @functools.wraps(function)
    def asked(*arguments: Any, **words: Any) -> Any:
        key, must = ask(arguments, words)
        return noted(key, function(*arguments, **words)) if must else nothing()

    return asked
