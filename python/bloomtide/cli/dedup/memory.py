"""What remembers the lines: a filter, alone or with a set on disk behind it, or a recent filter.

Each has `prepare`, which may run ahead in another thread, and `judge`, which answers the lines to
be kept of what was prepared. `written` is called when they were written. `save` puts the state
into its file.
"""

from __future__ import annotations

import contextlib
import secrets
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bloomtide import BloomFilter, Dedup, ScalableBloomFilter, load
from bloomtide._core import parse_duration
from bloomtide.cli.console import CommandError, ReaderGoneError
from bloomtide.cli.files import lock_alone, making
from bloomtide.errors import (
    BloomtideError,
    IncompatibleError,
    KindError,
    NotASnapshotError,
    OverfullWarning,
    SnapshotError,
    UnsealedError,
)

if TYPE_CHECKING:
    from bloomtide.recent import RecentFilter
    from bloomtide.store.exact import ExactSet

AUTO = 1 << 20
"""Lines that a filter of unknown size begins with."""
ERROR = 1e-4
"""The share of new lines that may be dropped, if nothing else is said."""
COMMIT = 1.0
"""Seconds between two commits of the set on disk."""
EXACT = ".exact"
"""What the name of the set on disk has behind that of the state."""
EXACT_SEED = int.from_bytes(b"BLMX", "big") << 32
"""Of the seed of a state that has a set; the rest is random, and the set has the same. So a state
tells that it has one, also when that is gone, and neither is taken for that of another."""

Filter = BloomFilter | ScalableBloomFilter


@dataclass(frozen=True, slots=True)
class Size:
    """How large a filter shall be; None where nothing was said."""

    items: int | None = None
    """0 for `auto`."""
    error: float | None = None
    expected: int = 0
    """Lines of the input, as far as its files tell; a filter without a size begins with them."""

    def flat(self, *, seed: int = 0) -> Filter:
        """A filter of that size."""
        error = self.error or ERROR
        if self.items:
            return BloomFilter(self.items, error, seed=seed)
        return ScalableBloomFilter(max(AUTO, self.expected), error, seed=seed)

    def recent(self, within: str) -> RecentFilter:
        """A filter that forgets."""
        from bloomtide.recent import RecentFilter

        # A line that is late by as much is judged by its own time, too.
        items, error = self.items or AUTO, self.error or ERROR
        return RecentFilter(items, error, within=within, lateness=within)

    def require_same(self, found: Any, file: Path) -> None:
        """Refuses a state that was made for another size than the one asked for now."""
        grows = not isinstance(found, BloomFilter)
        same_items = grows if self.items == 0 else self.items in {None, found.capacity}
        if not same_items:
            made = "auto" if isinstance(found, ScalableBloomFilter) else f"{found.capacity}"
            raise CommandError(
                f"{file} was made with --items {made}", hint="leave it out, or use a new state"
            )
        if self.error not in {None, found.error_rate}:
            raise CommandError(
                f"{file} was made with --error {found.error_rate:g}",
                hint="leave it out, or use a new state",
            )


class Flat:
    """A filter: all work on lines is done by the core."""

    def __init__(self, filter: Filter, options: dict[str, Any]) -> None:
        self.filter = filter
        self.lines = Dedup(filter, **options)
        self.prepare = self.lines.hash

    def judge(self, prepared: Any) -> bytes:
        """The lines to be kept. A filter that is far too small by then ends the run before they are
        written: it would drop more and more new lines."""
        before = self.lines.tally
        with overfull_is_an_error():
            try:
                return self.lines.filter(prepared)
            except OverfullWarning as found:
                raise _too_small(found, before[0]) from None

    def written(self) -> None:
        """Nothing is left to do."""

    def save(self, file: Path) -> None:
        """As every filter is saved."""
        self.filter.save(file)


class Exact:
    """A filter, and a set on disk that has the last word."""

    def __init__(self, filter: Filter, exact: ExactSet, options: dict[str, Any]) -> None:
        self.filter = filter
        self.exact = exact
        self.committed = time.monotonic()
        self.lines = Dedup(**options)

    def prepare(self, data: bytes | None) -> bytes | None:
        """Nothing: the keys are taken when they are judged."""
        return data

    def judge(self, data: bytes | None) -> bytes:
        """The lines to be kept of these bytes; None at the end of a file."""
        header, keys, _ = self.lines.take(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OverfullWarning)  # the set has the last word
            self.filter.add_many(keys)
        # One call in order, new or not: a key may repeat one that is new in the same chunk.
        return header + self.lines.keep(self.exact.add_many(keys))

    def written(self) -> None:
        """Commits now and then, and never before the lines were written.

        Killed between the two, the lines come again and are not lost.
        """
        if time.monotonic() - self.committed > COMMIT:
            self.exact.flush()
            self.committed = time.monotonic()

    def save(self, file: Path) -> None:
        """The set first: its lines were written, and who waits for the state opens the set next."""
        self.exact.close()
        self.filter.save(file)


