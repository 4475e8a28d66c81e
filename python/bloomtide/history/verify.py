"""Whether everything a store has written is there and sound: `verify`.

Reads every byte, the journal's too. A file that is damaged is named with the time it holds, and
whether that time can still be answered for by a wider segment.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from bloomtide.errors import BloomtideError
from bloomtide.history.entry import Entry
from bloomtide.history.ladder import MICRO
from bloomtide.history.opening import read_journal
from bloomtide.history.state import State

Progress = Callable[[int, int], None]
"""Told how many of how many segments are done."""


def find_problems(state: State, progress: Progress | None) -> tuple[list[str], int]:
    """What is wrong, and how many bytes were read."""
    with state.lock:
        entries = list(state.forest.entries.values())
        problems, read = _journal_problems(state)
        problems += state.catalogue.problems()
    for done, entry in enumerate(entries, start=1):
        problem, size = _problem(state.read_segment, entry)
        read += size
        with state.lock:
            now = state.forest.entries.get(entry.id)
            if now is not None:  # not dropped meanwhile
                state.forest.set_damaged(entry, problem)
                if problem is not None:
                    problems.append(f"{entry.file} ({_times(entry)}): {problem}")
                if now.items is not None:
                    # The segment answers without them, but is never rolled up.
                    problem, size = _problem(state.read_items, now)
                    read += size
                    if problem is not None:
                        problems.append(f"{now.items} ({_times(entry)}): {problem}")
        if progress is not None:
            progress(done, len(entries))
    return problems, read


def _problem(read: Callable[[Entry], bytes], entry: Entry) -> tuple[str | None, int]:
    """What is wrong with one file, and how many bytes were read."""
    try:
        return None, len(read(entry))
    except FileNotFoundError:
        return "the file is missing", 0
    except OSError as error:
        return f"cannot be read: {error}", 0
    except BloomtideError as error:
        return error.message, 0


def _journal_problems(state: State) -> tuple[list[str], int]:
    """What is wrong with the journal now, and how many bytes of it are sound."""
    rows = state.catalogue
    try:
        _, found, lost = read_journal(state.directory, rows, state.settings, state.secret)
    except BloomtideError as error:
        return [str(error.message)], 0
    length = 0 if found is None else found.end
    if state.journal is not None and lost is None and length < state.journal.size:
        lost = f"{state.journal.path} was changed or cut before byte {state.journal.size}"
    if state.journal is None and lost is not None and rows.is_behind():
        lost = None  # the writer has begun another since this reader looked
    return ([] if lost is None else [lost]), length


def _times(entry: Entry) -> str:
    return f"{_time(entry.begin)} to {_time(entry.end)}"


def _time(instant: int) -> str:
    try:
        return datetime.fromtimestamp(instant / MICRO, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return f"{instant / MICRO} s"
