"""The manifest of a ledger: the one file that says which snapshot and which journals count.

It is replaced by a rename, which is the commit point of every change: files that it does not name
do not exist, and are removed when the ledger is opened. It is a line of JSON with its checksum.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from bloomtide.durable.disk import Disk, storage_errors
from bloomtide.errors import JournalError, SnapshotError, VersionError
from bloomtide.format import pack_json, read_json

NAME = "manifest"


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
        disk.write_file(directory / NAME, pack_json("ledger", asdict(self)))

    @classmethod
    def read(cls, directory: Path) -> Manifest | None:
        """The manifest of this directory; None if it has none."""
        path = directory / NAME
        with storage_errors(path, "read"):
            if not path.exists():
                return None
            data = path.read_bytes()
        try:
            fields = read_json(data, "ledger", path)
        except VersionError:
            raise
        except SnapshotError as error:
            raise JournalError(
                f"the manifest cannot be trusted: {error.message}",
                hint="restore the directory from a backup",
                path=str(path), operation="read", offset=0,
            ) from error  # fmt: skip
        return cls(fields["snapshot"], fields["sequence"], tuple(fields["journals"]))