class Recent:
    """A filter that forgets, by the clock or by a time in the lines."""

    def __init__(self, filter: RecentFilter, options: dict[str, Any]) -> None:
        self.filter = filter
        self.timed = options["time"] is not None
        self.lines = Dedup(**options)

    def prepare(self, data: bytes | None) -> bytes | None:
        """Nothing: the keys are taken when they are judged."""
        return data

    def judge(self, data: bytes | None) -> bytes:
        """The lines to be kept of these bytes; None at the end of a file."""
        header, keys, times = self.lines.take(data)
        at = self._instants(times) if self.timed and keys else None
        # Without refreshing: who comes again and again is shown once in each span of time.
        new = self.filter.add_many(keys, at, refresh=False)
        return header + self.lines.keep(new.tolist())

    def _instants(self, times: list[float | None]) -> Any:
        """A line without a time came when the line before it did."""
        import numpy as np

        known = (found for found in (self.filter.time, *times) if found is not None)
        latest = next(known, None) or time.time()
        filled = []
        for found in times:
            latest = latest if found is None else found
            filled.append(latest)
        return np.array(filled)

    def written(self) -> None:
        """Nothing is left to do."""

    def save(self, file: Path) -> None:
        """As a file of its own kind."""
        self.filter.save(file)


Memory = Flat | Exact | Recent


@contextlib.contextmanager
def remembering(
    state: Path | None, size: Size, within: str | None, exact: bool, options: dict[str, Any]
) -> Iterator[Memory]:
    """What remembers, made or loaded; a state of another kind is refused here."""
    with contextlib.ExitStack() as stack:
        if within is not None:
            yield Recent(_recent(state, size, within, stack), options)
            return
        if not exact:
            filter = size.flat() if state is None else _without_set(state, size, stack)
            yield Flat(filter, options)
            return
        filter = size.flat() if state is None else _with_set(state, size, stack)
        # Committed after the lines were written, never before.
        with _opened_set(state, filter.seed, stack) as kept:
            try:
                yield Exact(filter, kept, options)
            except BaseException as problem:
                if not isinstance(problem, ReaderGoneError):
                    kept.discard()
                raise


