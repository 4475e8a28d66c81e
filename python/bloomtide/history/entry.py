"""One row of the table of segments, without the database that holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


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
    items: str | None
    """The file of its exact contents, until its parent has taken them."""
    bytes: int
    checksum: str
    predicted_error: float
    parameters: Mapping[str, Any]
    state: str
    """What made it: `"sealed"`, `"rolled up"` or `"copied"`."""
    parent: int | None
    """The segment that contains its counts; None for a root."""
    created: int


def adopted(entry: Entry, parent: int) -> Entry:
    """The entry after its parent has taken its items."""
    return replace(entry, parent=parent, items=None)
