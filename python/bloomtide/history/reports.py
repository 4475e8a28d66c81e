"""A store as records for people: its segments and its statistics. Times become seconds."""

from __future__ import annotations

from collections import Counter
from typing import Any

from bloomtide.history.ladder import MICRO
from bloomtide.history.records import HistoryStats, SegmentReport
from bloomtide.history.state import State


def segment_reports(state: State) -> list[SegmentReport]:
    """Every segment, by level and time; the open ones last."""
    entries = list(state.forest.entries.values())
    entries.sort(key=lambda entry: (entry.level, entry.begin, entry.id))
    same = (
        "id", "level", "rows", "bytes", "predicted_error", "parent", "state", "file", "checksum",
        "parameters",
    )  # fmt: skip
    sealed = [_report(entry, **{name: getattr(entry, name) for name in same}) for entry in entries]
    rows = state.settings.rows
    return sealed + [_report(each, level=0, rows=rows) for each in state.buffer.segments()]


def store_stats(state: State) -> HistoryStats:
    """What the store is like now."""
    entries = list(state.forest.entries.values())
    roots = state.forest.roots
    opened = [segment for segment in state.buffer.segments() if segment.events]
    counts = Counter(entry.level for entry in entries)
    parts: list[Any] = [*roots, *opened]
    return HistoryStats(
        segments=len(entries),
        levels=tuple(counts[level] for level in range(max(counts, default=-1) + 1)),
        events=state.events(),
        bytes=sum(entry.bytes for entry in entries),
        journal_bytes=state.journal.size if state.journal is not None else 0,
        open_segments=len(opened),
        entries=state.buffer.entries,
        first=min((part.first / MICRO for part in parts), default=None),
        last=max((part.last / MICRO for part in parts), default=None),
        predicted_error=min(sum(entry.predicted_error for entry in roots), 1.0),
        late=state.late,
        ahead=state.buffer.ahead,
        aside=state.buffer.aside,
        clock_jumps=state.clock_jumps,
        damaged=(*state.forest.damaged.values(), *([state.lost] if state.lost else [])),
        failure=state.failure or (state.journal.failed if state.journal is not None else None),
    )


def _report(part: Any, **more: Any) -> SegmentReport:
    """Of a sealed segment or of an open one."""
    times = {name: getattr(part, name) / MICRO for name in ("begin", "end", "first", "last")}
    return SegmentReport(**times, events=part.events, **more)
