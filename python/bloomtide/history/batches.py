"""Numbered batches: what a stream brings, counted exactly once however often it is sent.

A stream engine may send a batch again after a crash, always under the same number. So a batch does
not go through the journal: its events become segments of their own, and one transaction registers
these and the number. A kill before it leaves orphan files and no event; after it the number says
that the batch is in. Rows by time are aligned everywhere, so such segments are further roots over
their time, as in a merge, and compaction rolls them up.

Numbers of one source only grow: a batch with the last number or a smaller one is there already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from bloomtide._core import HistoryBuffer, RecordScan
from bloomtide.durable.background import Background
from bloomtide.durable.log import pack_file
from bloomtide.errors import BloomtideError, IncompatibleError, require
from bloomtide.history.entry import Entry
from bloomtide.history.journal import KIND
from bloomtide.history.seal import forget, seal_parts, write_segments
from bloomtide.history.settings import Settings
from bloomtide.history.state import State
from bloomtide.plain import plain

if TYPE_CHECKING:
    from bloomtide.history.store import History


def add_batch(
    state: State,
    source: str,
    number: int,
    fill: Callable[[HistoryBuffer], object],
    compacter: Background | None,
) -> bool:
    """Registers what `fill` puts into an empty buffer; False if the number is not a new one."""
    require("source", source, "a name", type(source) is str and source != "")
    number = plain(number)
    require("number", number, "a whole number from 0", type(number) is int and number >= 0)
    if state.settings.window is None:
        raise IncompatibleError(
            "batches have no place in the order of `arrivals`",
            hint="only stores by `window` take batches", field="arrivals",
            expected=None, got=state.settings.arrivals,
        )  # fmt: skip
    last = state.catalogue.positions.get(source, -1)
    if number <= last:
        return False
    # Its events are safe as files, before anybody is told of them.
    buffer = state.settings.buffer(state.secret)
    buffer.set_sealed(state.events())
    fill(buffer)
    entries: list[Entry] = []
    try:
        chosen = [segment.index for segment in buffer.segments()]
        entries = write_segments(state, seal_parts(state, buffer, chosen), "sealed")
        state.register(put=entries, positions={source: number})
    except BloomtideError:
        # If nobody knows whether the transaction went through the files must stay.
        if state.journal is None or state.journal.failed is None:
            forget(state, entries)
        raise
    if compacter is not None:
        compacter.wake()
    return True


@dataclass(frozen=True, slots=True)
class BufferRecipe:
    """How to make a buffer that a store's batch can take over, on another machine."""

    settings: Settings
    secret: bytes | None

    @classmethod
    def of(cls, store: History) -> Self:
        """That of a store."""
        return cls(store._state.settings, store._state.secret)

    def make(self) -> HistoryBuffer:
        """An empty buffer."""
        return self.settings.buffer(self.secret)


def dump(buffer: HistoryBuffer) -> bytes:
    """Everything of a buffer, as records."""
    return pack_file(KIND, buffer.dump())


def replay_all(buffer: HistoryBuffer, dumps: Iterable[bytes]) -> None:
    """Adds what other buffers have."""
    for data in dumps:
        buffer.replay(RecordScan(data, KIND))
