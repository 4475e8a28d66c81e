"""Sealing: open segments become files, and a new journal begins without them.

    1. the segment and its exact items are written and brought to the disk
    2. the journal of the next generation is written with all that stays open, and brought there
    3. one transaction registers the segments and names that journal
    4. memory follows; the journal before is removed

Before 3 the old journal has everything and the new files are orphans. After 3 the new files have
everything and the old journal is a leftover. There is no moment at which an event is in both or in
neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from bloomtide._core import HistoryBuffer
from bloomtide.durable.log import Log
from bloomtide.errors import BloomtideError, StorageError
from bloomtide.history.entry import Entry, checksum
from bloomtide.history.state import State


def due_segments(state: State, now: int) -> list[int]:
    """Open segments that no event is expected for any more.

    Time is that of the latest event but never after the clock: an event that claims to be from the
    future does not seal the present.
    """
    if state.settings.window is None:
        return [open_.index for open_ in state.buffer.segments() if open_.complete]
    newest = state.buffer.newest
    if newest is None:
        return []
    closed = min(newest, now) - state.settings.lateness
    return [open_.index for open_ in state.buffer.segments() if open_.end <= closed]


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
    with state.lock:
        changes = state.buffer.take_journal()
        if state.keep is None:
            journal.append(changes)
        else:
            state.keep()
        there = {it.number for it in state.forest.entries.values() if it.level == 0}
        generation = state.catalogue.generation + 1
        entries: list[Entry] = []
        following: Log | None = None
        try:
            for index in chosen:
                entries.append(write_sealed(state, state.buffer, index))
            following, begun = state.begin_journal(without=chosen)
            state.register(
                add=entries, generation=generation, journal=begun, mark=state.mark,
                positions=state.positions,
            )  # fmt: skip
        except BloomtideError:
            if following is not None:
                following.close()
            if journal.failed is None:  # else nobody knows which of both journals counts
                _undo(state, entries)
            raise
        state.late += sum(entry.events for entry in entries if entry.number in there)
        state.positions = {}
        for index in chosen:
            state.buffer.drop(index)
        state.journal = following
        journal.close()
    state.disk.unlink(journal.path)


def write_sealed(state: State, buffer: HistoryBuffer, index: int) -> Entry:
    """Writes one open segment as files of this store, and says how to register it."""
    settings = state.settings
    sealed = buffer.seal(
        index,
        error_rate=settings.error_rate,
        gate_error=settings.gate_error,
    )
    return Entry(
        id=state.catalogue.allocate(),
        level=0,
        number=index,
        begin=sealed.begin,
        end=sealed.end,
        first=sealed.begin if sealed.first is None else sealed.first,
        last=sealed.begin if sealed.last is None else sealed.last,
        rows=sealed.rows,
        events=sealed.events,
        file=state.write_file("segment", sealed.segment),
        items=state.write_file("items", sealed.items),
        items_checksum=checksum(sealed.items),
        bytes=len(sealed.segment),
        checksum=checksum(sealed.front),
        predicted_error=sealed.predicted_error,
        parameters=sealed.parameters,
        state="sealed",
        parent=None,
        created=state.now(),
    )


def _undo(state: State, entries: list[Entry]) -> None:
    """Removes what an attempt has written: there may be no room to leave it."""
    for entry in entries:
        state.remove_files([entry.file, *([entry.items] if entry.items else [])])
    with suppress(StorageError):
        state.disk.unlink(state.journal_path(1))
