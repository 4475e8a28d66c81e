"""One row of the table of segments, without the database that holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from bloomtide._core import HistorySegment
from bloomtide.errors import ChecksumError


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One registered segment."""

    id: int
    level: int
    number: int
    """Which segment of its level: its begin in spans, or its place in the order of arrivals."""
    begin: int
    """Where its span begins, in microseconds since 1970, as all times here."""
    end: int
    """Where its span ends: the first instant that is not in it."""
    first: int
    """Its earliest event."""
    last: int
    """Its latest event."""
    rows: int
    events: int
    file: str
    """It may hold other segments, too."""
    at: int
    """Where it begins in its file."""
    bytes: int
    items: str | None
    """The file of its exact contents, until its parent has taken them."""
    items_at: int
    items_bytes: int
    items_checksum: str | None
    checksum: str
    """Of the front of its file, which has the checksums of the rest."""
    predicted_error: float
    parameters: Mapping[str, Any]
    state: str
    """What made it: `"sealed"`, `"rolled up"` or `"copied"`."""
    parent: int | None
    """The segment that contains its counts; None for a root."""
    created: int


def adopted(entry: Entry, parent: int) -> Entry:
    """The entry after its parent has taken its items."""
    return replace(entry, parent=parent, items=None, items_checksum=None)


def checksum(data: bytes) -> str:
    """Which bytes these are. Not a CRC, which tells damage and not one sound file from another."""
    return blake2b(data, digest_size=16).hexdigest()


def require_same(entry: Entry, segment: HistorySegment) -> None:
    """Refuses a sound segment that is not the one that was registered, such as another file in its
    place. Its body is checked block by block when it is read."""
    if (got := checksum(segment.front)) != entry.checksum:
        raise _another(entry.file, entry.checksum, got)


def require_same_items(entry: Entry, data: bytes) -> None:
    """The same for the exact contents, all of which are read."""
    if (got := checksum(data)) != entry.items_checksum:
        raise _another(str(entry.items), entry.items_checksum, got)


def _another(file: str, expected: str | None, got: str) -> ChecksumError:
    return ChecksumError(
        "this is not the file that was registered", hint="restore it from a backup",
        path=file, offset=None, expected=expected, got=got,
    )  # fmt: skip
