"""`SharedFiles`: the directory in which the processes of a shared guard meet.

    header.json    whose keys these are; another guard is refused
    attached       a lock that every process shares while it is there
    control        the page of numbers, with a lock beside it
    epoch-0, -1    the locks of the sections
    blind          a lock that is shared by who has written keys that nobody saw, until the end
    build.lock     one builds at a time
    keys-7         the filter of generation 7, a mapped `BloomFilter`
    position       how far the change table was read, by the one who holds follow.lock
    uncertain      keys of commits that failed, as far as anybody knows

A number of the page is read by one load of a word, without a lock; it is changed with the lock
held, in an order in which a process that is killed between any two leaves no lie. Everything but
the header is worth something only while somebody is attached; the first to come begins anew. All
locks are the system's, so a process that dies leaves none.
"""

from __future__ import annotations

import json
import mmap
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bloomtide import system
from bloomtide._core import BloomFilter, replace_file
from bloomtide.errors import IncompatibleError, ParameterError, SnapshotError, StorageError
from bloomtide.format import pack_json, read_json
from bloomtide.guard.filter.locks import FileLock, SharedSections
from bloomtide.guard.filter.memory import Numbers, Word
from bloomtide.guard.writes.transaction import Key

FOLLOWS = "follows"
"""How other writers are followed: may change while nobody is attached, but is the same for all who
are, since each of them has to notice when nobody follows any more."""
_SIZE = mmap.PAGESIZE
_REASON = 1024
"""Where the text begins that says why the keys are unknown: its length, then UTF-8."""
_PATIENCE = 60.0
"""Seconds that a build waits for commits that are under way."""


