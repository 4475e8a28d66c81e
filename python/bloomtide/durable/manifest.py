"""A manifest: a line of JSON with its checksum that says what a directory is, or which files count.

It is replaced by a rename, so it is there as a whole or not at all: the commit point of a change.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bloomtide.durable.disk import Disk, storage_errors
from bloomtide.errors import SnapshotError, VersionError
from bloomtide.format import pack_json, read_json


def write_manifest(disk: Disk, path: Path, name: str, fields: Mapping[str, Any]) -> None:
    """Replaces the file: what it says counts, durably, when this returns."""
    disk.write_file(path, pack_json(name, fields))


def read_manifest(path: Path, name: str, *, hint: str) -> dict[str, Any] | None:
    """What the file says; None if there is none. `hint` tells what to do if it is damaged."""
    with storage_errors(path, "read"):
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
    try:
        return read_json(data, name, path)
    except VersionError:
        raise
    except SnapshotError as error:
        error.hint = hint
        raise
