"""`History`: how often was this key seen between two moments? A store in a directory.

Paper    multi-Bloom filters: segments of counter rows behind a global filter, and a table of them.
Time     half open ranges [start, end). Rows are aligned windows, or `arrivals` as in the paper.
Events   may come in any order: each goes to the row of its own time, however late.
Answers  never below the true count; what could not be read is named in `missing`.

1. An event is in one open segment or in one root, never in both, never in neither, whenever the
   process is killed (`seal.py`).
2. What was acknowledged is as safe as `sync` says (`durable/log.py`).
3. A question changes nothing. Segment files never change.
4. One process writes, many read. Within a process all threads may use one store.

Use `TimeDecayingBloomFilter` for how hot a key is now, in memory only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from bloomtide import system
from bloomtide._core import HistoryBuffer, parse_count
from bloomtide.durable.background import Background
from bloomtide.durable.disk import Disk
from bloomtide.durable.lock import WriterLock
from bloomtide.durable.log import Log
from bloomtide.durable.policy import Sync
from bloomtide.errors import BloomtideError, ClosedError, ReadOnlyError, require
from bloomtide.history import batches, compact, merging, opening, verify
from bloomtide.history.decay import Decay
from bloomtide.history.forest import Counts, Damaged, Key
from bloomtide.history.ladder import MICRO, micros
from bloomtide.history.records import (
    CompactionReport,
    DecayedCount,
    HistoryStats,
    RangeCount,
    SegmentReport,
    Series,
    TopKeys,
    VerifyReport,
)
from bloomtide.history.reports import segment_reports, store_stats
from bloomtide.history.seal import begin_journal, due_segments, seal_segments
from bloomtide.history.settings import Nulls
from bloomtide.history.state import State, to_micros
from bloomtide.history.view import FIRST, LAST, View
from bloomtide.plain import plain

T = TypeVar("T")
_TOGETHER = 1_000_000
"""Pairs of key and row in memory that make the store seal what is due before the clock says so."""
_STEPS = 10_000_000
"""Steps of a series at most."""


class History:
    """Counts of keys in any past range of time. Made by `History.open`."""

    def __init__(self, state: State, lock: WriterLock | None, background: bool) -> None:
        """Not called by users: see `open`."""
        self._state = state
        self._lock = lock
        self._view = View(state)
        self._closed = False
        self._alarm = self._next_seal = self._next_late = FIRST
        self._compacter: Background | None = None
        if lock is not None and background:
            report = self._note_failure
            self._compacter = Background("history-compact", self._compact_now, report)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        window: Any = None,
        *,
        arrivals: int | None = None,
        rows: int | None = None,
        error_rate: float | None = None,
        gate_error: float | None = None,
        retention: str | None = None,
        lateness: Any = None,
        sync: Sync | None = None,
        names: int | None = None,
        entries: int | None = None,
        hash: str | None = None,
        seed: int | None = None,
        secret: bytes | None = None,
        catalogue: str | None = None,
        location: str | None = None,
        mode: str = "w",
        repair: bool = False,
        background: bool = True,
        clock: Callable[[], Any] | None = None,
        disk: Disk | None = None,
        keep: Callable[[], object] | None = None,
    ) -> Self:
        """Opens the store in a directory, or makes it there (`mode="w"`), or reads it (`"r"`).

        Rows are windows of `window` ("1m" for a new store) or end after so many `arrivals`. Counts
        over rows within one segment are exact but with chance `error_rate` (0.01). `retention`
        drops fine rows with time. Segments are sealed `lateness` ("0s") after their end.
        `sync` is "always", "everysec" or "no": when an event that was added survives a power cut
        (see `add`); with `keep` the caller sees to that (see `feed`). `catalogue` is the URL of a
        database for the table of segments, `location` an fsspec URL for their files. With
        `background=False` only `compact()` rolls up. `repair` goes on after a damaged journal.

        What is left out is as it was, or as said in parentheses.
        """
        require("mode", mode, '"w" or "r"', mode in {"w", "r"})
        given = {
            "window": window, "arrivals": arrivals, "rows": rows, "error_rate": error_rate,
            "gate_error": gate_error, "retention": retention, "lateness": lateness,
            "sync": sync, "names": names, "entries": entries,
            "hash": hash, "seed": seed, "location": location,
        }  # fmt: skip
        disk = disk or Disk()
        directory = Path(path)
        opening.shown(catalogue)  # what is wrong with it is told before anything is made
        lock = None
        if mode == "w":
            system.require_posix("a history opened for writing")
            disk.make_directory(directory)
            lock = WriterLock(
                directory / "lock",
                hint='close it there, or open with mode="r": a store has many readers',
            )
        try:
            state = opening.open_state(
                directory, given, secret=secret, catalogue=catalogue, writing=mode == "w",
                repair=repair, clock=clock, keep=keep, disk=disk,
            )  # fmt: skip
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        return cls(state, lock, background)

    # --- events -------------------------------------------------------------------------------

    def add(self, key: Key, count: int = 1, at: Any = None) -> None:
        """Adds occurrences of a key at an instant, or now.

        When this returns the event is written, so it survives a kill of the process. It survives
        a power cut once it is on the disk: now with `sync="always"`, within a second with
        "everysec", whenever the system pleases with "no". Only a store with `keep` writes nothing
        here: see `feed`.
        """
        state = self._require_writer()
        with state.lock:  # as `_writing` has it, which would double the time of an event
            if state.journal is not None:
                state.journal.require_sound()
            times = parse_count(count, alone=at is None)
            require("count", count, "from 1 to 2**62 - 1", times < 2**62)
            instant = state.now() if at is None else to_micros(at, "at")
            state.look_at_clock(instant)
            state.buffer.add(key, times, instant)
            self._acknowledge(instant)

    def add_many(
        self, keys: Any, counts: Any = None, *, at: Any = None, nulls: Nulls = "refuse"
    ) -> int:
        """Adds every key at its instant (`at`: one for all, or one for each); how many went in.

        A bad row is refused before anything changes. What went in is as safe as after `add`; a kill
        before this returns may keep a part of it.
        """
        with self._writing() as state:
            moments = state.now() / MICRO if at is None else at
            state.look_at_clock()
            added = state.buffer.add_many(keys, counts, at=moments, nulls=nulls)
            self._acknowledge(state.buffer.newest)
            return added

    def feed(
        self, work: Callable[[HistoryBuffer], T], *, mark: int | None = None,
        source: str | None = None, position: Any = None,
    ) -> T:  # fmt: skip
        """Lets something else fill the buffer, such as `LogCounter(buffer, by="path")`; what it
        added is acknowledged when this returns.

        A store with `keep` writes nothing here: what is fed survives nothing by itself. The caller
        numbers what it feeds by `mark`, keeps it until `checkpoint`, and after a crash feeds again
        what is behind `mark`. `keep` must bring all of that to the disk; it is called before a mark
        counts. A source that can be read again may be named with its `position` behind what is
        fed, anything that JSON can hold: `positions` has it from the same moment as the events.

        If `work` raises, what it added before counts, and mark and position stay.
        """
        with self._writing() as state:
            kept = state.keep is not None
            require("source", source, "None without `keep`", source is None or kept)
            require("mark", mark, "None without `keep`", mark is None or kept)
            mark = plain(mark)
            require("mark", mark, "a whole number", mark is None or type(mark) is int)
            state.look_at_clock()
            try:
                answer = work(state.buffer)
            except BaseException:
                self._drain()
                raise
            state.mark = state.mark if mark is None else mark
            if source is not None and position is not None:
                state.positions[source] = position
            self._acknowledge(state.buffer.newest)
            return answer

    def add_batch(self, source: str, number: int, fill: Callable[[HistoryBuffer], object]) -> bool:
        """Adds the numbered batch of a source in one transaction; False if it is there already."""
        with self._writing() as state:
            return batches.add_batch(state, source, number, fill, self._compacter)

    @property
    def mark(self) -> int:
        """The number of the last events that were fed with one."""
        return self._state.mark

    @property
    def positions(self) -> dict[str, Any]:
        """How far each named source was read, and the number of its last batch."""
        with self._state.lock:
            return self._state.catalogue.positions | self._state.positions

    def checkpoint(self, *, seal: bool = False) -> None:
        """Everything that was fed so far is on the disk when this returns, with its mark and
        positions; with `seal` in segments, as far as it is complete."""
        with self._writing() as state:
            if not (seal and self._seal_due(state.now())):
                begin_journal(state, [])

    def flush(self) -> None:
        """Everything added so far is on the disk when this returns."""
        with self._writing() as state:
            journal = state.journal
        if journal is not None:
            journal.sync()

    def seal(self) -> int:
        """Writes all open segments out now, complete or not; how many they were."""
        with self._writing() as state:
            return seal_segments(state, [segment.index for segment in state.buffer.segments()])

    # --- questions ----------------------------------------------------------------------------

    def count(
        self, key: Key, start: Any = None, end: Any = None, *,
        last: Any = None, now: Any = None, rollups: bool = True,
    ) -> RangeCount:  # fmt: skip
        """How often the key was seen in [start, end), or in the `last="1h"` before now.

        `rollups=False` adds up the finest rows only: slower, and exactly additive over ranges that
        meet at the edge of a row.
        """
        first, stop = self._view.range_of(start, end, last, now)
        return self._ask(lambda view: view.count(key, first, stop, rollups))

    def count_many(
        self, keys: Any, start: Any = None, end: Any = None, *,
        last: Any = None, now: Any = None, rollups: bool = True, nulls: Nulls = "refuse",
    ) -> Counts:  # fmt: skip
        """`count(...).upper` of every key. `missing` is told by `total` for the same range."""
        first, stop = self._view.range_of(start, end, last, now)
        digests = self._view.digests(keys, nulls)
        return self._ask(lambda view: view.count_many(digests, first, stop, rollups))

    def series(
        self, key: Key, start: Any = None, end: Any = None, step: Any = "1m", *,
        last: Any = None, now: Any = None,
    ) -> Series:  # fmt: skip
        """The counts in steps from `start` on; from the first to the last event if not given."""
        length = min(micros(step, "step"), LAST)
        first, stop = self._view.range_of(start, end, last, now)
        bounds = self._ask(lambda view: view.bounds()) or (0, 0)
        if first == FIRST:
            first = min(bounds[0] - bounds[0] % length, stop)
        stop = max(min(stop, bounds[1]), first) if stop == LAST else stop
        steps = -(-(stop - first) // length)
        require("step", step, f"long enough for at most {_STEPS:,} steps", steps <= _STEPS)
        return self._ask(lambda view: view.series(key, first, stop, length))

    def total(
        self, start: Any = None, end: Any = None, *, last: Any = None, now: Any = None
    ) -> RangeCount:
        """All events in the range; exact but for rows that it cuts."""
        first, stop = self._view.range_of(start, end, last, now)
        return self._ask(lambda view: view.total(first, stop))

    def contains(
        self, key: Key, start: Any = None, end: Any = None, *, last: Any = None, now: Any = None
    ) -> bool:
        """Whether the key may have been seen in the range. False is certain: with a damaged file in
        the range it is True. What retention has dropped is not looked for."""
        first, stop = self._view.range_of(start, end, last, now)
        return self._ask(lambda view: view.contains(key, first, stop))

    def top(
        self, start: Any = None, end: Any = None, n: int = 10, *, last: Any = None, now: Any = None
    ) -> TopKeys:
        """The `n` most frequent keys of the range, with bounds, and a bound for all others."""
        n = plain(n)
        require("n", n, "a whole number above zero", type(n) is int and n >= 1)
        first, stop = self._view.range_of(start, end, last, now)
        return self._ask(lambda view: view.top(first, stop, n))

    def decayed(
        self, key: Key, g: Decay, *, now: Any = None, tolerance: float = 0.01
    ) -> DecayedCount:
        """The sum of g(age in seconds) over the key's events up to now.

        Rows are used as they are where g changes by less than `tolerance` within them.
        """
        require(
            "g", g, "a function of an age in seconds", callable(g),
            hint='bloomtide.history has exponential("1h"), sliding("1d") and polynomial(1)',
        )  # fmt: skip
        require("tolerance", tolerance, "from 0 to 1", 0 <= tolerance <= 1)
        instant = self._now(now)
        return self._ask(lambda view: view.decayed(key, g, instant, tolerance))

    # --- upkeep -------------------------------------------------------------------------------

    def compact(self, *, now: Any = None, max_error: float | None = None) -> CompactionReport:
        """Seals what is complete, rolls up, and drops what retention no longer keeps."""
        with self._writing() as state:
            before = self._bytes()
            instant = self._now(now)
            sealed = self._seal_due(instant)
        with state.compacting:
            rolled = compact.roll_up(state, instant, max_error)
            dropped = compact.drop_expired(state, instant)
        return CompactionReport(
            sealed=sealed, rolled_up=rolled, dropped=dropped,
            bytes_before=before, bytes_after=self._bytes(),
        )  # fmt: skip

    def merge(self, other: History) -> int:
        """Copies all segments of another store into this one; how many they were."""
        require("other", other, "another `History`", isinstance(other, History))
        other._require_open()
        state = self._require_writer()
        with state.compacting:
            return merging.merge_store(state, other._state)

    def verify(self, progress: verify.Progress | None = None) -> VerifyReport:
        """Reads every byte of every segment and says what is wrong."""
        self._require_open()
        problems, read = verify.find_problems(self._state, progress)
        missing = self._ask(lambda view: view.missing())
        return VerifyReport(
            segments=len(self._state.forest.entries), bytes=read,
            problems=tuple(problems), missing=missing,
        )  # fmt: skip

    @property
    def window(self) -> float | None:
        """Seconds that the finest rows span; None if they end by arrivals."""
        window = self._state.settings.window
        return None if window is None else window / MICRO

    @property
    def memory(self) -> int:
        """Bytes of the open segments in memory, about."""
        return self._state.buffer.nbytes

    def segments(self) -> list[SegmentReport]:
        """Every segment, by level and time; the open ones last."""
        self._require_open()
        with self._state.lock:
            return segment_reports(self._state)

    def stats(self) -> HistoryStats:
        """What the store is like now."""
        self._require_open()
        with self._state.lock:
            return store_stats(self._state)

    def refresh(self) -> None:
        """A reader looks again: it sees what was acknowledged until now."""
        self._require_open()
        if self._lock is None:
            with self._state.lock:
                opening.reload(self._state)

    def close(self) -> None:
        """Brings everything to the disk and lets another process write."""
        if self._closed:
            return
        try:
            if self._compacter is not None:
                self._compacter.stop()
            if self._lock is not None and self._lock.held and self._state.journal is not None:
                if self._state.journal.failed is None:
                    self._register_journal(self._state.journal)
                self._state.journal.close()
        finally:
            self._closed = True
            self._state.catalogue.close()
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        rows = self._state.settings
        by = f"window={rows.window / MICRO:g} s" if rows.window else f"arrivals={rows.arrivals}"
        return f"History({str(self._state.directory)!r}, {by})"

    # --- inside -------------------------------------------------------------------------------

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedError(
                "the store was closed", hint="open it again", path=str(self._state.directory)
            )

    def _require_writer(self) -> State:
        lock = self._lock
        if lock is not None and lock.held and not self._closed:
            return self._state
        self._require_open()
        path = str(self._state.directory)
        if lock is None:
            raise ReadOnlyError(
                f"{path} is open for reading only", hint='open it with mode="w"', path=path
            )
        raise ClosedError(
            f"{path} was opened before this process was forked", path=path,
            hint="open the store in the process that writes it",
        )  # fmt: skip

    @contextmanager
    def _writing(self) -> Iterator[State]:
        """The state of a store that may be written, locked."""
        state = self._require_writer()
        with state.lock:
            if state.journal is not None:
                state.journal.require_sound()
            yield state

    def _ask(self, question: Callable[[View], T]) -> T:
        self._require_open()
        state = self._state
        with state.lock:
            known = len(state.forest.damaged)
            while True:
                try:
                    answer = question(self._view)
                except Damaged:
                    continue  # the forest knows it from now on
                damaged = len(state.forest.damaged) > known
                if self._lock is not None or not damaged or not state.catalogue.is_behind():
                    return answer
                # The writer has replaced what this reader wanted to read.
                opening.reload(state)
                known = 0

    def _now(self, now: Any) -> int:
        return self._state.now() if now is None else to_micros(now, "now")

    def _acknowledge(self, newest: int | None) -> None:
        """After some events went into the buffer: makes them safe, and seals what is due.

        Where events are as old as the clock says, a window is sealed when it is over. Old logs
        bring one window after the other: those are sealed together, each time that a window of
        the clock is over or that many counts are in memory. So are late events, which wait for
        each other through a window of the next level, a day where windows are minutes.
        """
        self._drain()
        state = self._state
        by_arrivals = state.settings.window is None
        entries = state.buffer.entries
        full = entries > state.settings.entries
        if not (by_arrivals or full or (newest is not None and newest >= self._alarm)):
            return
        # Events from the future wait for the clock, and nothing is looked for until it is there.
        now = state.now()
        if self._next_seal == FIRST:
            self._wait(now)  # the first events of a log are not sealed before the others come
        many = now >= self._alarm and (now >= self._next_seal or entries > _TOGETHER)
        if by_arrivals or full or many:
            try:
                if full:
                    self.seal()
                late = now >= self._next_late
                self._seal_due(now, late=late)
                if late and not by_arrivals:
                    day = state.levels[min(1, len(state.levels) - 1)]
                    self._next_late = day.begin(now) + day.span
            except BloomtideError as error:
                # The events are safe in the journal, so this is no failure of theirs.
                self._note_failure(error.message)

    def _seal_due(self, now: int, *, late: bool = True) -> int:
        state = self._state
        sealed = seal_segments(state, due_segments(state, now, late=late))
        self._wait(now)
        if sealed:
            state.failure = None
            if self._compacter is not None:
                self._compacter.wake()
        return sealed

    def _wait(self, now: int) -> None:
        """Until the next window is over, by the events and by the clock."""
        settings, newest = self._state.settings, self._state.buffer.newest
        if settings.window is not None and newest is not None:
            span = settings.ladder[1]
            closed = min(newest, now) - settings.lateness
            self._alarm = closed - closed % span + span + settings.lateness
            self._next_seal = now - now % span + span

    def _drain(self) -> None:
        """Writes the records of all events so far to the journal, unless the caller keeps them."""
        if self._state.keep is None and self._state.journal is not None:
            self._state.journal.append(self._state.buffer.take_journal())

    def _register_journal(self, journal: Log) -> None:
        """Goes on in a new journal if anything was added: the catalogue knows all of it, so that
        no event can be taken away unnoticed."""
        if journal.size != self._state.catalogue.journal["bytes"]:
            with suppress(BloomtideError):
                self.checkpoint()
                return
        if journal.failed is None:
            self.flush()

    def _compact_now(self) -> None:
        state = self._state
        with state.compacting:
            now = state.now()
            compact.roll_up(state, now, None)
            compact.drop_expired(state, now)

    def _note_failure(self, message: str) -> None:
        self._state.failure = message

    def _bytes(self) -> int:
        return sum(entry.bytes for entry in self._state.forest.entries.values())
