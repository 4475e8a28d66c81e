"""`Monitor`: one stream of events (key, time, count) into all structures, and five questions to it.

    seen(key)      was it there before?              BloomFilter or UrlFilter
    count(key)     how often, ever?                  PartitionedDynamicCountFilter
    heat(key)      how hot is it now?                TimeDecayingBloomFilter and HotList
    top(n)         which are hottest now?            HotList
    history        how often between two moments?    History

1. Events become a block. The ledger has it before any structure has it; each structure takes it in
   one pass, with each key hashed once. An event is acknowledged when its call returns.
2. After a crash the ledger's blocks behind the last snapshot are taken again, in their order. The
   history commits which block it has last together with its segments (`History.feed`), so it gets
   only what is behind that. Every acknowledged event counts exactly once, in every structure.
3. `save` is one cut: no event is in one structure and not in another.
4. A question changes nothing. All threads may ask; those that add wait for each other.

Time is the stream's own: `now()` is the latest event and what has passed since it came.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from bloomtide._core import Events, parse_count
from bloomtide.durable.background import Background
from bloomtide.durable.disk import Disk
from bloomtide.durable.policy import Sync
from bloomtide.errors import BloomtideError, ClosedError, JournalError, require
from bloomtide.monitor.answers import MICRO, Answers, Key, seconds_of
from bloomtide.monitor.batches import in_parts
from bloomtide.monitor.feed import LogFeed
from bloomtide.monitor.pulse import PulseRing
from bloomtide.monitor.records import MonitorStats, Pulse, StructureStats
from bloomtide.monitor.settings import Given, Settings
from bloomtide.monitor.state import Totals, open_ledger, write_state
from bloomtide.monitor.structures import Structures, history_stats
from bloomtide.records import Applied
from bloomtide.store import Ledger

if TYPE_CHECKING:
    from bloomtide.history import History

log = logging.getLogger("bloomtide.monitor")
_REWRITE = 256 << 20
"""Bytes of journal that make a new snapshot."""
_FRESH = 5.0
"""Seconds for which what was measured of the structures is told again."""
_STALE = 30.0
"""Seconds after which it is measured before it is told."""


class Monitor(Answers):
    """Answers about one stream. Made by `Monitor.open`."""

    def __init__(
        self,
        settings: Settings,
        structures: Structures,
        totals: Totals,
        ledger: Ledger | None,
        history: History | None,
        clock: Callable[[], Any] | None,
    ) -> None:
        """Not called by users: see `open`."""
        self.settings = settings
        self.structures = structures
        self.history = history
        self.guards: dict[str, Any] = {}
        self._totals = totals
        self._ledger = ledger
        self._clock = clock
        self._intake = structures.intake(totals.time)
        self._pulse = PulseRing()
        # Taken in this order. Who saves holds the second one only while it copies.
        self._saving = threading.Lock()
        self._lock = threading.RLock()
        self._events = self.events()
        self._failure: str | None = None
        self._rewrite_at = _REWRITE
        self._closed = False
        self._measured: tuple[float, list[StructureStats]] | None = None
        self._measurer: Background | None = None
        self._saver: Background | None = None
        self._background = False

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        sync: Sync = "everysec",
        clock: Callable[[], Any] | None = None,
        background: bool = True,
        disk: Disk | None = None,
        **settings: Unpack[Given],
    ) -> Self:
        """Opens the monitor in a directory, or makes it; without a path it is in memory only.

        `capacity` (1,000,000) distinct keys with `error_rate` (0.01); `seen` is "bloom", "url" or
        None; `counts` (True); `hot` (1000) places of the hot list, whose counts halve every
        `half_life` ("10m"), or None; `history` (True, in a directory) by `window` ("1m") with its
        `retention`. `sync` is "always", "everysec" or "no": when an acknowledged event is safe from
        a power cut. It is
        safe from a crash of this process at once. With `background=False` the history is rolled up
        only by its own `compact()`, and who adds waits for a snapshot that is due.

        What is left out is as it was, or as said in parentheses.
        """
        if path is None:
            chosen = Settings.create(settings, None, on_disk=False)
            since = seconds_of(clock)
            return cls(chosen, Structures.create(chosen), Totals(since), None, None, clock)
        directory = Path(path)
        ledger = Ledger.open(directory, sync=sync, disk=disk)
        history: History | None = None
        try:
            chosen, structures, totals = open_ledger(ledger, settings, seconds_of(clock))
            if chosen.history:
                from bloomtide.history import History  # a monitor in memory needs none

                history = History.open(
                    directory / "history", chosen.window, error_rate=chosen.error_rate,
                    retention=chosen.retention,
                    clock=clock, disk=disk, keep=ledger.sync,
                    background=background,
                )  # fmt: skip
            this = cls(chosen, structures, totals, ledger, history, clock)
            for sequence, block in ledger.replay():
                this._apply(block, sequence)
            if history is not None and history.mark > ledger.sequence:
                # A repair has cut blocks that the history has: their numbers will be used again.
                history.feed(lambda _: None, mark=ledger.sequence)
                history.checkpoint()
        except BaseException:
            if history is not None:
                history.close()
            ledger.close()
            raise
        this._background = background
        return this

    # --- events -------------------------------------------------------------------------------

    def add(self, key: Key, count: int = 1, at: Any = None) -> bool:
        """Counts a key's occurrences at an instant, or now; True iff it was certainly new."""
        times = parse_count(count, alone=at is None)
        with self._lock:
            events = self._events
            try:
                events.add(key, times, at=self.arrival() if at is None else at)
            except BaseException:
                events.clear()
                raise
            applied = self.take(events)
            return applied is not None and applied.new == 1

    def add_many(
        self, keys: Any, counts: Any = None, at: Any = None, *,
        source: str | None = None, position: Any = None,
    ) -> int:  # fmt: skip
        """Counts every key at its instant (`at`: one for all, or one for each); how many were new.

        A row that is no event refuses the batch before anything changes; one of more than 65,536
        rows goes in by parts of so many. `position` is kept with the last part (see `LogFeed`).
        """
        new = 0
        with self._lock:
            moments = self.arrival() if at is None else at
            parts = in_parts(keys, counts, moments)
            part = next(parts, None)
            while part is not None:
                some, weights, instants = part
                part = next(parts, None)
                note = _note(source, position) if part is None else b""
                block = self._events.pack(
                    some, weights, at=instants, arrived=self.clock(), note=note
                )
                new += self._journal(block).new
        return new

    def log(
        self, *, by: str = "path", query: bool = True, format: str | None = None,
        json_map: str | None = None, source: str | None = None,
    ) -> LogFeed:  # fmt: skip
        """A log whose lines count by one of their fields: `feed` takes its bytes."""
        options = {"by": by, "query": query, "format": format, "json_map": json_map}
        return LogFeed(self, source, options)

    @property
    def positions(self) -> dict[str, Any]:
        """How far each named source was read, as of the last events that came from it."""
        with self._lock:
            return dict(self._totals.positions)

    # --- questions ----------------------------------------------------------------------------

    def stats(self) -> MonitorStats:
        """What the monitor is like now."""
        self._require_open()
        measured = self._structures()
        with self._lock:
            totals = self._totals
            return MonitorStats(
                events=totals.events, new=totals.new, late=totals.late, ahead=totals.ahead,
                aside=totals.aside,
                per_second=self._pulse.rate(int(self.clock())), since=totals.since,
                time=None if totals.newest is None else totals.newest / MICRO, now=self.now(),
                structures=tuple(measured), bytes=sum(each.bytes for each in measured),
                guards={name: guard.stats() for name, guard in self.guards.items()},
                journal_bytes=0 if self._ledger is None else self._ledger.bytes,
                failure=self.failure,
            )  # fmt: skip

    def pulse(self) -> Pulse:
        """The last five minutes by second, as events came."""
        with self._lock:
            return self._pulse.read(int(self.clock()))

    def register(self, name: str, guard: Any) -> None:
        """Shows the state of a guard, or of anything with `stats()`, beside the monitor's."""
        require("guard", guard, "something with stats()", callable(getattr(guard, "stats", None)))
        self.guards[name] = guard

    @property
    def failure(self) -> str | None:
        """Why nothing more is taken; questions are answered all the same."""
        return self._failure or (self._ledger.failed if self._ledger is not None else None)

    # --- upkeep -------------------------------------------------------------------------------

    def save(self) -> None:
        """One snapshot of all structures as of now, on the disk when this returns.

        Events wait only while memory is copied, and go on in a new journal. In memory there is
        nothing to do.
        """
        with self._saving:
            self._save()

    def digest(self) -> str:
        """Of all contents: the same after `close` or a crash, and `open`."""
        made = blake2b(digest_size=16)
        with self._lock:
            for name, structure in self.structures:
                made.update(name.encode())
                made.update(structure.to_bytes())
            if self.history is not None:
                stats = self.history.stats()
                made.update(repr((stats.events, stats.first, stats.last)).encode())
            made.update(json.dumps(self._totals.as_dict(), sort_keys=True).encode())
        return made.hexdigest()

    def flush(self) -> None:
        """Every event so far is safe from a power cut when this returns."""
        if self._ledger is not None:
            self._ledger.sync()

    def close(self) -> None:
        """Saves everything and gives the directory back."""
        with self._lock:
            threads = (self._measurer, self._saver)
            self._measurer = self._saver = None
        for thread in threads:
            if thread is not None:
                thread.stop()
        try:
            with self._saving, self._lock:
                if self._closed:
                    return
                if self.failure is None and self._is_changed():
                    self._save(copy=False)
        finally:
            self._closed = True
            if self.history is not None:
                self.history.close()
            if self._ledger is not None:
                self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        where = "in memory" if self._ledger is None else str(self._ledger.path)
        return f"<Monitor {where}: {self._totals.events:,} events>"

    # --- for what feeds a monitor -------------------------------------------------------------

    def events(self) -> Events:
        """A place for events that have come and are in no block yet."""
        return Events(urls=self.settings.seen == "url")

    def arrival(self) -> float:
        """When an event happens that does not say; a clock that went back stands still."""
        newest = self._totals.newest
        return max(self.clock(), 0.0 if newest is None else newest / MICRO)

    def take(
        self, events: Events, source: str | None = None, position: Any = None
    ) -> Applied | None:
        """Journals and counts what has come; None if that is nothing, and no position either."""
        with self._lock:
            note = _note(source, position)
            if not len(events) and not note:
                return None
            return self._journal(events.take(self.clock(), note))

    # --- inside -------------------------------------------------------------------------------

    def _journal(self, block: bytes) -> Applied:
        """The ledger has the block, then every structure. Who calls this holds the lock."""
        self._require_sound()
        if self._ledger is None:
            return self._apply(block, 0)
        sequence = self._ledger.append(block)
        applied = self._apply(block, sequence)
        if self._ledger.bytes > self._rewrite_at:
            if not self._background:
                self._save_if_due()
            elif self._saver is None:
                self._saver = Background("monitor-snapshot", self._save_if_due, self._ignore)
            if self._saver is not None:
                self._saver.wake()
        return applied

    def _save_if_due(self) -> None:
        """A snapshot that nobody asked for: the events are safe without it."""
        ledger = self._ledger
        # If another one is being made, that will do.
        if ledger is None or not self._saving.acquire(blocking=False):
            return
        try:
            if ledger.bytes > self._rewrite_at:
                self._rewrite_at = _REWRITE
                self._save()
        except BloomtideError as error:
            self._rewrite_at = 2 * ledger.bytes
            log.warning("no snapshot was made, so the journal grows on: %s", error.message)
        finally:
            self._saving.release()

    def _save(self, *, copy: bool = True) -> None:
        """Who calls this holds `_saving`, and without a copy `_lock` all along."""
        self._require_sound()
        ledger = self._ledger
        if ledger is None:
            return
        ledger.sync()  # so that little is left to sync inside the lock
        with self._lock:
            write = ledger.begin_rewrite()
            structures = self.structures.copy() if copy else self.structures
            totals = self._totals.copy()
        if self.history is not None:
            # The blocks that it has not yet are in journals that are about to go.
            self.history.checkpoint()

        def write_all(directory: Path) -> None:
            write_state(directory, self.settings, totals, structures.save(directory))

        write(write_all)

    def _apply(self, block: bytes, sequence: int) -> Applied:
        history = self.history
        try:
            if history is not None and sequence > history.mark:
                applied = history.feed(
                    lambda buffer: self._intake.apply(block, history=buffer),
                    mark=sequence,
                )
            else:
                applied = self._intake.apply(block)
        except BloomtideError as error:
            # Some structures may have it and others not: what is on the disk is the truth now.
            self._fail(f"a block of events was not counted: {error.message}")
            raise
        self._totals.count(applied, self._intake.time)
        self._pulse.add(applied.arrived // MICRO, applied.events, applied.new)
        return applied

    def _is_changed(self) -> bool:
        """Whether there is something that the last snapshot does not hold."""
        ledger = self._ledger
        return ledger is not None and ledger.sequence > ledger.snapshot_sequence

    def _structures(self) -> list[StructureStats]:
        """What was measured last. Measuring goes through all cells, so nobody waits for it but who
        asks after nobody did for a while."""
        if self._measured is None or time.monotonic() - self._measured[0] > _STALE:
            self._measure()
        measured_at, found = self._measured or (0.0, [])
        if time.monotonic() - measured_at >= _FRESH:
            with self._lock:
                if self._measurer is None and not self._closed:
                    self._measurer = Background("monitor-stats", self._measure, self._ignore)
                if self._measurer is not None:
                    self._measurer.wake()
        return found

    def _measure(self) -> None:
        if self._measured is not None and time.monotonic() - self._measured[0] < _FRESH:
            return
        found = self.structures.stats()
        if self.history is not None:
            found.append(history_stats(self.history))
        self._measured = (time.monotonic(), found)

    def _ignore(self, message: str) -> None:
        """A measure that failed is taken again."""

    def _fail(self, message: str) -> None:
        self._failure = self._failure or message

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedError("the monitor was closed", hint="open it again", path=repr(self))

    def _require_sound(self) -> None:
        self._require_open()
        if self._failure is not None:
            raise JournalError(
                f"the monitor takes no more events: {self._failure}",
                hint="questions are still answered; open it again to go on",
                path=repr(self), operation="write", offset=None,
            )  # fmt: skip


def _note(source: str | None, position: Any) -> bytes:
    """What ties a block to its source."""
    if source is None or position is None:
        return b""
    return json.dumps([source, position]).encode()
