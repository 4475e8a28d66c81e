"""Parameters of a question: declared once, read from the query, described in OpenAPI.

What is not declared is refused: a misspelt `lats=1h` must not answer for all time.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from starlette.datastructures import QueryParams

from bloomtide._core import parse_duration, parse_instant
from bloomtide.errors import ParameterError
from bloomtide.server.http.parts import Key

_TEXT = {"type": "string"}
_SCHEMAS: dict[str, dict[str, Any]] = {
    "text": _TEXT,
    "int": {"type": "integer"},
    "base64": {"type": "string", "contentEncoding": "base64"},
    "instant": {"type": "string", "examples": ["1767225600", "2026-01-01T00:00:00Z"]},
    "duration": {"type": "string", "examples": ["90s", "15m", "1h", "7d"]},
}


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of the query."""

    name: str
    kind: str
    about: str
    default: Any = None
    most: int | None = None
    """Whole numbers run from 1 to this."""
    choices: tuple[str, ...] = ()

    def read(self, text: str) -> Any:
        """The value that a text stands for."""
        if self.choices and text not in self.choices:
            _refuse(self.name, text, f"one of {', '.join(self.choices)}")
        match self.kind:
            case "int":
                return self._whole(text)
            case "base64":
                return self._bytes(text)
            case "instant":
                return float(parse_instant(_number_or_text(text), self.name))
            case "duration":
                return parse_duration(_number_or_text(text), self.name)
        return text

    def schema(self) -> dict[str, Any]:
        """As OpenAPI says it."""
        told = dict(_SCHEMAS[self.kind])
        if self.most is not None:
            told |= {"minimum": 1, "maximum": self.most}
        if self.choices:
            told["enum"] = list(self.choices)
        if self.default is not None:
            told["default"] = self.default
        return {"name": self.name, "in": "query", "description": self.about, "schema": told}

    def _whole(self, text: str) -> int:
        low, high = (-(2**63), 2**64 - 1) if self.most is None else (1, self.most)
        digits = text.removeprefix("-")
        # Long digits are refused before they are read: reading them takes the square of their time.
        plain = digits.isascii() and digits.isdigit() and len(digits) < 21
        if not (plain and low <= int(text) <= high):
            _refuse(self.name, text[:40], f"a whole number from {low} to {high}")
        return int(text)

    def _bytes(self, text: str) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except ValueError:  # binascii.Error is one
            _refuse(self.name, text[:40], "base64")


KEY = (
    Param("key", "text", "The key, if it is text."),
    Param("key_int", "int", "The key, if it is a number."),
    Param("key_base64", "base64", "The key, if it is bytes that are not UTF-8."),
)
"""Exactly one of them is given."""

RANGE = (
    Param("start", "instant", "Where the range begins: Unix seconds, or ISO 8601 with a zone."),
    Param("end", "instant", "Where it ends; not part of it."),
    Param("last", "duration", "A range that ends now, instead of `start` and `end`."),
)


def read_params(declared: tuple[Param, ...], query: QueryParams) -> dict[str, Any]:
    """Every declared parameter with its value or its default."""
    known = {param.name: param for param in declared}
    for name in query:
        if name not in known:
            allowed = ", ".join(known) or "nothing"
            _refuse(name[:40], "a parameter that is not known", allowed)
        if len(query.getlist(name)) > 1:
            _refuse(name, "more than one", "given once")
    return {
        name: param.read(query[name]) if name in query else param.default
        for name, param in known.items()
    }


def key_of(given: Mapping[str, Any]) -> Key:
    """The key, however it was given."""
    keys: list[Key] = [given[param.name] for param in KEY if given[param.name] is not None]
    if len(keys) != 1:
        _refuse("key", f"{len(keys)} keys", "one of `key`, `key_int` and `key_base64`")
    return keys[0]


def range_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a `History` takes as the range."""
    return {param.name: given[param.name] for param in RANGE}


def _number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _refuse(name: str, got: str, allowed: str) -> NoReturn:
    raise ParameterError(
        f"`{name}` must be {allowed}, got: {got}", hint="see /openapi.json",
        name=name, got=got, allowed=allowed,
    )  # fmt: skip
