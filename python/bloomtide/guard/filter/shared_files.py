"""`SharedFiles`: the directory in which the processes of a shared guard meet.

    header.json    whose keys these are; another guard is refused
    attached       a lock that every process shares while it is there
    control        the page of numbers, with a lock beside it
    epoch-0, -1    the locks of the sections
    build.lock     one builds at a time
    keys-7         the filter of generation 7, a mapped `BloomFilter`
    position       how far the change table was read, by the one who holds follow.lock
    uncertain      keys of commits that failed, as far as anybody knows

Everything but the header is worth something only while somebody is attached; the first to come
begins anew. All locks are the system's, so a process that dies leaves none.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from bloomtide import system
from bloomtide._core import BloomFilter, replace_file
from bloomtide.errors import IncompatibleError, ParameterError, SnapshotError, StorageError
from bloomtide.format import pack_json, read_json
from bloomtide.guard.filter.locks import FileLock, SharedSections
from bloomtide.guard.filter.shared_page import SharedPage, Word
from bloomtide.guard.writes.transaction import Key

if TYPE_CHECKING:
    from sqlalchemy import Column, Engine

_FOLLOWS = "follows"
"""How other writers are followed: may change while nobody is attached, but is the same for all who
are, since each of them has to notice when nobody follows any more."""
_attached: WeakSet[SharedFiles] = WeakSet()


class SharedFiles:
    """One process's hold on the directory."""

    def __init__(self, directory: str | os.PathLike[str], subject: Mapping[str, Any]) -> None:
        system.require_posix("a shared guard")
        self.directory = Path(directory)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self.control = SharedPage(self.directory)
        except OSError as error:
            raise StorageError(
                f"cannot use {self.directory} for a shared guard: {error.strerror}",
                hint="give a directory that all processes may write to",
                path=str(self.directory), operation="open",
            ) from error  # fmt: skip
        self._lock = FileLock(self.directory / "attached")
        self.mapped: dict[int, BloomFilter] = {}
        self._follows: FileLock | None = None
        self.on_fork: Callable[[], None] = lambda: None
        with self.control.lock():
            # All come and go with this lock held, so who gets the other one alone is the first.
            first = self._lock.try_take()
            self._check_header(subject, first=first)
            if first:
                self.control.clear()
                self._clean()
            self._lock.take(shared=True)
        self._open_sections()
        _attached.add(self)

    def _open_sections(self) -> None:
        words = self.control.words
        self.sections = SharedSections(self.directory, lambda: words[Word.EPOCH])

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
            if changed and not (first and field == _FOLLOWS):
                raise IncompatibleError(
                    f"{self.directory} belongs to a guard with another `{field}`: "
                    f"{found.get(field)} and not {expected.get(field)}",
                    hint="give each guard a directory of its own, or delete this one",
                    field=field, expected=expected.get(field), got=found.get(field),
                )  # fmt: skip
        if found != expected:
            replace_file(path, written)

    # --- generations --------------------------------------------------------------------------

    def path(self, number: int) -> Path:
        return self.directory / f"keys-{number}"

    def make(self, number: int, capacity: int, error_rate: float) -> BloomFilter:
        """The empty filter of a new generation."""
        made = BloomFilter.open(self.path(number), capacity, error_rate, mode="c")
        self.mapped[number] = made
        return made

    def filter(self, number: int) -> BloomFilter:
        """The filter of a generation; `StorageError` if its file is gone."""
        if number not in self.mapped:
            self.mapped[number] = BloomFilter.open(self.path(number), mode="r+")
        return self.mapped[number]

    def keep_only(self, *numbers: int) -> None:
        """Lets go of all other generations. Who is asking one at this moment can finish."""
        for number in [number for number in self.mapped if number not in numbers]:
            del self.mapped[number]

    def remove(self, number: int) -> None:
        """Deletes the file; a process that has it mapped keeps it until it lets go."""
        self.path(number).unlink(missing_ok=True)

    def build_lock(self) -> FileLock:
        """For the one that builds."""
        return FileLock(self.directory / "build.lock")

    def is_building(self) -> bool:
        lock = self.build_lock()
        try:
            return not lock.try_take()
        finally:
            lock.close()

    def _clean(self) -> None:
        for pattern in ("keys-*", "position*", "uncertain"):
            for file in self.directory.glob(pattern):
                file.unlink(missing_ok=True)

    # --- commits that failed ------------------------------------------------------------------

    def remember(self, keys: Iterable[Key]) -> None:
        """Keys that may be committed yet, as far as anybody knows; every generation gets them."""
        lines = [json.dumps(key.hex() if isinstance(key, bytes) else [key]) for key in keys]
        with self.control.lock(), (self.directory / "uncertain").open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def remembered(self) -> list[Key]:
        try:
            text = (self.directory / "uncertain").read_text()
        except FileNotFoundError:
            return []
        found = {line: json.loads(line) for line in text.splitlines()}
        return [bytes.fromhex(key) if isinstance(key, str) else key[0] for key in found.values()]

    # --- the position in the change table -----------------------------------------------------

    def read_position(self) -> str | None:
        try:
            return (self.directory / "position").read_text()
        except FileNotFoundError:
            return None

    def write_position(self, text: str | None) -> None:
        path = self.directory / "position"
        if text is None:
            path.unlink(missing_ok=True)
            return
        # No fsync: after a crash of the machine nobody is attached, and all begins anew.
        new = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        new.write_text(text)
        new.replace(path)

    def may_follow(self) -> bool:
        """Whether this process is the one that reads changes; it stays so until it detaches."""
        if self._follows is None:
            lock = FileLock(self.directory / "follow.lock")
            if lock.try_take():
                self._follows = lock
            else:
                lock.close()
        return self._follows is not None

    # --- coming and going ---------------------------------------------------------------------

    def after_fork(self) -> None:
        """In the child: locks and mappings of its own. It is attached by what it inherited."""
        self.control.after_fork()
        self.sections.forget()
        self._open_sections()
        if self._follows is not None:
            self._follows.close()  # the parent's
            self._follows = None
        self.mapped = {}
        self.on_fork()

    def detach(self) -> None:
        """Lets go of everything; the last one removes the filters."""
        with self.control.lock():
            self.sections.close()
            self.mapped.clear()
            if self._lock.try_take():
                self._clean()
            self._lock.close()
            if self._follows is not None:
                self._follows.close()
        self.control.close()
        _attached.discard(self)


