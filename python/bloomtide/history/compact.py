"""Compaction: roll-ups and retention.

A roll-up makes one segment of the next level from all complete segments in its span. It is built
from their exact items, so it is sized for its own load and its error does not grow; they become its
children and their items go. Where some are there and others will follow, a roll-up is made already,
and made anew with those; until then its children keep their items. Retention drops children whose
time to be kept is over, and at last whole roots.

What is built lies outside of every lock; the roll-ups of a level are written together, and one
transaction registers them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bloomtide._core import history_roll_up
from bloomtide.errors import BloomtideError, ParameterError
from bloomtide.history.entry import Entry, adopted
from bloomtide.history.ladder import parse_retention
from bloomtide.history.seal import write_segments
from bloomtide.history.state import State
from bloomtide.records import SealedSegment

Group = tuple[int, list[Entry]]
"""The number of a roll-up, and what it is built from."""
Made = tuple[int, list[Entry], SealedSegment]
_FILE = 1 << 26
"""Bytes of items that are rolled up together, into one file."""
_FEW = 4
"""Segments that are rolled up before all of their time is over, so that a range reads few."""


def roll_up(state: State, now: int, max_error: float | None) -> int:
    """Rolls up everything that is complete, level by level; how many segments became children."""
    closed = _closed(state, now)
    if closed is None:
        return 0
    _let_go(state, closed)
    children = 0
    level = 0
    while True:
        for batch in _batches(list(_groups(state, level, closed))):
            made = _roll_up_groups(state, level + 1, batch, max_error)
            children += _register(state, made, closed)
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
            if entry.items and entry.parent is not None:
                continue  # its parent is made anew from it
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


def _groups(state: State, level: int, closed: int) -> Iterator[Group]:
    """The roots of a level that are to become one segment each, with its number."""
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
    for entry in found:
        groups[entry.begin // span].append(entry)
    for number, entries in sorted(groups.items()):
        # What will be made anew itself is not taken yet.
        done = [it for it in entries if it.end <= closed or it.state != "rolled up"]
        if (number + 1) * span > closed:
            if len(done) < _FEW:
                continue
            early = _early(state, level + 1, number)
            done += [it for it in state.forest.entries.values() if it.parent in early]
        yield number, sorted(done, key=lambda entry: entry.begin)


def _early(state: State, level: int, number: int) -> list[int]:
    """The roll-up of that span that was made before its end."""
    return [
        it.id
        for it in state.forest.roots
        if (it.level, it.number, it.state) == (level, number, "rolled up")
    ]


def _taken_early(child: Entry, parent: int) -> Entry:
    """A child whose parent will be made anew from it."""
    return replace(child, parent=parent)


def _let_go(state: State, closed: int) -> None:
    """Removes the items of segments whose parent is not made anew any more."""
    with state.lock:
        known = state.forest.entries
        done = [
            adopted(it, it.parent)
            for it in known.values()
            if it.items and it.parent is not None and known[it.parent].end <= closed
        ]
        if done:
            state.register(put=done)


def _closed(state: State, now: int) -> int | None:
    """The instant before which no event is expected any more."""
    newest = state.newest()
    return None if newest is None else min(newest, now) - state.settings.lateness


def _batches(groups: Iterable[Group]) -> Iterator[list[Group]]:
    """The groups, as many at a time as memory has room for."""
    batch: list[Group] = []
    size = 0
    for number, entries in groups:
        length = sum(entry.items_bytes for entry in entries)
        if batch and size + length > _FILE:
            yield batch
            batch, size = [], 0
        batch.append((number, entries))
        size += length
    if batch:
        yield batch


def _roll_up_groups(
    state: State, level: int, groups: Iterable[Group], max_error: float | None
) -> list[Made]:
    """Segments of the groups with their numbers and children, if any of these can be read."""
    levels, settings = state.levels, state.settings
    families: list[tuple[int, list[Entry]]] = []
    parts: list[tuple[list[bytes], int, int]] = []
    for number, entries in groups:
        if levels:
            begin, end = number * levels[level].span, (number + 1) * levels[level].span
        else:
            begin = min(entry.begin for entry in entries)
            end = max(entry.end for entry in entries)
        sound = _read_items(state, entries)
        again = any(entry.parent is not None for entry in entries)
        if sound and not (again and len(sound) < len(entries)):
            families.append((number, [child for child, _ in sound]))
            parts.append(([items for _, items in sound], begin, end))
    made = history_roll_up(
        parts,
        level=level,
        row_span=levels[level].window if levels else None,
        error_rate=settings.error_of(level),
        gate_error=settings.gate_error,
        names=settings.names,
        hash=settings.hash,
        seed=settings.seed,
        secret=state.secret,
    )
    worst = max((segment.predicted_error for segment in made), default=0.0)
    if max_error is not None and worst > max_error:
        _refuse_error(max_error, worst)
    return [(*family, segment) for family, segment in zip(families, made, strict=True)]


def _register(state: State, made: Sequence[Made], closed: int) -> int:
    """Writes segments of one level and makes them the parents of what they were built from; how
    many more children there are."""
    if not made:
        return 0
    is_top = bool(state.levels) and made[0][2].level + 1 == len(state.levels)
    parts = [(number, part) for number, _, part in made]
    with state.lock:
        entries = write_segments(state, parts, "rolled up", items=not is_top)
        moved: list[Entry] = []
        replaced: set[int] = set()
        for entry, (_, family, _) in zip(entries, made, strict=True):
            ended = entry.end <= closed or not state.levels
            taken = adopted if ended else _taken_early
            moved += [taken(child, entry.id) for child in family]
            replaced |= {child.parent for child in family if child.parent is not None}
        state.register(put=[*entries, *moved], remove=replaced)
    return sum(child.parent not in replaced for _, family, _ in made for child in family)


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
