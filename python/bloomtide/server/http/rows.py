"""Bodies as batches of rows: NDJSON by lines, Arrow streams by their own batches.

    {"key": "/a", "time": 1767225600.5, "count": 2}     a line; `time` and `count` may be left out

A batch is checked as a whole before anybody gets it. `time` is Unix seconds or ISO 8601 with a
zone; Arrow may also have timestamps.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, NoReturn

from bloomtide._core import parse_instant
from bloomtide.errors import BloomtideError, RequestError
from bloomtide.server.http import arrow_stream

NDJSON = "application/x-ndjson"
ARROW = arrow_stream.MEDIA_TYPE
BATCH = 20_000
"""Lines of a batch."""
LINE = 1 << 20
"""Bytes of a line at most."""
_COLUMNS = frozenset({"key", "time", "count"})
_FIELDS = _COLUMNS | {"key_base64"}


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows as columns; what no row has is None."""

    keys: Any
    counts: Any
    times: Any


def read_batches(body: IO[bytes], media_type: str) -> Iterator[Batch]:
    """The batches of a body, each checked."""
    if media_type == NDJSON:
        return _lines(body)
    if media_type == ARROW:
        return map(_columns, arrow_stream.read_batches(body, _COLUMNS))
    raise RequestError(
        f"the body has a type that is not known: {media_type[:80] or 'none'}",
        hint=f"send {NDJSON} or {ARROW}", status=415, field="Content-Type",
    )  # fmt: skip


def refuse(message: str, field: str, **facts: Any) -> NoReturn:
    """A body that is not what it should be."""
    hint = 'a line is like {"key": "/a", "time": 1767225600.5, "count": 2}'
    raise RequestError(message, hint=hint, status=400, field=field, **facts)


def _lines(body: IO[bytes]) -> Iterator[Batch]:
    keys: list[Any] = []
    counts: list[int | None] = []
    times: list[float | None] = []
    number = 0
    while line := body.readline(LINE + 1):
        number += 1
        if len(line) > LINE:
            refuse(f"line {number} has more than {LINE} bytes", "body", line=number)
        if not line.strip():
            continue
        row = _row(line, number)
        keys.append(_key(row, number))
        counts.append(_count(row, number))
        times.append(_time(row, number))
        if len(keys) == BATCH:
            yield _batch(keys, counts, times)
            keys, counts, times = [], [], []
    if keys:
        yield _batch(keys, counts, times)


def _batch(keys: list[Any], counts: list[int | None], times: list[float | None]) -> Batch:
    now = time.time()
    return Batch(
        keys,
        [count or 1 for count in counts] if any(counts) else None,
        None if times.count(None) == len(times) else [now if at is None else at for at in times],
    )


def _row(line: bytes, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line.decode())  # for bytes it would guess the encoding first
    except (ValueError, RecursionError):
        refuse(f"line {number} is not JSON", "body", line=number)
    if not isinstance(row, dict):
        refuse(f"line {number} is not an object", "body", line=number)
    if unknown := row.keys() - _FIELDS:
        refuse(f"line {number} has a field that is not known", min(unknown)[:40], line=number)
    return row


def _key(row: dict[str, Any], number: int) -> Any:
    if "key_base64" in row:
        try:
            return base64.b64decode(row["key_base64"], validate=True)
        except (binascii.Error, TypeError, ValueError):
            refuse(f"line {number} has a key that is not base64", "key_base64", line=number)
    key = row.get("key")
    whole = type(key) is int and -(2**63) <= key < 2**64
    if not (whole or (isinstance(key, str) and _is_unicode(key))):
        refuse(f"line {number} has no key that is text or a 64-bit number", "key", line=number)
    return key


def _is_unicode(key: str) -> bool:
    # JSON can escape half a character, which has no UTF-8 form.
    return key.isascii() or not any("\ud800" <= each <= "\udfff" for each in key)


def _count(row: dict[str, Any], number: int) -> int | None:
    count = row.get("count")
    if count is not None and not (type(count) is int and 1 <= count < 2**31):
        refuse(f"line {number} has a count that is not from 1 to 2^31", "count", line=number)
    return count


def _time(row: dict[str, Any], number: int) -> float | None:
    at = row.get("time")
    if at is None or (type(at) is float and 0 <= at <= 4e9):
        return at  # most times are like this
    try:
        return float(parse_instant(at, "time"))
    except BloomtideError as error:
        refuse(f"line {number}: {error.message}", "time", line=number)


def _columns(batch: Any) -> Batch:
    def column(name: str) -> Any:
        found = batch.column(name) if name in batch.schema.names else None
        if found is not None and found.null_count:
            refuse(f"`{name}` has nulls", name)
        return found

    keys, counts, times = column("key"), column("count"), column("time")
    if not arrow_stream.has_plain_keys(keys):
        refuse("`key` must be text, bytes or whole numbers", "key")
    if counts is not None and not arrow_stream.is_within(counts, 1, 2**31 - 1):
        refuse("`count` must be whole numbers from 1 to 2^31", "count")
    if times is not None:
        parse_instant(times, "time")
    return Batch(keys, counts, times)
