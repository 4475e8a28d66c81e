"""Whether everything a store has written is there and sound: `verify`.

Reads every byte, the journal's too. A file that is damaged is named with the time it holds, and
whether that time can still be answered for by a wider segment.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from bloomtide._core import HistorySegment
from bloomtide.errors import BloomtideError
from bloomtide.history.entry import Entry
from bloomtide.history.journal import journal_path
from bloomtide.history.ladder import MICRO
from bloomtide.history.state import State, checksum

Progress = Callable[[int, int], None]
"""Told how many of how many segments are done."""


def find_problems(state: State, progress: Progress | None) -> tuple[list[str], int]:
    """What is wrong, and how many bytes were read."""
    with state.lock:
        entries = [node.entry for node in state.forest.nodes.values()]
        problems, read = _journal_problems(state)
    for done, entry in enumerate(entries, start=1):
        problem, size = _check(state, entry)
        read += size
        with state.lock:
            if entry.id in state.forest.nodes:  # not dropped meanwhile
                state.forest.set_damaged(entry, problem)
            if problem is not None and entry.id in state.forest.nodes:
                problems.append(f"{entry.file} ({_times(entry)}): {problem}")
            problems += _items_problems(state, entry)
        if entry.parent is not None and entry.parent not in state.forest.nodes:
            problems.append(f"{entry.file}: its parent {entry.parent} is not in the catalogue")
        if progress is not None:
            progress(done, len(entries))
    return problems, read


def _check(state: State, entry: Entry) -> tuple[str | None, int]:
    """What is wrong with one segment, and how many bytes were read."""
    try:
        data = state.place.read(entry.file)
    except FileNotFoundError:
        return "the file is missing", 0
    except OSError as error:
        return f"cannot be read: {error}", 0
    if len(data) != entry.bytes:
        return f"has {len(data)} of {entry.bytes} bytes", len(data)
    if checksum(data) != entry.checksum:
        return "its bytes were changed after they were written", len(data)
    try:
        segment = HistorySegment.from_bytes(data)
        segment.validate()
    except BloomtideError as error:
        return error.message, len(data)
    info = segment.info
    if (info.rows, info.events) != (entry.rows, entry.events):
        return "is not the segment that the catalogue describes", len(data)
    return None, len(data)


def _items_problems(state: State, entry: Entry) -> list[str]:
    """Of the exact contents: the segment answers without them, but is never rolled up."""
    node = state.forest.nodes.get(entry.id)
    if node is None or node.entry.items is None:
        return []
    try:
        state.place.read(node.entry.items)
    except OSError as error:
        return [f"{node.entry.items} ({_times(entry)}): cannot be read: {error}"]
    return []


def _journal_problems(state: State) -> tuple[list[str], int]:
    """What is wrong with the journal now, and how many bytes it has."""
    path = journal_path(state.directory, state.catalogue.generation)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        if state.journal is None and state.catalogue.read_revision() != state.catalogue.revision:
            return [], 0  # the writer has begun another since this reader looked
        return [f"{path} is missing: what was in the open segments is lost"], 0
    except OSError as error:
        return [f"{path}: cannot be read: {error}"], 0
    try:
        damaged = state.settings.buffer(state.secret).replay(data).damaged
    except BloomtideError as error:
        return [f"{path}: {error.message}"], len(data)
    return ([] if damaged is None else [f"{path} is damaged at byte {damaged}"]), len(data)


def _times(entry: Entry) -> str:
    return f"{_time(entry.begin)} to {_time(entry.end)}"


def _time(instant: int) -> str:
    try:
        return datetime.fromtimestamp(instant / MICRO, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return f"{instant / MICRO} s"
