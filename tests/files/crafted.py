"""Snapshots changed on purpose, with checksums that are right again.

Damage is caught by checksums; a file made by a hostile or mistaken program has good ones. This
knows as much of `docs/formats/snapshot.md` as such a program would.
"""

from __future__ import annotations

import json
import struct
from typing import Any

KIND_AT = 8
VERSION_AT = 10
HEADER_LENGTH_AT = 12
FILE_LENGTH_AT = 16
STATE_AT = 24
PARAMETERS_LENGTH_AT = 36
SECTIONS_AT = 40
PRELUDE = 64
BLOCK = 65_536


def _table() -> list[int]:
    rows = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        rows.append(byte)
    return rows


_TABLE = _table()


def crc32c(data: bytes, seed: int = 0) -> int:
    """CRC-32C (Castagnoli), one byte after the other, going on from `seed`."""
    crc = seed ^ 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def number_at(data: bytes | bytearray, offset: int, width: int) -> int:
    """A little-endian number of the header."""
    return int.from_bytes(data[offset : offset + width], "little")


def header_length(data: bytes | bytearray) -> int:
    """Where the cells start."""
    return number_at(data, HEADER_LENGTH_AT, 4)


def checksum_offset(data: bytes | bytearray) -> int:
    """Where the header's own checksum stands: its last four bytes."""
    return header_length(data) - 4


def with_header(data: bytes, offset: int, new: bytes) -> bytes:
    """The snapshot with `new` at `offset` of its header, and all checksums made right.

    Only the first bytes of a header that now claims to be longer than the file are made right.
    """
    changed = bytearray(data)
    changed[offset : offset + len(new)] = new
    at = checksum_offset(changed)
    if PRELUDE <= at <= len(changed) - 4:
        # The state word changes while a file is in use, so the checksum counts it as zero.
        covered = changed[:STATE_AT] + bytes(8) + changed[STATE_AT + 8 : at]
        changed[at : at + 4] = crc32c(bytes(covered)).to_bytes(4, "little")
        sections = [number_at(data, end - 8, 8) for end in _section_ends(data)]
        if sum(sections) < len(data):
            _seal(changed, sections)
    return bytes(changed)


def with_version(data: bytes, version: int) -> bytes:
    """Anything that is no filter, with another version and a header whose checksum is right."""
    at = checksum_offset(data)
    head = data[:VERSION_AT] + version.to_bytes(2, "little") + data[VERSION_AT + 2 : at]
    return head + crc32c(head).to_bytes(4, "little") + data[at + 4 :]


def _section_ends(data: bytes) -> range:
    """Where each entry of the section table ends."""
    parameters, sections = struct.unpack_from("<II", data, PARAMETERS_LENGTH_AT)
    at = PRELUDE + parameters
    return range(at + 8, at + 8 * sections + 1, 8)


END = b"ENDS"


def tail_length(sections: list[int]) -> int:
    """Bytes behind sections of these lengths: the checksum table and the end."""
    return 4 * sum(-(-size // BLOCK) for size in sections) + len(END)


def cells_of(data: bytes | bytearray) -> bytes:
    """All cells, whatever their sections."""
    sizes = [number_at(data, end - 8, 8) for end in _section_ends(bytes(data))]
    start = header_length(data)
    return bytes(data[start : start + sum(sizes)])


def masked(crc: int) -> int:
    """An entry of the checksum table: turned right by fifteen bits, and a constant added."""
    return (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF


def _seal(data: bytearray, sections: list[int]) -> None:
    """Makes the checksum table right, whose entries go on from the header's checksum."""
    running = number_at(data, checksum_offset(data), 4)
    start = len(data) - sum(sections) - tail_length(sections)
    tail = b""
    for size in sections:
        for at in range(start, start + size, BLOCK):
            running = crc32c(bytes(data[at : min(at + BLOCK, start + size)]), running)
            tail += masked(running).to_bytes(4, "little")
        start += size
    tail += END
    data[len(data) - len(tail) :] = tail


def sections_of(data: bytes) -> list[bytes]:
    """The bytes of each section."""
    sizes = [number_at(data, end - 8, 8) for end in _section_ends(data)]
    starts = [header_length(data) + sum(sizes[:i]) for i in range(len(sizes))]
    return [data[start : start + size] for start, size in zip(starts, sizes, strict=True)]


def with_sections(data: bytes, sections: list[bytes]) -> bytes:
    """The snapshot with these sections, as many as before, and everything about them made right."""
    tail = bytes(tail_length([len(section) for section in sections]))
    changed = bytearray(data[: header_length(data)] + b"".join(sections) + tail)
    for end, section in zip(_section_ends(data), sections, strict=True):
        changed[end - 8 : end] = len(section).to_bytes(8, "little")
    return with_header(bytes(changed), FILE_LENGTH_AT, len(changed).to_bytes(8, "little"))


def with_cells(data: bytes, cells: bytes) -> bytes:
    """A snapshot of one section with these cells, and the checksum table made right."""
    start = header_length(data)
    assert len(data) - start - len(cells) == tail_length([len(cells)])
    changed = bytearray(data)
    changed[start : start + len(cells)] = cells
    _seal(changed, [len(cells)])
    return bytes(changed)


def with_fields(data: bytes, **fields: Any) -> bytes:
    """A file of JSON with other fields, and a checksum that is right."""
    about = json.loads(data) | fields
    del about["crc32c"]
    line = json.dumps(about, separators=(",", ":"))[:-1].encode()
    return line + b',"crc32c":"%08x"}\n' % crc32c(line)
