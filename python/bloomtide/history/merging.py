"""Merging stores: the segments of another one are copied and registered here.

Rows by time are aligned to the same edges everywhere, so nothing has to be rebuilt: the copies are
further roots over the same time, and the next compaction rolls them up with their neighbours. What
is open in the other store comes as sealed segments; that store does not change. All of it appears
by one transaction, or nothing.
"""

from __future__ import annotations

import threading
from dataclasses import replace

from bloomtide.errors import IncompatibleError
from bloomtide.history.entry import Entry
from bloomtide.history.seal import write_sealed
from bloomtide.history.state import State

SAME = ("window", "arrivals", "ladder", "hash", "seed", "fingerprint")
"""What must agree, in the order in which a difference is reported."""

_MERGING = threading.Lock()
"""One merge at a time: two stores that merge each other would wait for each other's lock."""


def merge_store(here: State, there: State) -> int:
    """Copies everything of another store; how many segments that were."""
    if here.directory.resolve() == there.directory.resolve():
        raise IncompatibleError(
            "a store cannot be merged with itself", hint="every event would count twice",
            field="path", expected="another store", got=str(there.directory),
        )  # fmt: skip
    for name in SAME:
        expected, got = getattr(here.settings, name), getattr(there.settings, name)
        if expected != got:
            shown = "secret" if name == "fingerprint" else name
            raise IncompatibleError(
                f"the stores were made with another `{shown}`: {expected} and {got}",
                hint="only stores with the same rows and the same hash can be merged",
                field=shown, expected=expected, got=got,
            )  # fmt: skip
    if here.settings.window is None:
        raise IncompatibleError(
            "rows by `arrivals` of two stores have no common order",
            hint="only stores by `window` can be merged", field="arrivals",
            expected=None, got=here.settings.arrivals,
        )  # fmt: skip
    with _MERGING, there.lock:
        entries = list(there.forest.entries.values())
        copies: list[Entry] = []
        with here.lock:
            ids = {entry.id: here.catalogue.allocate() for entry in entries}
        for entry in entries:
            copies.append(_copy(here, there, entry, ids))
        for segment in there.buffer.segments():
            copies.append(replace(write_sealed(here, there.buffer, segment.index), state="copied"))
    here.register(add=copies)
    return len(copies)


def _copy(here: State, there: State, entry: Entry, ids: dict[int, int]) -> Entry:
    return replace(
        entry,
        id=ids[entry.id],
        file=here.write_file("segment", there.read_segment(entry)),
        items=None if entry.items is None else here.write_file("items", there.read_items(entry)),
        parent=None if entry.parent is None else ids[entry.parent],
        state="copied",
        created=here.now(),
    )
