"""Sealing: open segments become files, and a new journal begins without them.

    1. one file of all these segments and one of their exact items are written and brought to the
       disk
    2. the journal of the next generation is written with all that stays open, and brought there
    3. one transaction registers the segments and names that journal
    4. memory follows; the journal before is removed

Before 3 the old journal has everything and the new files are orphans. After 3 the new files have
everything and the old journal is a leftover. There is no moment at which an event is in both or in
neither.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from bloomtide._core import HistoryBuffer
from bloomtide.durable.log import Log
from bloomtide.errors import BloomtideError, StorageError
from bloomtide.history.entry import Entry, checksum
from bloomtide.history.ladder import Level
from bloomtide.history.settings import Settings
from bloomtide.history.state import State
from bloomtide.records import SealedSegment

SMALL = 512
"""Pairs of key and row of late events that get a segment of their own."""
MOST_ROWS = 1 << 16
"""Rows of a segment at most."""


def due_segments(state: State, now: int, *, late: bool = True) -> list[int]:
    """Open segments that no event is expected for any more; those of late events if wanted.

    Time is that of the latest event but never after the clock: an event that claims to be from the
    future does not seal the present.
    """
    if state.settings.window is None:
        return [open_.index for open_ in state.buffer.segments() if open_.complete]
    newest = state.buffer.newest
    if newest is None:
        return []
    closed = min(newest, now) - state.settings.lateness
    due = [open_.index for open_ in state.buffer.segments() if open_.end <= closed]
    if late or not due:
        return due
    there = sealed_windows(state)
    return [index for index in due if index not in there]


def sealed_windows(state: State) -> set[int]:
    """The numbers of windows that have a segment of their own: what comes for them is late."""
    return {it.number for it in state.forest.entries.values() if it.level == 0}


def seal_segments(state: State, indexes: Iterable[int]) -> int:
    """Writes these open segments out; how many they were. If it fails all is as before."""
    chosen = list(indexes)
    if chosen:
        begin_journal(state, chosen)
    return len(chosen)


def begin_journal(state: State, chosen: list[int]) -> None:
    """Goes on in a new journal, behind these segments and with all others that are open.

    The same transaction says up to which mark of the caller the store holds everything, and how
    far its sources were read.
    """
    journal = state.journal
    if journal is None:
        return
    with state.lock, state.changing():
        journal.append(state.buffer.take_journal())
        if state.keep is not None:
            state.keep()
        there = sealed_windows(state)
        generation = state.catalogue.generation + 1
        entries: list[Entry] = []
        following: Log | None = None
        try:
            parts = seal_parts(state, state.buffer, chosen)
            entries = write_segments(state, parts, "sealed")
            following, begun = state.begin_journal(without=chosen)
            state.register(
                put=entries, generation=generation, journal=begun, mark=state.mark,
                positions=state.positions,
            )  # fmt: skip
        except BloomtideError:
            if following is not None:
                following.close()
            if journal.failed is None:  # else nobody knows which of both journals counts
                forget(state, entries)
                with suppress(StorageError):
                    state.disk.unlink(state.journal_path(1))
            raise
        opened = {it.index: it for it in state.buffer.segments()}
        state.late += sum(opened[index].events for index in chosen if index in there)
        state.positions = {}
        for index in chosen:
            state.buffer.drop(index)
        state.journal = following
        journal.close()
    state.disk.unlink(journal.path)


def seal_parts(
    state: State, buffer: HistoryBuffer, chosen: Iterable[int]
) -> list[tuple[int, SealedSegment]]:
    """Segments of these open ones, each with its number. Late events of few counts become one
    segment with those of windows near theirs: one for each window would be thousands."""
    settings = state.settings
    wanted = set(chosen)
    opened = [one for one in buffer.segments() if one.index in wanted]
    near: defaultdict[int, list[Any]] = defaultdict(list)
    widest = _widest(settings)
    if widest is not None:
        there = sealed_windows(state)
        for one in opened:
            if one.index in there and one.entries < SMALL:
                near[one.begin // widest.span].append(one)
    numbers: list[int] = []
    parts: list[tuple[list[int], int, float]] = []
    for group in near.values():
        if len(group) == 1:
            continue
        begin, last = group[0].begin, group[-1].end - 1
        level = next(it for it in settings.levels() if begin // it.span == last // it.span)
        indexes = [one.index for one in group]
        numbers.append(begin // level.span)
        parts.append((indexes, level.number, settings.error_of(level.number)))
        wanted -= set(indexes)
    alone = [one.index for one in opened if one.index in wanted]
    numbers += alone
    parts += [([index], 0, settings.error_of(0)) for index in alone]
    made = buffer.seal_many(parts, gate_error=settings.gate_error)
    return list(zip(numbers, made, strict=True))


def _widest(settings: Settings) -> Level | None:
    """The level in whose span windows may lie together: as many rows as a segment may have, not
    longer than the finest rows are kept, and with a level above."""
    levels = settings.levels()
    rows = MOST_ROWS * (settings.window or 0)
    most = rows if not levels or levels[0].keep is None else min(rows, levels[0].keep)
    fit = [level for level in levels[1:-1] if level.span <= most]
    return fit[-1] if fit else None


def write_segments(
    state: State, parts: Sequence[tuple[int, SealedSegment]], word: str, *, items: bool = True
) -> list[Entry]:
    """Writes these as one file, and their exact items as another one. How to register them."""
    if not parts:
        return []
    file, at = state.write_file("segment", [made.segment for _, made in parts])
    contents, items_at = None, [0] * len(parts)
    if items:
        contents, items_at = state.write_file("items", [made.items for _, made in parts])
    now = state.now()
    return [
        Entry(
            id=state.catalogue.allocate(),
            level=made.level,
            number=number,
            begin=made.begin,
            end=made.end,
            first=made.begin if made.first is None else made.first,
            last=made.begin if made.last is None else made.last,
            rows=made.rows,
            events=made.events,
            file=file,
            at=at[place],
            bytes=len(made.segment),
            checksum=checksum(made.front),
            items=contents,
            items_at=items_at[place],
            items_bytes=len(made.items),
            items_checksum=checksum(made.items) if items else None,
            predicted_error=made.predicted_error,
            parameters=made.parameters,
            state=word,
            parent=None,
            created=now,
        )
        for place, (number, made) in enumerate(parts)
    ]


def forget(state: State, entries: Iterable[Entry]) -> None:
    """Removes what an attempt has written: there may be no room to leave it."""
    state.remove_files({name for it in entries for name in (it.file, it.items) if name})
