"""The journal of a store: a `Log` of what the open segments hold, for the day of a crash.

Each generation has a file of its own, `journal-<generation>`. The records come from the buffer of
the open segments, which also reads them again. Of a store with `keep` it holds what was open at the
last sealing or checkpoint: whoever feeds the store keeps the rest, and gives what is behind its
`mark` again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bloomtide.durable.disk import Disk
from bloomtide.durable.log import Log, pack_file, scan
from bloomtide.durable.policy import Sync
from bloomtide.history.entry import checksum

KIND = "history journal"
_HEAD = 64
"""Bytes that tell one journal from another."""


def journal_path(directory: Path, generation: int) -> Path:
    """Where the journal of a generation lies."""
    return directory / f"journal-{generation:08d}"


def begin(disk: Disk, path: Path, sync: Sync, payloads: list[bytes]) -> tuple[Log, dict[str, Any]]:
    """A new journal that begins with these records, and what the catalogue says of it."""
    data = pack_file(KIND, payloads)
    disk.write_file(path, data)
    found = scan(path, KIND, data)
    found.finish()
    return Log.resume(disk, path, sync, found), begun_as(data)


def begun_as(data: bytes) -> dict[str, Any]:
    """What the catalogue says of a journal that begins with these bytes: `head` tells it from
    others, the rest whether all of its begin is there."""
    return {"bytes": len(data), "checksum": checksum(data), "head": checksum(data[:_HEAD])}
