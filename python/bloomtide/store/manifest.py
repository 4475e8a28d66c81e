"""The manifest of a ledger: the one file that says which snapshot and which journals count.

It is replaced by a rename, which is the commit point of every change: files that it does not name
do not exist, and are removed when the ledger is opened. It is a line of JSON and a checksum of it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from zlib import crc32

from bloomtide.durable.disk import Disk, storage_errors
from bloomtide.errors import JournalError, VersionError

NAME = "manifest"
_FORMAT = "bloomtide-ledger"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a ledger consists of."""

    snapshot: str | None
    """Name of the directory of the snapshot; None before the first one."""
    sequence: int
    """The number of the last record that the snapshot holds."""
    journals: tuple[str, ...]
    """Names of the journals behind it, oldest first."""

    def write(self, directory: Path, disk: Disk) -> None:
        """Replaces the manifest: the commit point."""
        fields = {"format": _FORMAT, "version": _VERSION} | asdict(self)
        line = json.dumps(fields).encode()
        disk.write_file(directory / NAME, b"%s\n%08x\n" % (line, crc32(line)))

    @classmethod
    def read(cls, directory: Path) -> Manifest | None:
        """The manifest of this directory; None if it has none."""
        path = directory / NAME
        with storage_errors(path, "read"):
            if not path.exists():
                return None
            data = path.read_bytes()
        line, _, rest = data.partition(b"\n")
        if rest != b"%08x\n" % crc32(line):
            raise _refused(path, "its checksum does not match")
        fields = json.loads(line)
        if fields.pop("format", None) != _FORMAT:
            raise _refused(path, "it is the manifest of something else")
        if (version := fields.pop("version", 0)) != _VERSION:
            raise VersionError(
                f"{path} has version {version}; this program knows {_VERSION}",
                hint="open it with the version that wrote it, or a newer one",
                path=str(path), offset=0, expected=_VERSION, got=version,
            )  # fmt: skip
        return cls(fields["snapshot"], fields["sequence"], tuple(fields["journals"]))


def _refused(path: Path, why: str) -> JournalError:
    return JournalError(
        f"{path} cannot be trusted: {why}",
        hint="restore the directory from a backup",
        path=str(path),
        operation="read",
        offset=0,
    )
