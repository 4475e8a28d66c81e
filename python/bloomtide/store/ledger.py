"""`Ledger`: a directory that remembers changes: a snapshot, and a journal of what came after it.

    manifest               which of the files below count; its rename is the commit point
    snapshot-<sequence>-…  a directory with what its owner wrote, complete
    journal-<sequence>     the records behind it (see durable/log.py)
    lock                   held by the one process that has it open, with its id

The owner replays the records on top of the snapshot, then appends a record for each change. What
was appended is there after a kill of the process, and as `sync` says after a power cut; `replay`
gives it back once and in order. `rewrite` makes a snapshot of what its owner holds now and forgets
the records it replaces; the journal goes on in a new file meanwhile, so that a rewrite that fails
loses nothing.

The first write or sync that fails is the last word, as for every log: `append` is refused from
then on, until the directory is opened again and what is really there has been read.

One thread appends; `sync`, the `poll` of a rewrite and the second step of one in two steps may run
in another and do not hold it up.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Self

from bloomtide import system
from bloomtide._core import RecordScan
from bloomtide.durable.disk import TEMPORARY, Disk
from bloomtide.durable.lock import WriterLock
from bloomtide.durable.log import START, Log, scan
from bloomtide.durable.manifest import read_manifest, write_manifest
from bloomtide.durable.policy import Sync, require_sync
from bloomtide.errors import ClosedError, JournalError, StorageError
from bloomtide.store.rewriting import Rewriting

KIND = "ledger journal"

Write = Callable[[Path], object]
"""Writes the files of a snapshot into a directory."""
Payload = bytes
"""What a record holds; a name of its own, since `Ledger.bytes` is a number."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a ledger consists of: files that it does not name do not exist."""

    snapshot: str | None
    """Name of the directory of the snapshot; None before the first one."""
    sequence: int
    """The number of the last record that the snapshot holds."""
    journals: tuple[str, ...]
    """Names of the journals behind it, oldest first."""

    def write(self, directory: Path, disk: Disk) -> None:
        """Replaces the manifest: the commit point of every change."""
        write_manifest(disk, directory / "manifest", "ledger", asdict(self))

    @classmethod
    def read(cls, directory: Path) -> Manifest | None:
        """The manifest of this directory; None if it has none."""
        hint = "restore the directory from a backup"
        fields = read_manifest(directory / "manifest", "ledger", hint=hint)
        if fields is None:
            return None
        return cls(fields["snapshot"], fields["sequence"], tuple(fields["journals"]))