@contextlib.contextmanager
def overfull_is_an_error() -> Iterator[None]:
    """Where a filter that is far too small must not go on."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", OverfullWarning)
        yield


def _too_small(found: OverfullWarning, lines: int) -> CommandError:
    return CommandError(
        f"--items {found.capacity:,} is far too small: {lines:,} lines were filtered and written,"
        f" then there were more than {2 * found.capacity:,} different ones",
        hint="the lines after those were not written, and a state is as it was; give --items auto"
        " or a larger number, with a new state",
    )


def _set_of(state: Path) -> Path:
    """Where the set on disk is."""
    return state.with_name(state.name + EXACT)


def _opened_set(state: Path | None, owner: int, stack: contextlib.ExitStack) -> ExactSet:
    """The set, which must be that of the state, and whole; one in a temporary folder without."""
    from bloomtide.store.exact import ExactSet
    from bloomtide.store.sealed import SealedSet

    if state is None:
        import tempfile

        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bloomtide-dedup-"))
        return ExactSet(Path(folder) / "lines", batch=1 << 40)
    file = _set_of(state)
    hint = f"restore {state} and {file} from copies of one time, or remove both to start anew"
    try:
        return SealedSet(file, owner, batch=1 << 40)
    except IncompatibleError:
        raise CommandError(
            f"{file} is the set of another state, not of {state}", hint=hint
        ) from None
    except SnapshotError as problem:
        raise CommandError(problem.message, hint=hint) from None


def _with_set(state: Path, size: Size, stack: contextlib.ExitStack) -> Filter:
    """The filter of a state with a set. That is made first, so a state without one has lost it."""
    from bloomtide.store.sealed import SealedSet

    file = _set_of(state)

    def make() -> None:
        _require_no_set(state, file)
        _remove_set(file)
        made = size.flat(seed=EXACT_SEED | secrets.randbits(32))
        SealedSet.make(file, made.seed)
        made.save(state)

    found = _flat(state, size, make, stack, exact=file)
    if not _has_set(found):
        raise CommandError(
            f"{state} was made without --exact", hint="leave it out, or use a new state"
        )
    if not file.exists():
        raise _set_is_gone(state, file)
    _require_one_name(file)
    return found


def _without_set(state: Path, size: Size, stack: contextlib.ExitStack) -> Filter:
    """The filter of a state that has no set: what went by a set would come again."""
    file = _set_of(state)

    def make() -> None:
        _require_no_set(state, file)
        size.flat().save(state)

    found = _flat(state, size, make, stack)
    if _has_set(found):
        if not file.exists():
            raise _set_is_gone(state, file)
        raise CommandError(
            f"{state} was made with --exact, and its set must learn of every line",
            hint="give --exact again, or use a new state",
        )
    if told := found.stats().warnings:
        raise CommandError(
            f"{state} is full: {told[0]}",
            hint="start a new state with --items auto or a larger number",
        )
    return found


def _has_set(state: Filter) -> bool:
    return state.seed >> 32 == EXACT_SEED >> 32


def _begin(
    state: Path, make: Callable[[], None], stack: contextlib.ExitStack, exact: Path | None
) -> None:
    """The state, made if missing, and locked until the end.

    Two runs may begin at once, so one makes the state and the other waits. Whoever has the lock may
    also have failed and removed the state: then it is made again.
    """
    ours = None
    while True:
        if not state.exists():
            with making(state):
                if not state.exists():
                    make()
                    ours = state.stat().st_ino
        try:
            lock = lock_alone(state)
        except CommandError:
            if state.exists():
                raise
            continue
        if lock is None:
            raise _in_use(state)
        stack.enter_context(lock)
        break
    _require_one_name(state)
    if ours is not None:
        stack.push(_undo(state, ours, exact))


def _undo(state: Path, ours: int, exact: Path | None) -> Callable[..., bool]:
    """A run that made the state, fails and put nothing into it removes it again."""

    def undo(_: object, problem: BaseException | None, __: object) -> bool:
        if problem is None or not state.exists() or state.stat().st_ino != ours:
            return False
        # A file that cannot be looked at or removed hides no error.
        with contextlib.suppress(OSError, BloomtideError):
            if exact is None or _is_empty(exact):
                state.unlink()
                if exact is not None:
                    _remove_set(exact)
        return False

    return undo


def _require_one_name(file: Path) -> None:
    """A file with two names is two after the first run: the other name keeps the old one."""
    if file.stat().st_nlink > 1:
        raise CommandError(
            f"{file} has another name, a hard link, which would keep the old state",
            hint=f"use a symbolic link, or make it a file of its own: cp {file} COPY, then mv COPY"
            f" {file}",
        )


def _require_no_set(state: Path, file: Path) -> None:
    """Refuses a set that has lost its state. An empty one was left by a run that was killed."""
    if file.exists() and not _is_empty(file):
        raise CommandError(f"{file} is there without {state}", hint=f"remove {file} to start anew")


def _remove_set(file: Path) -> None:
    """With the journal that a killed run may have left."""
    for name in (file.name, f"{file.name}-wal", f"{file.name}-shm"):
        file.with_name(name).unlink(missing_ok=True)


def _is_empty(file: Path) -> bool:
    """Whether a set on disk has no line."""
    from bloomtide.store.exact import ExactSet

    with ExactSet(file) as kept:
        return next(iter(kept), None) is None


def _set_is_gone(state: Path, file: Path) -> CommandError:
    return CommandError(
        f"{file} is gone: it is the set of the lines that {state} has seen",
        hint=f"restore it from a copy, or remove {state} too and start anew",
    )


def _flat(
    state: Path,
    size: Size,
    make: Callable[[], None],
    stack: contextlib.ExitStack,
    exact: Path | None = None,
) -> Filter:
    """The filter in the file, which is locked until the end."""
    _begin(state, make, stack, exact)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OverfullWarning)  # looked for, where it matters
            found = load(state)
    except UnsealedError:
        raise _in_use(state) from None
    except (KindError, NotASnapshotError):
        raise CommandError(
            f"{state} is no state of `dedup`", hint="one made with --within needs --within again"
        ) from None
    if not isinstance(found, BloomFilter | ScalableBloomFilter):
        raise CommandError(
            f"{state} is no state of `dedup`: it holds a {type(found).__name__}",
            hint="a state is a bloom or a scalable filter",
        )
    size.require_same(found, state)
    return found


def _recent(
    state: Path | None, size: Size, within: str, stack: contextlib.ExitStack
) -> RecentFilter:
    made = size.recent(within)
    if state is None:
        return made
    _begin(state, lambda: made.save(state), stack, None)
    try:
        found = type(made).load(state)
    except (KindError, NotASnapshotError):
        raise CommandError(
            f"{state} is no state of `dedup --within`",
            hint="leave it out, or use a new state",
        ) from None
    if found.within != parse_duration(within, "within"):
        raise CommandError(
            f"{state} was made with --within {found.within:g}s", hint="use a new state"
        )
    size.require_same(found, state)
    return found


def _in_use(state: Path) -> CommandError:
    return CommandError(f"other processes have {state} open", hint="use a state of its own")
