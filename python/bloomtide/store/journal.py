"""The bytes of a ledger's journal: how a record is written, and what is believed when it is read.

A file begins with the common header (`bloomtide.format`), which has four random bytes of the file's
own (the mark) and the number of its first record. Each record begins with the mark:

    mark (4) | length (4) | sequence (8) | CRC-32C of length, sequence and payload (4) | payload

All numbers are little endian. The numbers of records go up by one, so a record is replayed once.

A write that the power cut in the middle leaves a torn tail: something that is not a record, and no
record behind it. That was never acknowledged, and is cut. If there is a record behind it, the
middle is damaged, and what followed was acknowledged: nobody may cut that silently. The mark tells
the two apart quickly, and no client can write it into a payload, since it does not know it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path

from bloomtide._core import crc32c
from bloomtide.durable.disk import storage_errors
from bloomtide.errors import JournalError, KindError, SnapshotError, VersionError, require
from bloomtide.format import HEAD, read_start, start

_KIND = "ledger journal"
_ADDED = struct.Struct("<4sQ")
_CRC = struct.Struct("<I")
_HEAD = struct.Struct("<IQ")
START = HEAD + _ADDED.size + _CRC.size
"""Bytes before the first record."""
OVERHEAD = 4 + _HEAD.size + _CRC.size
"""Bytes of a record besides its payload."""
Data = bytes | mmap
LARGEST = (1 << 32) - 1
"""Bytes that one payload may have."""


def start_of_file(first: int) -> bytes:
    """What a new file begins with, if its first record will have this number."""
    return start(_KIND, _ADDED.pack(os.urandom(4), first))


def pack(mark: bytes, sequence: int, payload: bytes) -> bytes:
    """One record."""
    require("payload", len(payload), f"at most {LARGEST} bytes", len(payload) <= LARGEST)
    head = _HEAD.pack(len(payload), sequence)
    return b"".join((mark, head, _CRC.pack(crc32c(payload, crc32c(head))), payload))


@dataclass(frozen=True, slots=True)
class Scan:
    """What a journal file holds."""

    mark: bytes
    first: int
    """The number of its first record."""
    last: int
    """The number of its last sound one; `first - 1` if it has none."""
    end: int
    """Where the sound records end."""
    size: int
    damaged: bool
    """There are records behind the end."""

    @property
    def torn(self) -> int:
        """Bytes behind the end."""
        return self.size - self.end


def read(path: Path) -> Data:
    """The file as it is now, mapped: it may be larger than the memory that is free."""
    with storage_errors(path, "read"), path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return b""  # which cannot be mapped
        return mmap(file.fileno(), 0, access=ACCESS_READ)


def scan(path: Path, data: Data) -> Scan:
    """Checks every record. Raises if the start of the file is not sound."""
    mark, first = _read_start(path, data)
    last, end = first - 1, START
    for sequence, payload in _records(data, mark, first):
        last, end = sequence, end + OVERHEAD + len(payload)
    damaged = end < len(data) and _record_behind(data, end, mark)
    return Scan(mark, first, last, end, len(data), damaged)


def records(path: Path, data: Data, after: int) -> Iterator[tuple[int, bytes]]:
    """The sound records whose number is greater than `after`."""
    mark, first = _read_start(path, data)
    for sequence, payload in _records(data, mark, first):
        if sequence > after:
            yield sequence, bytes(payload)


def damaged(path: Path, offset: int, what: str) -> JournalError:
    """The error for a file that must not be trusted from this offset on."""
    return JournalError(
        f"{path} is damaged at offset {offset}: {what}",
        hint=f"restore a backup, or cut it there: bloomtide serve --repair {path.parent}",
        path=str(path),
        operation="read",
        offset=offset,
    )


def _read_start(path: Path, data: Data) -> tuple[bytes, int]:
    try:
        added = read_start(data[:START], _KIND, path)
    except (KindError, VersionError):
        raise  # sound, and not to be cut
    except SnapshotError as error:
        raise damaged(path, 0, "the start of the file is not sound") from error
    if len(added) != _ADDED.size:
        raise damaged(path, 0, "the start of the file is not sound")
    mark, first = _ADDED.unpack(added)
    return mark, first


def _records(data: Data, mark: bytes, expected: int) -> Iterator[tuple[int, memoryview]]:
    """Records from the start of the file up to the first that is not sound."""
    offset = START
    while (payload := _record(data, offset, mark, expected)) is not None:
        yield expected, payload
        expected, offset = expected + 1, offset + OVERHEAD + len(payload)


def _record(data: Data, offset: int, mark: bytes, expected: int | None) -> memoryview | None:
    """The payload of a sound record at this offset, with this number unless it is None."""
    if len(data) - offset < OVERHEAD or data[offset : offset + 4] != mark:
        return None
    length, sequence = _HEAD.unpack_from(data, offset + 4)
    [checksum] = _CRC.unpack_from(data, offset + 4 + _HEAD.size)
    begin = offset + OVERHEAD
    if length > len(data) - begin or expected not in (None, sequence):
        return None
    payload = memoryview(data)[begin : begin + length]
    head = data[offset + 4 : offset + 4 + _HEAD.size]
    return payload if crc32c(payload, crc32c(head)) == checksum else None


def _record_behind(data: Data, offset: int, mark: bytes) -> bool:
    """Is there a sound record, with whatever number, at this offset or behind it?"""
    while (offset := data.find(mark, offset)) >= 0:
        if _record(data, offset, mark, None) is not None:
            return True
        offset += 1
    return False
