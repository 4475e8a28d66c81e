"""What an open store consists of, and the one way in which it changes.

    buffer      the open segments, exact, in memory
    journal     the same on disk; None for a reader
    catalogue   which sealed segments there are
    forest      the same as segments that can be asked
    place       their files

Every change of the set of segments goes through `register`: the files are safe already, one
transaction makes the change, memory follows, and only then the files that are no longer needed go.
A crash before the transaction leaves orphans, one after it leaves leftovers; both are files that
the catalogue does not name, and `collect_orphans` removes them.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from bloomtide._core import HistoryBuffer, HistorySegment, parse_instant
from bloomtide.durable.disk import Disk
from bloomtide.durable.log import Log
from bloomtide.durable.policy import Sync
from bloomtide.errors import BloomtideError, LockedError, StorageError
from bloomtide.history.catalogue import Catalogue
from bloomtide.history.entry import Entry, checksum, require_same, require_same_items
from bloomtide.history.forest import Forest
from bloomtide.history.journal import begin, journal_path
from bloomtide.history.ladder import MICRO, Level
from bloomtide.history.places import Place
from bloomtide.history.settings import Settings

NOTE = "revision"


@dataclass(slots=True)
class State:
    """An open store."""

    directory: Path
    disk: Disk
    settings: Settings
    secret: bytes | None
    catalogue: Catalogue
    place: Place
    forest: Forest
    buffer: HistoryBuffer
    journal: Log | None
    clock: Callable[[], Any] | None
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Held while the buffer or the forest changes, and while questions are answered."""
    compacting: threading.Lock = field(default_factory=threading.Lock)
    """Held by the one that rolls up or drops segments."""
    lost: str | None = None
    """Why a part of the journal cannot be read: for a reader, since a writer does not open then.
    Nobody knows the times of what was in it."""
    failure: str | None = None
    """Why the last sealing or compaction that nobody waited for went wrong."""
    clock_jumps: int = 0
    late: int = 0
    """Events that were sealed beside a segment of their time that was there already."""
    mark: int = 0
    """The caller's number of the last events in the buffer; see `History.feed`."""
    positions: dict[str, Any] = field(default_factory=dict)
    """How far the sources of the last events in the buffer were read, where that has changed."""
    keep: Callable[[], object] | None = None
    """Makes the caller's record of those events safe, before a transaction names the mark."""
    _told: int = 0
    _looked: int = -1
    """The clock's time when the buffer heard of it last."""

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels of the ladder; none by arrivals."""
        return self.settings.levels()

    def now(self) -> int:
        """The clock's time in microseconds. It may go back; that is counted and otherwise taken as
        it is, since an event may always be late."""
        instant = to_micros(time.time() if self.clock is None else self.clock(), "clock")
        if instant < self._told:
            self.clock_jumps += 1
        self._told = instant
        return instant

    def look_at_clock(self, instant: int | None = None) -> None:
        """Tells the buffer the time, unless the event is before the last look."""
        if instant is None or instant > self._looked:
            self._looked = self.now()
            self.buffer.clock_is_at(self._looked / MICRO)

    def events(self) -> int:
        """All that the store holds, each event once."""
        parts: list[Any] = [*self.forest.roots, *self.buffer.segments()]
        return sum(part.events for part in parts)

    def newest(self) -> int | None:
        """The latest event that the store ever saw."""
        times = [entry.last for entry in self.forest.roots]
        if self.buffer.newest is not None:
            times.append(self.buffer.newest)
        return max(times, default=None)

    @property
    def sync(self) -> Sync:
        """Of the journal: what the caller keeps is brought to the disk by `keep`."""
        return self.settings.sync if self.keep is None else "no"

    def journal_path(self, later: int = 0) -> Path:
        """Where the journal of the catalogue's generation lies, or of a later one."""
        return journal_path(self.directory, self.catalogue.generation + later)

    def begin_journal(self, without: list[int]) -> tuple[Log, dict[str, Any]]:
        """That of the next generation: what is open now, but for some segments."""
        payloads = self.buffer.dump(without=without)
        return begin(self.disk, self.journal_path(1), self.sync, payloads)

    def write_file(self, kind: str, parts: Sequence[bytes]) -> tuple[str, list[int]]:
        """A new file of segments or of their items, safe when this returns: its name, and where
        each part begins."""
        name = f"{uuid.uuid4().hex}.{kind}"
        self.place.write(name, b"".join(parts))
        return name, [0, *accumulate(len(part) for part in parts)]

    def read_segment(self, entry: Entry) -> bytes:
        """A segment, if every byte of it is as it was registered."""
        data = self.place.read(entry.file, entry.at, entry.bytes)
        segment = HistorySegment.from_bytes(data)
        require_same(entry, segment)
        segment.validate()
        return data

    def read_items(self, entry: Entry) -> bytes:
        """The exact contents of a segment, if they are those that were registered."""
        data = self.place.read(entry.items or "", entry.items_at, entry.items_bytes)
        require_same_items(entry, data)
        return data

    def register(
        self,
        *,
        put: Iterable[Entry] = (),
        remove: Iterable[int] = (),
        **given: Any,
    ) -> None:
        """Changes the catalogue by one transaction, then memory, then removes files. `given` is as
        `Catalogue.change` takes it."""
        entries, removed = list(put), list(remove)
        with self.lock, self.changing():
            if self.journal is not None:
                self.journal.require_sound()
            known = self.forest.entries
            before = [known[it.id] for it in entries if it.id in known]
            before += [known[number] for number in removed]

            self.catalogue.prepare_change()
            try:
                change = partial(self.catalogue.change, put=entries, remove=removed, **given)
                self.disk.commit(change)
            except StorageError as error:
                if not self._is_committed(error):
                    raise
                self.catalogue.load()
            self._note_revision()
            self.forest.change(put=entries, remove=removed)
            self.buffer.set_sealed(sum(entry.events for entry in self.forest.roots))
            leftovers = {name for it in before for name in (it.file, it.items) if name}
            leftovers -= self._files()
        self.remove_files(leftovers)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Around a change of the disk and of memory. Ctrl-C may cut it short between them: then
        memory is behind, and nothing may be written on its word until the store is opened anew."""
        try:
            yield
        except BloomtideError:
            raise  # which undoes the change
        except BaseException as error:
            if self.journal is not None:
                self.journal.cut_short(error)
            raise

    def _files(self) -> set[str | None]:
        """Every file that the catalogue names; many segments may lie in one."""
        return {name for it in self.forest.entries.values() for name in (it.file, it.items)}

    def _note_revision(self) -> None:
        """Writes beside the catalogue how far it is. Not durably: a note that is behind says
        nothing, but one that is ahead tells that the catalogue is an older copy."""
        with suppress(OSError):
            (self.directory / NOTE).write_text(_note(self.catalogue.store, self.catalogue.revision))

    def _is_committed(self, error: StorageError) -> bool:
        """Whether a transaction went through although its answer was lost.

        If nobody knows, or if another process writes, the catalogue may name another journal by
        now: nothing may go into this one any more.
        """
        unknown = isinstance(error, LockedError)
        try:
            return not unknown and self.catalogue.is_committed()
        except StorageError:
            unknown = True
            return False
        finally:
            if unknown and self.journal is not None:
                self.journal.failed = error.message

    def remove_files(self, names: Iterable[str]) -> None:
        """Removes files that nothing names. One that cannot be removed now is an orphan later."""
        for name in names:
            try:
                self.place.remove(name)
            except StorageError as error:
                self.failure = str(error.message)

    def collect_orphans(self) -> list[str]:
        """Removes every file that the catalogue does not name: what a crash left behind."""
        named = self._files()
        orphans = [name for name in self.place.names() if name not in named]
        for name in orphans:
            self.place.remove(name)
        current = self.journal_path()
        for path in self.directory.glob("journal-*"):
            if path != current:
                self.disk.unlink(path)
        return orphans


def read_note(directory: Path, store: str) -> int:
    """The revision that the catalogue had at least; 0 if nothing says so. A note that is damaged,
    or another store's, says nothing."""
    try:
        text = (directory / NOTE).read_text()
        revision = int(text.partition(" ")[0])
    except (OSError, ValueError):
        return 0
    return revision if text == _note(store, revision) else 0


def _note(store: str, revision: int) -> str:
    return f"{revision} {checksum(f'{store} {revision}'.encode())}"


def to_micros(value: Any, name: str) -> int:
    """An instant as people write it, in whole microseconds since 1970."""
    return round(float(parse_instant(value, name)) * MICRO)
