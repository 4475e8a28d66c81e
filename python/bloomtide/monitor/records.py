"""What a monitor answers with."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from bloomtide.trend import Trend


@dataclass(frozen=True, slots=True, kw_only=True)
class StructureStats:
    """One structure of a monitor."""

    name: str
    """What it is for: `"seen"`, `"counts"`, `"heat"`, `"hot"`, `"slow"` or `"history"`."""
    kind: str
    items: float
    """Distinct keys, estimated; of a history the pairs of key and row that are not sealed yet."""
    capacity: int | None
    """Distinct keys it is made for; of a hot list its places."""
    fill: float | None
    predicted_error: float | None
    """Chance that an absent key is called present now, or that a count is wrong."""
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStats:
    """What became of one log or stream since the process began to read it."""

    name: str
    lines: int
    """Lines, or entries of a stream, that were read; empty lines and remarks too."""
    counted: int
    """Those that became events."""
    skipped: int
    """Those that were not understood."""
    without: int
    """Those that lack the field that is counted by."""
    field: str
    """That field."""
    bad: tuple[str, ...]
    """The first of those that were not understood: where, why, and how they start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorStats:
    """What a monitor is like now."""

    events: int
    """All occurrences ever."""
    new: int
    """Events whose key was certainly not there before."""
    late: int
    """Events that came after a later one."""
    ahead: int
    """Events later than the clock by more than a day: their times are wrong, and they count as of
    the clock."""
    aside: int
    """Events far after all others that are set aside until their times are believed."""
    per_second: float
    """Events a second, over the last ten."""
    since: float
    """When the monitor was made."""
    time: float | None
    """The latest event."""
    now: float
    """The stream's own time: the latest event, and what has passed since it came."""
    structures: tuple[StructureStats, ...]
    guards: dict[str, Any]
    """The state of each guard that was registered."""
    bytes: int
    """Memory of all structures."""
    journal_bytes: int
    """Of the journal behind the last snapshot; 0 in memory."""
    failure: str | None
    """Why nothing more is taken; None while all is well."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """Events of each of the last seconds, by arrival."""

    start: int
    """The first second, in Unix time; the last one is still going on."""
    events: tuple[int, ...]
    new: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class HotKey:
    """A hot key, how fast it comes, and whether it comes up or cools."""

    key: str | bytes | int
    count: float
    """Decayed occurrences: the true number is at most this,"""
    lower: float
    """and at least this."""
    share: float
    per_minute: float
    trend: Trend

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)