class SharedFiles(Numbers):
    """One process's hold on the directory: see `Memory` for what else its methods mean."""

    room = 2.0
    """Mapped filters cannot grow."""

    def __init__(self, directory: str | os.PathLike[str], subject: Mapping[str, Any]) -> None:
        system.require_posix("a shared guard")
        self.directory = Path(directory)
        self._mapped: dict[int, BloomFilter] = {}
        self._follows: FileLock | None = None
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._map_page()
            self._attached = FileLock(self.directory / "attached")
            self._open_locks()
        except OSError as error:
            raise StorageError(
                f"cannot use {self.directory} for a shared guard: {error.strerror}",
                hint="give a directory that all processes may write to",
                path=str(self.directory), operation="open",
            ) from error  # fmt: skip
        with self.lock():
            # All come and go with this lock held, so who gets the other one alone is the first.
            first = self._attached.try_take()
            self._check_header(subject, first=first)
            if first:
                self._page[:] = bytes(_SIZE)
                self._clean()
            self._attached.take(shared=True)

    def _map_page(self) -> None:
        file = os.open(self.directory / "control", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            if os.fstat(file).st_size < _SIZE:
                os.ftruncate(file, _SIZE)
            self._page = mmap.mmap(file, _SIZE)
        finally:
            os.close(file)
        self.words = memoryview(self._page).cast("Q")

    def _open_locks(self) -> None:
        self._across = FileLock(self.directory / "control.lock")
        self._within = threading.Lock()
        self.sections = SharedSections(self.directory, lambda: self.words[Word.EPOCH])
        self._blind = FileLock(self.directory / "blind")

    def _check_header(self, subject: Mapping[str, Any], *, first: bool) -> None:
        path = self.directory / "header.json"
        written = pack_json("shared guard", subject)
        if not path.exists():
            replace_file(path, written)
            return
        try:
            found = read_json(path.read_bytes(), "shared guard", path)
        except SnapshotError as error:
            error.hint = "give another directory, or delete this one"
            raise
        expected = read_json(written, "shared guard", path)
        for field in expected | found:
            changed = found.get(field) != expected.get(field)
            if changed and not (first and field == FOLLOWS):
                raise IncompatibleError(
                    f"{self.directory} belongs to a guard with another `{field}`: "
                    f"{found.get(field)} and not {expected.get(field)}",
                    hint="give each guard a directory of its own, or delete this one",
                    field=field, expected=expected.get(field), got=found.get(field),
                )  # fmt: skip
        if found != expected:
            replace_file(path, written)

    # --- the page -----------------------------------------------------------------------------

    @contextmanager
    def lock(self) -> Iterator[memoryview[int]]:
        """No other thread or process changes any number meanwhile."""
        with self._within, self._across.held():
            yield self.words

    @property
    def reason(self) -> str:
        """Why the keys are unknown; empty if they are not."""
        length = int.from_bytes(self._page[_REASON : _REASON + 2], "little")
        return self._page[_REASON + 2 : _REASON + 2 + length].decode(errors="replace")

    @reason.setter
    def reason(self, text: str) -> None:
        data = text.encode(errors="replace")[: _SIZE - _REASON - 2]
        self._page[_REASON : _REASON + 2 + len(data)] = len(data).to_bytes(2, "little") + data

    # --- generations --------------------------------------------------------------------------

    def _path(self, number: int) -> Path:
        return self.directory / f"keys-{number}"

    def make(self, number: int, capacity: int, error_rate: float) -> BloomFilter:
        made = BloomFilter.open(self._path(number), capacity, error_rate, mode="c")
        self._mapped[number] = made
        return made

    def filter(self, number: int) -> BloomFilter | None:
        """None also for one that cannot be opened."""
        try:
            if number not in self._mapped:
                self._mapped[number] = BloomFilter.open(self._path(number), mode="r+")
            return self._mapped[number]
        except (StorageError, SnapshotError):
            return None

    def keep_only(self, *numbers: int) -> None:
        """Lets go of all other generations. Who is asking one at this moment can finish."""
        for number in [number for number in self._mapped if number not in numbers]:
            del self._mapped[number]

    def remove(self, number: int) -> None:
        """Deletes the file; a process that has it mapped keeps it until it lets go."""
        self._path(number).unlink(missing_ok=True)

    @contextmanager
    def building(self) -> Iterator[None]:
        lock = FileLock(self.directory / "build.lock")
        try:
            lock.take()
            yield
        finally:
            lock.close()

    def is_building(self) -> bool:
        """Whether a builder lives."""
        lock = FileLock(self.directory / "build.lock")
        try:
            return not lock.try_take()
        finally:
            lock.close()

    def settle(self, begin: Callable[[], None]) -> None:
        """Makes a new generation known, and waits for commits that do not know it."""
        self.sections.settle(begin, _PATIENCE)

    def hold_blind(self, blind: bool) -> None:
        if blind:
            self._blind.take(shared=True)
        else:
            self._blind.release()

    def is_blind(self) -> bool:
        lock = FileLock(self.directory / "blind")
        try:
            return not lock.try_take()
        finally:
            lock.close()

    def _clean(self) -> None:
        for pattern in ("keys-*", "position*", "uncertain"):
            for file in self.directory.glob(pattern):
                file.unlink(missing_ok=True)

    # --- what else is shared ------------------------------------------------------------------

    def remember(self, keys: Iterable[Key]) -> None:
        lines = [json.dumps(key.hex() if isinstance(key, bytes) else [key]) for key in keys]
        with self.lock(), (self.directory / "uncertain").open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def remembered(self) -> list[Key]:
        try:
            text = (self.directory / "uncertain").read_text()
        except FileNotFoundError:
            return []
        found = {line: json.loads(line) for line in text.splitlines()}
        return [bytes.fromhex(key) if isinstance(key, str) else key[0] for key in found.values()]

    @property
    def position(self) -> str | None:
        try:
            return (self.directory / "position").read_text()
        except FileNotFoundError:
            return None

    @position.setter
    def position(self, text: str | None) -> None:
        path = self.directory / "position"
        if text is None:
            path.unlink(missing_ok=True)
            return
        # No fsync: after a crash of the machine nobody is attached, and all begins anew.
        new = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        new.write_text(text)
        new.replace(path)

    def may_follow(self) -> bool:
        """Once it is this process that reads changes, it stays so until it detaches."""
        if self._follows is None:
            lock = FileLock(self.directory / "follow.lock")
            if lock.try_take():
                self._follows = lock
            else:
                lock.close()
        return self._follows is not None

    def follow_no_more(self) -> None:
        """Another process may do it."""
        if self._follows is not None:
            self._follows.close()
            self._follows = None

    # --- coming and going ---------------------------------------------------------------------

    def after_fork(self) -> None:
        """In the child: locks and mappings of its own. It is attached by what it inherited."""
        self._across.close()
        self.sections.forget()
        self._blind.close()
        self._open_locks()
        self.follow_no_more()  # it is up to the parent
        self._mapped = {}

    def detach(self) -> None:
        """Lets go of everything; the last one removes the filters."""
        with self.lock():
            self.sections.close()
            self._blind.close()
            self._mapped.clear()
            if self._attached.try_take():
                self._clean()
            self._attached.close()
            self.follow_no_more()
        self._across.close()


def file_of(database: str | None) -> str:
    """Where a SQLite database is, for processes with other working directories, too."""
    if not database or ":memory:" in database or "mode=memory" in database:
        raise ParameterError(
            "`shared` needs a database that other processes see, too",
            hint="use a file; a database in memory belongs to one process",
            name="shared", got=database, allowed="left out for a database in memory",
        )  # fmt: skip
    return os.path.realpath(database.removeprefix("file:"))
