"""`Ledger`: a directory that remembers changes: a snapshot, and a journal of what came after it.

    manifest               which of the files below count; its rename is the commit point
    snapshot-<sequence>-…  a directory with what its owner wrote, complete
    journal-<sequence>     the records behind it (see journal.py)
    lock                   held by the one process that has it open, with its id

The owner replays the records on top of the snapshot, then appends a record for each change. Once
`sync` has returned, what was appended before is there after a power cut; `replay` gives it back
once and in order. `rewrite` makes a snapshot of what its owner holds now and forgets the records it
replaces; the journal goes on in a new file meanwhile, so that a rewrite that fails loses nothing.

After a write or a sync that failed nobody knows what is on the disk, and asking again may answer
"all is well" without it being so. So the first failure is the last word: `append` is refused from
then on, until the directory is opened again and what is really there has been read.

One thread appends; `sync`, the `poll` of a rewrite and the second step of one in two steps may run
in another and do not hold it up.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Self

from bloomtide import system
from bloomtide.durable.disk import TEMPORARY, Disk
from bloomtide.durable.lock import WriterLock
from bloomtide.durable.policy import Sync, require_sync
from bloomtide.errors import ClosedError, JournalError, StorageError
from bloomtide.store import journal
from bloomtide.store.manifest import Manifest
from bloomtide.store.rewriting import Rewriting

Write = Callable[[Path], object]
"""Writes the files of a snapshot into a directory."""
Payload = bytes
"""What a record holds; a name of its own, since `Ledger.bytes` is a number."""


class Ledger:
    """A directory of changes, open for writing."""

    sync_mode: Sync
    path: Path
    sequence: int
    """The number of the last record; 0 before the first one."""
    cut: int
    """Bytes of a torn tail that were cut when it was opened."""
    failed: str | None
    """Why nothing more is taken; None while all is well."""

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, sync: Sync = "everysec", disk: Disk | None = None
    ) -> Self:
        """Opens the directory, or makes it; refuses one that another process has open.

        A torn tail is cut. A journal that is damaged before its end is refused.
        """
        require_sync(sync)
        system.require_posix("a monitor or server with a directory", lacks="fork")
        disk = disk or Disk()
        directory = Path(path)
        disk.make_directory(directory)
        lock = WriterLock(directory / "lock", hint="stop that process; a ledger has one writer")
        try:
            return cls(directory, sync, disk, lock)
        except BaseException:
            lock.release()
            raise

    def __init__(self, path: Path, sync: Sync, disk: Disk, lock: WriterLock) -> None:
        """Use `open`."""
        self._handle = -1
        self.path = path
        self.sync_mode = sync
        self.failed = None
        self.cut = 0
        self._disk = disk
        self._lock = lock
        self._manifest = Manifest.read(path) or self._create()
        self._rewriting: Rewriting | None = None
        self._unsynced = False
        self._clean_at: float | None = None
        # The handle is exchanged and closed only by who holds this; `append` does not wait for it.
        self._syncing = threading.Lock()
        self._remove_others()
        self._read_journals()

    @property
    def snapshot(self) -> Path | None:
        """The directory of the newest snapshot; None before the first one."""
        name = self._manifest.snapshot
        return None if name is None else self.path / name

    @property
    def bytes(self) -> int:
        """Bytes of the journals behind the snapshot."""
        return self._older + self._newest

    @property
    def snapshot_sequence(self) -> int:
        """The number of the last record that the snapshot holds."""
        return self._manifest.sequence

    def replay(self) -> Iterator[tuple[int, Payload]]:
        """The records behind the snapshot, with their numbers."""
        for name in self._manifest.journals:
            path = self.path / name
            yield from journal.records(path, journal.read(path), self._manifest.sequence)

    def append(self, payload: Payload) -> int:
        """Writes a record and answers its number. It is safe only after a `sync`."""
        self._require_sound()
        record = journal.pack(self._mark, self.sequence + 1, payload)
        with self._last_word():
            self._disk.append(self._handle, self._journal, record)
        self.sequence += 1
        self._newest += len(record)
        self._unsynced = True
        return self.sequence

    def sync(self) -> None:
        """Everything appended before this call is on the disk when it returns."""
        with self._syncing:
            self._sync()

    def due(self, now: float) -> bool:
        """Must the owner call `sync` now? `now` is a clock in seconds, asked a few times each."""
        if not self._unsynced or self.failed is not None or self.sync_mode == "no":
            self._clean_at = now
            return False
        if self.sync_mode == "always" or self._clean_at is None:
            return True
        return not 0 <= now - self._clean_at < 1.0

    def rewrite(self, write: Write) -> None:
        """Makes a snapshot by `write(directory)`, of all that was appended; forgets the rest."""
        self.begin_rewrite()(write)

    def begin_rewrite(self) -> Callable[[Write], None]:
        """The same in two steps. The snapshot will hold what was appended before this call.

        The answer writes it, in any thread: meanwhile records are appended as ever.
        """
        return partial(self._write_snapshot, *self._begin())

    def _write_snapshot(self, directory: Path, sequence: int, write: Write) -> None:
        try:
            self._disk.make_directory(directory)
            write(directory)
            self._disk.sync_tree(directory)
            self._disk.sync_directory(self.path)
        except Exception:
            self._disk.remove_tree(directory)
            raise
        self._commit(directory, sequence)

    def rewrite_in_child(self, write: Write) -> Rewriting:
        """The same in a forked process, which holds all memory as it is now; this one goes on.

        Call `poll` on the answer now and then, or `wait`: the snapshot counts only after that.
        """
        directory, sequence = self._begin()
        self._rewriting = Rewriting(
            directory, write, self._disk, self._lock, lambda: self._commit(directory, sequence)
        )
        return self._rewriting

    def close(self) -> None:
        """Syncs, unless it failed before, and gives the directory back."""
        if self._handle < 0:
            return
        if self._rewriting is not None:
            self._rewriting.cancel()
        try:
            with self._syncing:
                if self.failed is None and self._lock.held:
                    self._sync()
        finally:
            os.close(self._handle)
            self._handle = -1
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- opening ------------------------------------------------------------------------------

    def _create(self) -> Manifest:
        """The first journal, then the manifest that names it."""
        if any(self.path.glob("snapshot-*")) or any(
            found.stat().st_size > journal.START for found in self.path.glob("journal-*")
        ):
            raise JournalError(
                f"{self.path} has journals or snapshots but no manifest",
                hint="restore the directory from a backup",
                path=str(self.path), operation="open", offset=None,
            )  # fmt: skip
        name = self._start_journal(1)
        manifest = Manifest(None, 0, (name,))
        manifest.write(self.path, self._disk)
        return manifest

    def _start_journal(self, first: int) -> str:
        name = f"journal-{first:020d}"
        self._disk.write_file(self.path / name, journal.start_of_file(first))
        return name

    def _remove_others(self) -> None:
        """What a crash left over: files that the manifest does not name."""
        named = {self._manifest.snapshot, *self._manifest.journals}
        for found in sorted(self.path.iterdir()):
            ours = found.name.startswith(("snapshot-", "journal-")) or found.suffix == TEMPORARY
            if found.name in named or not ours or ".cut-" in found.name:
                continue
            if found.is_dir():
                self._disk.remove_tree(found)
            else:
                self._disk.unlink(found)

    def _read_journals(self) -> None:
        """Checks every record, cuts the torn tail, and opens the last file for appending."""
        if (snapshot := self.snapshot) is not None and not snapshot.is_dir():
            raise JournalError(
                f"the snapshot {snapshot} is missing",
                hint="restore the directory from a backup",
                path=str(snapshot), operation="open", offset=None,
            )  # fmt: skip
        self.sequence = self._manifest.sequence
        total = 0
        for number, name in enumerate(self._manifest.journals, start=1):
            path = self.path / name
            found = check(path, self.sequence + 1, last=number == len(self._manifest.journals))
            self.sequence = found.last
            total += found.end
        # Of the journal that is written now, and of those before it: a commit may happen in
        # another thread than `append`, so each number has one writer.
        self._newest, self._older = found.end, total - found.end
        self.cut = found.torn
        self._mark = found.mark
        self._journal = path
        self._handle = self._disk.reopen(path, found.end)

    # --- rewriting ----------------------------------------------------------------------------

    def _begin(self) -> tuple[Path, int]:
        """Goes on in a new journal; answers where the snapshot of all before it will be."""
        self._require_sound()
        if self._rewriting is not None and not self._rewriting.done:
            raise StorageError(
                f"a rewrite of {self.path} is going on already",
                hint="wait until it is done",
                path=str(self.path),
                operation="rewrite",
            )
        # A file of the middle has no torn tail, so it must be on the disk before there is a next.
        self.sync()
        if self.sequence >= self._first_of_journal():
            self._rotate()
        # No two have one name, also if an earlier child still writes after its parent was killed.
        name = f"snapshot-{self.sequence:020d}-{secrets.token_hex(4)}"
        return self.path / name, self.sequence

    def _first_of_journal(self) -> int:
        return int(self._journal.name.rpartition("-")[2])

    def _rotate(self) -> None:
        name = self._start_journal(self.sequence + 1)
        manifest = self._manifest
        journals = (*manifest.journals, name)
        with self._syncing:
            with self._last_word():
                self._replace(Manifest(manifest.snapshot, manifest.sequence, journals))
                path = self.path / name
                handle = self._disk.reopen(path, journal.START)
            os.close(self._handle)
            self._handle, self._journal = handle, path
            self._mark = journal.scan(path, journal.read(path)).mark
            self._older += self._newest
            self._newest = journal.START

    def _commit(self, directory: Path, sequence: int) -> None:
        """The snapshot counts, and the journals it replaces are gone."""
        old = self._manifest
        kept = tuple(name for name in old.journals if int(name.rpartition("-")[2]) > sequence)
        with self._last_word():
            self._replace(Manifest(directory.name, sequence, kept))
        gone = [self.path / name for name in old.journals if name not in kept]
        self._older -= sum(path.stat().st_size for path in gone if path != self._journal)
        for path in gone:
            self._disk.unlink(path)
        if old.snapshot is not None:
            self._disk.remove_tree(self.path / old.snapshot)

    def _replace(self, manifest: Manifest) -> None:
        manifest.write(self.path, self._disk)
        self._manifest = manifest

    # --- failing ------------------------------------------------------------------------------

    def _sync(self) -> None:
        self._require_sound()
        if self._unsynced:
            # Cleared first: what is appended while the disk works is not covered by it.
            self._unsynced = False
            with self._last_word():
                self._disk.sync(self._handle, self._journal)

    def _require_sound(self) -> None:
        if self._handle < 0 or not self._lock.held:
            raise ClosedError(
                f"the ledger in {self.path} is closed", hint="open it again", path=str(self.path)
            )
        if self.failed is not None:
            raise JournalError(
                f"{self.path} takes no more records: {self.failed}",
                hint="everything can still be read; make room and open it again",
                path=str(self.path), operation="write", offset=None,
            )  # fmt: skip

    def _last_word(self) -> _LastWord:
        return _LastWord(self)


class _LastWord:
    """Around each write that must not fail: after one that did, the ledger takes nothing more."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, StorageError):
            self._ledger.failed = self._ledger.failed or error.message
            self._ledger._require_sound()


def check(path: Path, expected: int, *, last: bool) -> journal.Scan:
    """What the file holds; refuses damage, a gap in the numbers, and a torn tail in the middle."""
    if not path.exists():
        raise journal.damaged(path, 0, "this file is missing")
    found = journal.scan(path, journal.read(path))
    if found.first != expected:
        raise journal.damaged(path, 0, f"it begins with record {found.first}, not {expected}")
    if found.damaged or (found.torn and not last):
        raise journal.damaged(path, found.end, f"record {found.last + 1} is not sound")
    return found
