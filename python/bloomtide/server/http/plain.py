"""Answers as JSON: records become objects, and nothing that JSON does not know goes out.

A key goes out as it came in, text or number. JSON has no bytes: a key that is not UTF-8 is shown
with replacement characters, and given exactly in `key_base64`. Browsers read numbers as doubles, so
one of 2^53 or more is given as text, too, in `key_int`. An infinite number is null.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from bloomtide.server.http.parts import Key


def to_json(value: Any) -> bytes:
    """Compact UTF-8."""
    # A key may hold anything that JSON text can, lone surrogates too: escaped, it is always valid.
    return json.dumps(plain(value), allow_nan=False, separators=(",", ":")).encode()


def plain(value: Any) -> Any:
    """The same in dictionaries, lists, text and finite numbers."""
    match value:
        case None | bool() | int() | str():
            return value
        case Enum():
            return plain(value.value)
        case float():
            return value if math.isfinite(value) else None
        case bytes():
            return value.decode(errors="replace")
        case np.ndarray():
            return plain(seconds_of(value).tolist())
        case np.generic():
            return plain(value.item())
        case Mapping():
            return _plain_fields({str(name): value for name, value in value.items()})
        case list() | tuple():
            return [plain(each) for each in value]
    if is_dataclass(value):
        return _plain_fields({each.name: getattr(value, each.name) for each in fields(value)})
    return str(value)


def key_fields(key: Key) -> dict[str, Any]:
    """The fields that tell a key exactly."""
    if isinstance(key, bytes):
        text = key.decode(errors="replace")
        if text.encode() != key:
            return {"key": text, "key_base64": base64.b64encode(key).decode()}
        return {"key": text}
    if isinstance(key, int) and abs(key) >= 2**53:
        return {"key": key, "key_int": str(key)}
    return {"key": key}


def seconds_of(column: Any) -> Any:
    """Instants as seconds since 1970; other columns as they are."""
    if column.dtype.kind == "M":
        return column.astype("datetime64[us]").astype(np.int64) / 1e6
    return column


def _plain_fields(record: Mapping[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for name, value in record.items():
        told.update(key_fields(value) if name == "key" else {name: plain(value)})
    return told
