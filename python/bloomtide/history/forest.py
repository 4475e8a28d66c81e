"""The forest of segments: what the catalogue has registered, and where the core finds the files.

A segment whose counts another one contains is that one's child: all children that lie in one row of
their parent together are that row, in finer rows. Roots have no parent. Every event that the store
knows is in exactly one root or in one open segment, so the sum over those is the whole truth; to go
from a row to its children changes nothing but the grain.

The core plans ranges and reads the rows (`history/forest.rs`). Files are mapped when they are first
asked and stay mapped while there is room. One that is missing or damaged is remembered with the
reason and never asked again; its parent's row answers for it, or its time is reported as missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from bloomtide._core import HistoryForest, HistorySegment
from bloomtide.errors import BloomtideError
from bloomtide.history.entry import Entry, require_same
from bloomtide.history.places import Place

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Counts: TypeAlias = "npt.NDArray[np.uint64]"
Key = str | bytes | int

MAPPED = 16_384
"""Files that are mapped at the same time, more than a year of hours; systems allow some sixty
thousand."""


class Damaged(Exception):
    """A segment cannot be asked; the forest knows why."""


class Forest:
    """All sealed segments of a store."""

    def __init__(self, place: Place, entries: Iterable[Entry], *, by_order: bool) -> None:
        """Knows the segments and opens none. `by_order`: rows end by arrivals, not by time."""
        self._place = place
        self.core = HistoryForest(by_order=by_order, mapped=MAPPED)
        """The same, as what plans ranges and asks for their files here."""
        self.entries: dict[int, Entry] = {}
        self.damaged: dict[int, str] = {}
        """Why a segment cannot be asked."""
        self.change(put=entries)

    @property
    def roots(self) -> list[Entry]:
        """The segments that no other one contains."""
        return [entry for entry in self.entries.values() if entry.parent is None]

    def change(self, *, put: Iterable[Entry] = (), remove: Iterable[int] = ()) -> None:
        """Follows a change of the catalogue: segments that are new, or known anew, and others that
        are gone."""
        for entry in put:
            self.entries[entry.id] = entry
            self.core.insert(
                entry.id, entry.parent, entry.number, (entry.begin, entry.end),
                (entry.first, entry.last), entry.rows, entry.events,
            )  # fmt: skip
        for number in remove:
            del self.entries[number]
            self.core.remove(number)
            self.damaged.pop(number, None)

    def open(self, number: int) -> HistorySegment:
        """The mapped file, for the core."""
        entry = self.entries[number]
        try:
            segment = HistorySegment.open(self._place.local(entry.file), entry.at, entry.bytes)
            require_same(entry, segment)
            return segment
        except (OSError, BloomtideError) as error:
            self.give_up(number, error)

    def give_up(self, number: int, error: Exception) -> NoReturn:
        """Remembers why a segment cannot be asked, which the core knows by now."""
        reason = "the file is missing" if isinstance(error, FileNotFoundError) else str(error)
        self.damaged[number] = f"{self.entries[number].file}: {reason}"
        raise Damaged from error

    def set_damaged(self, entry: Entry, reason: str | None) -> None:
        """Why a segment cannot be asked, or that it can be again."""
        self.core.set_damaged(entry.id, reason is not None)
        if reason is None:
            self.damaged.pop(entry.id, None)
        else:
            self.damaged[entry.id] = f"{entry.file}: {reason}"
