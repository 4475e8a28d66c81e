"""Mends a ledger whose journal is damaged: cuts it at the first record that is not sound.

What is cut is kept beside it under a name that ends in `.cut-<offset>`, because acknowledged
changes may be in it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from bloomtide.durable.disk import Disk
from bloomtide.durable.lock import WriterLock
from bloomtide.durable.log import Log, scan
from bloomtide.errors import JournalError, StorageError
from bloomtide.store.ledger import KIND, Manifest, check, journal_name


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What `repair` did."""

    path: str
    sequence: int
    """The number of the last record that is left."""
    bytes_cut: int
    """0 if there was nothing to mend."""
    offset: int | None
    """Where the damage began, in the first file of `kept`."""
    kept: tuple[str, ...]
    """Files that hold what was cut."""


def repair(path: str | os.PathLike[str], *, disk: Disk | None = None) -> RepairReport:
    """Cuts a damaged journal; changes nothing if it is sound. Nobody may have the ledger open."""
    directory = Path(path)
    disk = disk or Disk()
    if not directory.is_dir():
        raise StorageError(
            f"there is no directory {directory}", hint="check the path",
            path=str(directory), operation="repair",
        )  # fmt: skip
    lock = WriterLock(directory / "lock", hint="stop that process first")
    try:
        return _repair(directory, disk)
    finally:
        lock.release()


def _repair(directory: Path, disk: Disk) -> RepairReport:
    manifest = Manifest.read(directory)
    if manifest is None:
        raise StorageError(
            f"there is no ledger in {directory}", hint="name the data directory of a server",
            path=str(directory), operation="repair",
        )  # fmt: skip
    sequence = manifest.sequence
    for number, name in enumerate(manifest.journals):
        last = number + 1 == len(manifest.journals)
        try:
            sequence = (check(directory / name, sequence + 1, last=last).next or 1) - 1
        except JournalError as error:
            rest = manifest.journals[number:]
            return _cut(directory, disk, manifest, rest, sequence, error.offset or 0)
    return RepairReport(str(directory), sequence, 0, None, ())


def _cut(
    directory: Path, disk: Disk, manifest: Manifest, rest: tuple[str, ...], before: int, offset: int
) -> RepairReport:
    """Copies what will be cut, names a sound journal in the manifest, then removes the old ones."""
    first = directory / rest[0]
    whole = first.read_bytes()[:offset] if offset else b""
    cuts: list[Path] = []
    size = 0
    for name in rest:
        path, begin = directory / name, offset if name == rest[0] else 0
        data = path.read_bytes()[begin:] if path.exists() else b""
        cut = directory / f"{name}.cut-{begin}"
        while cut.exists():  # of an earlier repair
            cut = cut.with_name(cut.name + "+")
        disk.write_file(cut, data)
        cuts.append(cut)
        size += len(data)
    keep = manifest.journals[: manifest.journals.index(rest[0])]
    # The first damaged file is replaced in place if it keeps something; a rename, so at once.
    if offset:
        found = scan(first, KIND, whole)
        found.finish()
        sequence, name = (found.next or 1) - 1, rest[0]
        disk.write_file(first, whole)
    else:
        sequence, name = before, journal_name(before + 1)
        Log.create(disk, directory / name, KIND, "no", [], first=before + 1).close()
    Manifest(manifest.snapshot, manifest.sequence, (*keep, name)).write(directory, disk)
    for old in rest:
        if old != name:
            disk.unlink(directory / old)
    return RepairReport(str(directory), sequence, size, offset, tuple(str(cut) for cut in cuts))
