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
    sealed = [
        SegmentReport(
            id=entry.id,
            level=entry.level,
            begin=entry.begin / MICRO,
            end=entry.end / MICRO,
            first=entry.first / MICRO,
            last=entry.last / MICRO,
            rows=entry.rows,
            events=entry.events,
            bytes=entry.bytes,
            predicted_error=entry.predicted_error,
            parent=entry.parent,
            state=entry.state,
            file=entry.file,
            checksum=entry.checksum,
            parameters=dict(entry.parameters),
        )
        for entry in entries
    ]
    return sealed + [_open_report(state, segment) for segment in state.buffer.segments()]


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
        events=sum(part.events for part in parts),
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


def _open_report(state: State, segment: Any) -> SegmentReport:
    return SegmentReport(
        id=None,
        level=0,
        begin=segment.begin / MICRO,
        end=segment.end / MICRO,
        first=segment.first / MICRO,
        last=segment.last / MICRO,
        rows=state.settings.rows,
        events=segment.events,
        bytes=0,
        predicted_error=0.0,
        parent=None,
        state="open",
        file=None,
        checksum=None,
        parameters={},
    )