class Ledger:
    """A directory of changes, open for writing."""

    path: Path
    cut: int
    """Bytes of a torn tail that were cut when it was opened."""

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, sync: Sync = "everysec",
        skip_damaged: bool = False, disk: Disk | None = None,
    ) -> Self:  # fmt: skip
        """Opens the directory, or makes it; refuses one that another process has open.

        A torn tail is cut. A journal that is damaged before its end is refused, unless its owner
        can do without a record: with `skip_damaged` it loses those that are not sound, and no more.
        """
        require_sync(sync)
        system.require_posix("a monitor or server with a directory", lacks="fork")
        disk = disk or Disk()
        directory = Path(path)
        disk.make_directory(directory)
        lock = WriterLock(directory / "lock", hint="stop that process; a ledger has one writer")
        try:
            return cls(directory, sync, disk, lock, skip_damaged=skip_damaged)
        except BaseException:
            lock.release()
            raise

    def __init__(
        self, path: Path, sync: Sync, disk: Disk, lock: WriterLock, *, skip_damaged: bool
    ) -> None:
        """Use `open`."""
        self.path = path
        self._disk = disk
        self._lock = lock
        self._rewriting: Rewriting | None = None
        self._manifest = Manifest.read(path) or self._create(sync)
        self._remove_others()
        self._log = self._read_journals(sync, skip_damaged=skip_damaged)

    @property
    def sequence(self) -> int:
        """The number of the last record; 0 before the first one."""
        return self._log.sequence

    @property
    def log(self) -> Log:
        """The journal that is written now: its policy, its syncs, and whether it failed."""
        return self._log

    @property
    def failed(self) -> str | None:
        """Why nothing more is taken; None while all is well."""
        return self._log.failed

    @property
    def snapshot(self) -> Path | None:
        """The directory of the newest snapshot; None before the first one."""
        name = self._manifest.snapshot
        return None if name is None else self.path / name

    @property
    def bytes(self) -> int:
        """Bytes of the journals behind the snapshot."""
        return self._older + self._log.size

    @property
    def snapshot_sequence(self) -> int:
        """The number of the last record that the snapshot holds."""
        return self._manifest.sequence

    def replay(self) -> Iterator[tuple[int, Payload]]:
        """The records behind the snapshot, with their numbers."""
        for name in self._manifest.journals:
            for sequence, payload in scan(self.path / name, KIND):
                if sequence > self._manifest.sequence:
                    yield sequence, payload

    def append(self, payload: Payload) -> int:
        """Adds a record, as safe as the policy says when this returns; answers its number."""
        if not self._lock.held:
            self._require_open()
        return self._log.append([payload])

    def write(self, payload: Payload) -> int:
        """The same, without a sync: `sync` may then cover many records at once."""
        self._require_open()
        return self._log.write([payload])

    def sync(self) -> None:
        """Everything appended before this call is on the disk when it returns."""
        self._log.sync()

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
        if not self._lock.held:
            self._lock.release()  # closed before, or a fork's copy, which may change nothing
            return
        if self._rewriting is not None:
            self._rewriting.cancel()
        try:
            if self._log.failed is None:
                self._log.sync()
        finally:
            self._log.close()
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- opening ------------------------------------------------------------------------------

    def _create(self, sync: Sync) -> Manifest:
        """The first journal, then the manifest that names it."""
        if any(self.path.glob("snapshot-*")) or any(
            found.stat().st_size > START for found in self.path.glob("journal-*")
        ):
            raise JournalError(
                f"{self.path} has journals or snapshots but no manifest",
                hint="restore the directory from a backup",
                path=str(self.path), operation="open", offset=None,
            )  # fmt: skip
        name = journal_name(1)
        Log.create(self._disk, self.path / name, KIND, "no", []).close()
        manifest = Manifest(None, 0, (name,))
        manifest.write(self.path, self._disk)
        return manifest

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

    def _read_journals(self, sync: Sync, *, skip_damaged: bool) -> Log:
        """Checks every record, cuts the torn tail, and opens the last file for appending."""
        if (snapshot := self.snapshot) is not None and not snapshot.is_dir():
            raise JournalError(
                f"the snapshot {snapshot} is missing",
                hint="restore the directory from a backup",
                path=str(snapshot), operation="open", offset=None,
            )  # fmt: skip
        sequence, self._older = self._manifest.sequence, 0
        *before, last = self._manifest.journals
        for name in before:
            found = check(self.path / name, sequence + 1, skip_damaged=skip_damaged)
            sequence, self._older = (found.next or 1) - 1, self._older + found.size
        found = check(self.path / last, sequence + 1, last=True, skip_damaged=skip_damaged)
        self.cut = found.size - found.end
        return Log.resume(self._disk, self.path / last, sync, found)

    # --- rewriting ----------------------------------------------------------------------------

    def _begin(self) -> tuple[Path, int]:
        """Goes on in a new journal; answers where the snapshot of all before it will be."""
        self._require_open()
        self._log.require_sound()
        if self._rewriting is not None and not self._rewriting.done:
            raise StorageError(
                f"a rewrite of {self.path} is going on already",
                hint="wait until it is done",
                path=str(self.path),
                operation="rewrite",
            )
        # A file of the middle has no torn tail, so it must be on the disk before there is a next.
        self.sync()
        if self.sequence >= _first_of(self._log.path.name):
            self._rotate()
        # No two have one name, also if an earlier child still writes after its parent was killed.
        name = f"snapshot-{self.sequence:020d}-{secrets.token_hex(4)}"
        return self.path / name, self.sequence

    def _rotate(self) -> None:
        before, manifest = self._log, self._manifest
        name = journal_name(self.sequence + 1)
        following = Log.create(
            self._disk, self.path / name, KIND, before.policy, [], first=self.sequence + 1
        )
        try:
            with before.last_word():
                journals = (*manifest.journals, name)
                self._replace(Manifest(manifest.snapshot, manifest.sequence, journals))
        except BaseException:
            following.close()
            raise
        following.syncs, following.sync_seconds = before.syncs, before.sync_seconds
        self._log = following
        self._older += before.size
        before.close()

    def _commit(self, directory: Path, sequence: int) -> None:
        """The snapshot counts, and the journals it replaces are gone."""
        old = self._manifest
        kept = tuple(name for name in old.journals if _first_of(name) > sequence)
        with self._log.last_word():
            self._replace(Manifest(directory.name, sequence, kept))
        gone = [self.path / name for name in old.journals if name not in kept]
        self._older -= sum(path.stat().st_size for path in gone if path != self._log.path)
        for path in gone:
            self._disk.unlink(path)
        if old.snapshot is not None:
            self._disk.remove_tree(self.path / old.snapshot)

    def _replace(self, manifest: Manifest) -> None:
        manifest.write(self.path, self._disk)
        self._manifest = manifest

    def _require_open(self) -> None:
        """Not after `close`, and not in a process that was forked off."""
        if not self._lock.held:
            raise ClosedError(
                f"the ledger in {self.path} is closed", hint="open it again", path=str(self.path)
            )


def journal_name(first: int) -> str:
    """The file whose first record has this number."""
    return f"journal-{first:020d}"


def _first_of(name: str) -> int:
    return int(name.rpartition("-")[2])


def check(
    path: Path, expected: int, *, last: bool = False, skip_damaged: bool = False
) -> RecordScan:
    """Goes through the file; refuses damage, a gap in the numbers, a torn tail but of the last."""
    if not path.exists():
        raise damaged(path, 0, "this file is missing")
    found = scan(path, KIND)
    first = found.next
    found.finish()
    if first is None:
        raise damaged(path, 0, "the start of the file is not sound")
    if skip_damaged:
        return found
    if first != expected:
        raise damaged(path, 0, f"it begins with record {first}, not {expected}")
    if found.damaged is not None or (found.end < found.size and not last):
        offset = found.end if found.damaged is None else found.damaged
        raise damaged(path, offset, "the record there is not sound")
    return found


def damaged(path: Path, offset: int, what: str) -> JournalError:
    """The error for a file that must not be trusted from this offset on."""
    return JournalError(
        f"{path} is damaged at offset {offset}: {what}",
        hint=f"restore a backup, or cut it there: bloomtide serve --repair {path.parent}",
        path=str(path),
        operation="read",
        offset=offset,
    )
