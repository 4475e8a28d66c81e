"""Compaction: roll-ups and retention.

A roll-up makes one segment of the next level from all complete segments in its span. It is built
from their exact items, so it is sized for its own load and its error does not grow; they become its
children and their items files go. Retention then drops children whose time to be kept is over, and
at last whole roots.

What is built lies outside of every lock; the roll-ups of a level are written together, and one
transaction registers them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial

from bloomtide._core import history_roll_up
from bloomtide.errors import BloomtideError, ParameterError
from bloomtide.history.entry import Entry
from bloomtide.history.ladder import parse_retention
from bloomtide.history.seal import write_segments
from bloomtide.history.state import State
from bloomtide.records import SealedSegment

_FILE = 1 << 26
"""Bytes of roll-ups that are written together."""


def roll_up(state: State, now: int, max_error: float | None) -> int:
    """Rolls up everything that is complete, level by level; how many segments became children."""
    children = 0
    level = 0
    while True:
        groups = list(_groups(state, level, now))
        made: list[tuple[int, SealedSegment, list[int]]] = []
        for number, entries in groups:
            made += _roll_up_group(state, level + 1, number, entries, max_error)
            if sum(len(part.segment) + len(part.items) for _, part, _ in made) > _FILE:
                children += _register(state, made)
                made = []
        children += _register(state, made)
        level += 1
        with state.lock:
            if level > max((entry.level for entry in state.forest.roots), default=0):
                return children


def drop_expired(state: State, now: int) -> int:
    """Removes what retention no longer keeps; how many segments that were."""
    rules = parse_retention(state.settings.retention)
    newest = state.newest()
    if not rules or newest is None:
        return 0
    # A clock that jumped ahead must not empty the store, nor an event from the future.
    present = min(now, newest)
    keep = {level.number: level.keep for level in state.levels}
    last = rules[-1].keep
    with state.lock:
        gone: set[int] = set()
        horizon = state.catalogue.horizon
        # A parent comes before its children: nothing is wider than what is above it.
        for entry in sorted(state.forest.entries.values(), key=lambda it: -it.level):
            kept = last if entry.parent is None else keep.get(entry.level, last)
            if entry.parent in gone:
                gone.add(entry.id)
            elif kept is not None and entry.end <= present - kept:
                gone.add(entry.id)
                if entry.parent is None:
                    horizon = entry.end if horizon is None else max(horizon, entry.end)
        if gone:
            moved = horizon if horizon != state.catalogue.horizon else None
            state.register(remove=gone, horizon=moved)
    return len(gone)


def _groups(state: State, level: int, now: int) -> Iterator[tuple[int, list[Entry]]]:
    """The roots of a level that are to become one segment each, with its number."""
    newest = state.newest()
    if newest is None:
        return
    with state.lock:
        found = [entry for entry in state.forest.roots if entry.level == level and entry.items]
        same = (it.number for it in state.forest.entries.values() if it.level == level)
        latest = max(same, default=0)
    groups: defaultdict[int, list[Entry]] = defaultdict(list)
    levels = state.levels
    if not levels:
        for entry in found:
            groups[entry.number // state.settings.rows].append(entry)
        for number, entries in sorted(groups.items()):
            if latest + 1 >= (number + 1) * state.settings.rows:
                yield number, sorted(entries, key=lambda entry: entry.number)
        return
    if level + 1 >= len(levels):
        return
    span = levels[level + 1].span
    closed = min(newest, now) - state.settings.lateness
    for entry in found:
        groups[entry.begin // span].append(entry)
    for number, entries in sorted(groups.items()):
        if (number + 1) * span <= closed:
            yield number, sorted(entries, key=lambda entry: entry.begin)


def _roll_up_group(
    state: State, level: int, number: int, entries: Sequence[Entry], max_error: float | None
) -> Iterator[tuple[int, SealedSegment, list[int]]]:
    """The segment of a group with its number and its children, if any of these can be read."""
    levels = state.levels
    if levels:
        begin, end = number * levels[level].span, (number + 1) * levels[level].span
    else:
        begin = min(entry.begin for entry in entries)
        end = max(entry.end for entry in entries)
    build = partial(
        history_roll_up,
        begin=begin,
        end=end,
        level=level,
        row_span=levels[level].window if levels else None,
        error_rate=state.settings.error_of(level),
        gate_error=state.settings.gate_error,
        names=state.settings.names,
        hash=state.settings.hash,
        seed=state.settings.seed,
        secret=state.secret,
    )
    sound = _read_items(state, entries)
    if sound:
        built = build([items for _, items in sound])
        if max_error is not None and built.predicted_error > max_error:
            _refuse_error(max_error, built.predicted_error)
        yield number, built, [child.id for child, _ in sound]


def _register(state: State, made: Sequence[tuple[int, SealedSegment, list[int]]]) -> int:
    """Writes segments of one level and makes them the parents of what they were built from; how
    many children these are."""
    if not made:
        return 0
    is_top = bool(state.levels) and made[0][1].level + 1 == len(state.levels)
    parts = [(number, part) for number, part, _ in made]
    with state.lock:
        entries = write_segments(state, parts, "rolled up", items=not is_top)
        pairs = zip(entries, made, strict=True)
        adopt = {child: entry.id for entry, (_, _, family) in pairs for child in family}
        state.register(add=entries, adopt=adopt)
    return len(adopt)


def _read_items(state: State, entries: Sequence[Entry]) -> list[tuple[Entry, bytes]]:
    """The exact contents of the segments. One whose items are lost or damaged stays a root."""
    found: list[tuple[Entry, bytes]] = []
    for entry in entries:
        try:
            found.append((entry, state.read_items(entry)))
        except (OSError, BloomtideError) as error:
            state.failure = f"{entry.items} cannot be rolled up: {error}"
    return found


def _refuse_error(max_error: float, predicted: float) -> None:
    raise ParameterError(
        f"`max_error` must be at least the error after the step, {predicted:.3g}, got: {max_error}",
        hint="allow more error, or keep the segments as they are",
        name="max_error",
        got=max_error,
        allowed=f"at least {predicted}",
    )