def file_of(database: str | None) -> str:
    """Where a SQLite database is, for processes with other working directories, too."""
    if not database or ":memory:" in database or "mode=memory" in database:
        raise ParameterError(
            "`shared` needs a database that other processes see, too",
            hint="use a file; a database in memory belongs to one process",
            name="shared", got=database, allowed="left out for a database in memory",
        )  # fmt: skip
    return os.path.realpath(database.removeprefix("file:"))


def subject_of(
    engine: Engine, columns: Sequence[Column[Any]], follows: Sequence[str], normal: Any = None
) -> dict[str, Any]:
    """Whose keys a guard holds: what must be the same for all who share them."""
    url, table = engine.url, columns[0].table
    place: list[Any] = [url.get_backend_name(), url.host, url.port, url.database]
    if place[0] == "sqlite":
        place[-1] = file_of(None if url.query.get("mode") == "memory" else url.database)
    else:
        # A socket is named here, and options say which schema comes first.
        place += [url.query.get(name) for name in ("host", "port", "service", "options")]
    return {
        "database": place,
        "table": str(table.fullname),
        "columns": [column.name for column in columns],
        "types": [repr(column.type) for column in columns],
        "normal": normal and _name_of(normal),
        _FOLLOWS: list(follows),
    }


def _name_of(function: Any) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def _fork_all() -> None:
    for files in list(_attached):
        files.after_fork()


system.after_fork_in_child(_fork_all)
