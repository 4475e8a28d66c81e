"""The frozen records that a `History` answers with; nothing here computes.

Counts say which side they err on. Times are seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from bloomtide.records import HotItem

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Record:
    """What all of them can do."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeCount(Record):
    """How often a key was seen in a range of time, from a `History`."""

    upper: int
    """The true count is certainly at most this, apart from `missing`."""
    inner: int
    """The same for the rows that lie wholly in the range: nothing outside of it is in here."""
    estimate: float
    """`inner`, and of each row that the range cuts its share by time."""
    rows: int
    """Rows that were read."""
    partial: int
    """Rows of those that the range cuts, and that have no finer ones."""
    predicted_error: float
    """Chance at most that `upper`, of the rows that were read, is more than they had of the key: of
    all segments that may have it. 0 says that it is exact."""
    missing: tuple[tuple[float, float], ...] = ()
    """Times within the range that could not be read, or that retention has dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecayedCount(Record):
    """A key's events, each weighed by its age, from a `History`."""

    upper: float
    """The true sum is certainly at most this, apart from `missing`."""
    inner: float
    """The same counts as if every event were as old as the oldest of its row."""
    estimate: float
    """In the middle of both."""
    rows: int
    """Rows, or whole segments, that were weighed."""
    missing: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopKeys(Record):
    """The most frequent keys of a range of time, from a `History`."""

    items: tuple[HotItem, ...]
    """The largest count first."""
    unlisted: int
    """A key that is not among `items` was seen at most this often."""
    total: int
    """All events of the rows that were read."""
    missing: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentReport(Record):
    """One segment of a `History`. Times are seconds since 1970."""

    id: int | None = None
    """None while it is open."""
    level: int
    begin: float
    end: float
    first: float
    last: float
    """Its latest event."""
    rows: int
    events: int
    bytes: int = 0
    """Of its file; 0 while it is open."""
    predicted_error: float = 0.0
    parent: int | None = None
    """The segment that has its counts as well."""
    state: str = "open"
    """`"open"`, or what made it: `"sealed"`, `"rolled up"` or `"copied"`."""
    file: str | None = None
    checksum: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryStats(Record):
    """What a `History` is like now."""

    segments: int
    levels: tuple[int, ...]
    """Segments of each level."""
    events: int
    """All that is kept, each event once."""
    bytes: int
    """Of all segment files."""
    journal_bytes: int
    open_segments: int
    entries: int
    """Pairs of key and row in the open segments."""
    first: float | None
    """The earliest event."""
    last: float | None
    """The latest event."""
    predicted_error: float
    """Chance at most that a count over all of the time is not exact, of a key that all segments
    have: the errors of the segments that no other one contains, together."""
    late: int
    """Events since the store was opened that came after their segment was sealed."""
    ahead: int
    """Events since the store was opened that were later than the clock by more than a day: their
    times are wrong, and they count as of the clock."""
    aside: int
    """Events far after all others: in their own rows, but nothing is sealed or rolled up by their
    times until these are believed."""
    clock_jumps: int
    """How often the clock was behind the time it had told before."""
    damaged: tuple[str, ...]
    """Segments that could not be read so far, with the reason."""
    failure: str | None
    """Why sealing or compaction in the background went wrong, if it did last time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionReport(Record):
    """What `History.compact` did."""

    sealed: int
    """Open segments that were written out."""
    rolled_up: int
    """Segments that became rows of a wider one."""
    dropped: int
    """Segments that retention removed."""
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport(Record):
    """What `History.verify` found."""

    segments: int
    bytes: int
    problems: tuple[str, ...]
    """None if all is well; each names its file and the time it holds."""
    missing: tuple[tuple[float, float], ...]
    """Times that cannot be answered for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Counts of one key in steps of equal length, as `RangeCount` for each."""

    start: npt.NDArray[np.datetime64]
    """Where each step begins (UTC, microseconds); it ends where the next one begins."""
    upper: npt.NDArray[np.uint64]
    inner: npt.NDArray[np.uint64]
    estimate: npt.NDArray[np.float64]
    missing: tuple[tuple[float, float], ...]
    """Times that could not be read, in seconds since 1970."""

    def __len__(self) -> int:
        return len(self.start)
