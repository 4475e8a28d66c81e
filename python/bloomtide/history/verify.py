"""Whether everything a store has written is there and sound: `verify`.

Reads every byte, the journal's too. A file that is damaged is named with the time it holds, and
whether that time can still be answered for by a wider segment.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from bloomtide.errors import BloomtideError
from bloomtide.history.entry import Entry
from bloomtide.history.journal import journal_path
from bloomtide.history.ladder import MICRO
from bloomtide.history.state import State

Progress = Callable[[int, int], None]
"""Told how many of how many segments are done."""


def find_problems(state: State, progress: Progress | None) -> tuple[list[str], int]:
    """What is wrong, and how many bytes were read."""
    with state.lock:
        entries = [node.entry for node in state.forest.nodes.values()]
        problems, read = _journal_problems(state)
        problems += state.catalogue.problems()
    for done, entry in enumerate(entries, start=1):
        problem, size = _problem(state.read_segment, entry)
        read += size
        with state.lock:
            node = state.forest.nodes.get(entry.id)
            if node is not None:  # not dropped meanwhile
                state.forest.set_damaged(entry, problem)
                if problem is not None:
                    problems.append(f"{entry.file} ({_times(entry)}): {problem}")
                if node.entry.items is not None:
                    # The segment answers without them, but is never rolled up.
                    problem, size = _problem(state.read_items, node.entry)
                    read += size
                    if problem is not None:
                        problems.append(f"{node.entry.items} ({_times(entry)}): {problem}")
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
