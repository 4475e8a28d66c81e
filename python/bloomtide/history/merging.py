"""Merging stores: the segments of another one are copied and registered here.

Rows by time are aligned to the same edges everywhere, so nothing has to be rebuilt: the copies are
further roots over the same time, and the next compaction rolls them up with their neighbours. What
is open in the other store comes as sealed segments; that store does not change. All of it appears
by one transaction, or nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bloomtide.errors import IncompatibleError, require
from bloomtide.history.entry import Entry
from bloomtide.history.seal import seal_parts, write_segments
from bloomtide.history.state import State

SAME = ("window", "arrivals", "ladder", "hash", "seed", "fingerprint")
"""What must agree, in the order in which a difference is reported."""

_TOGETHER = 64
"""Segments in one file of copies."""
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
        most = "a store with fewer than 2**62 events together with this one"
        require("other", there.directory, most, here.events() + there.events() < 2**62)
        entries = list(there.forest.entries.values())
        with here.lock:
            ids = {entry.id: here.catalogue.allocate() for entry in entries}
        copies: list[Entry] = []
        for start in range(0, len(entries), _TOGETHER):
            copies += _copy(here, there, entries[start : start + _TOGETHER], ids)
        opened = [segment.index for segment in there.buffer.segments()]
        copies += write_segments(here, seal_parts(here, there.buffer, opened), "copied")
    here.register(put=copies)
    return len(copies)


def _copy(
    here: State, there: State, entries: Sequence[Entry], ids: dict[int, int]
) -> Iterator[Entry]:
    file, at = here.write_file("segment", [there.read_segment(entry) for entry in entries])
    parts = [b"" if entry.items is None else there.read_items(entry) for entry in entries]
    items, items_at = here.write_file("items", parts) if any(parts) else (None, [0] * len(parts))
    for place, entry in enumerate(entries):
        yield replace(
            entry,
            id=ids[entry.id],
            file=file,
            at=at[place],
            items=None if entry.items is None else items,
            items_at=items_at[place],
            parent=None if entry.parent is None else ids[entry.parent],
            state="copied",
            created=here.now(),
        )
