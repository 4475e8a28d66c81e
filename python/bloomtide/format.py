"""The header that every file and blob begins with, for the formats that Python writes.

`docs/formats/index.md` is the specification. The compiled core packs and checks the header, so
there is one implementation of it; this module adds the checksum of a body, the path in an error,
the digest that tells which file one is, and the form of files that are JSON:

    {"format":"ledger","version":1, ... ,"crc32c":"1a2b3c4d"}

The checksum stands last and covers every byte before `,"crc32c"`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import contextmanager
from hashlib import blake2b, file_digest
from typing import TYPE_CHECKING, Any

from bloomtide._core import crc32c, format_kinds, pack_header, read_header, read_sealed
from bloomtide.errors import (
    ChecksumError,
    KindError,
    NotASnapshotError,
    SnapshotError,
    TruncatedError,
    VersionError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from typing_extensions import Buffer

VERSION = 1
"""Of every format."""
KINDS: dict[str, int] = {name: number for number, name in format_kinds()}
"""The number in the header of each kind."""
_NAMES = {number: name for name, number in KINDS.items()}
_MAGIC = b"BLOOMTID"
JSON_FORMATS = ("ledger", "history", "monitor", "shards", "crawl", "shared guard")
"""What the files that are JSON describe."""
HEAD = 24
"""Bytes of a header before what the kind adds."""
_SUM = 4
_TAIL = b',"crc32c":"%08x"}\n'
_TAIL_SIZE = len(_TAIL % 0)


def kind_of(data: bytes) -> str | None:
    """The kind that the bytes claim to be, before anything of them is checked."""
    if not data.startswith(_MAGIC):
        return None
    return _NAMES.get(int.from_bytes(data[8:10], "little"))


def start(kind: str, added: bytes = b"") -> bytes:
    """The header of a file that grows."""
    return pack_header(kind, added, 0)


def read_start(data: Buffer, kind: str, path: object = None) -> bytes:
    """What the kind adds to the header of a file that grows, if it is sound."""
    with errors_at(path):
        _, length, added = read_header(data, kind)
        if length != 0:
            raise SnapshotError(
                f"a {kind} grows, so its header holds no length; it holds: {length}",
                hint="restore it from a copy", path=None, offset=16,
            )  # fmt: skip
    return added


def seal(kind: str, added: bytes, *body: bytes) -> bytes:
    """Header, body and the body's checksum, which goes on from the header's."""
    length = HEAD + len(added) + _SUM + sum(map(len, body)) + _SUM
    header = pack_header(kind, added, length)
    check = int.from_bytes(header[-_SUM:], "little")
    for part in body:
        check = crc32c(part, check)
    return b"".join((header, *body, check.to_bytes(_SUM, "little")))


def unseal(data: bytes, kind: str, path: object = None) -> tuple[bytes, memoryview]:
    """What the kind adds to the header, and the body, if `data` is all that `seal` returned."""
    with errors_at(path):
        added, begin, end = read_sealed(data, kind)
    return added, memoryview(data)[begin:end]


def pack_json(name: str, fields: Mapping[str, Any]) -> bytes:
    """One line of JSON that ends with its checksum."""
    line = json.dumps({"format": name, "version": VERSION, **fields}, separators=(",", ":"))
    covered = line[:-1].encode()
    return covered + _TAIL % crc32c(covered)


def read_json(data: bytes, name: str, path: object) -> dict[str, Any]:
    """The fields of what `pack_json` returned."""
    with errors_at(path):
        return _read_json(data, name)


def _read_json(data: bytes, name: str) -> dict[str, Any]:
    hint = "restore it from a copy"
    if not data.startswith(b'{"format":"'):
        raise NotASnapshotError(
            f"this does not describe a {name}", hint="check the path: this is some other "
            "program's file", path=None, offset=0,
        )  # fmt: skip
    covered, tail = data[:-_TAIL_SIZE], data[-_TAIL_SIZE:]
    if not tail.startswith(_TAIL[:11]) or not tail.endswith(_TAIL[-3:]):
        raise TruncatedError(
            f"the description of a {name} does not end with its checksum",
            hint=hint, path=None, offset=len(data), expected=len(data) + 1, got=len(data),
        )  # fmt: skip
    got = crc32c(covered)
    if tail != _TAIL % got:
        raise ChecksumError(
            f"the description of a {name} was changed after it was written",
            hint=hint, path=None, offset=0, expected=tail[11:19].decode("latin-1"), got=got,
        )  # fmt: skip
    fields: dict[str, Any] = json.loads(covered + b"}")
    if (found := fields.pop("format")) != name:
        raise KindError(
            f"this describes a {found}, not a {name}", hint="check the path",
            path=None, offset=0, expected=name, got=found,
        )  # fmt: skip
    version = fields.pop("version", 0)
    if type(version) is not int or version < 1:
        raise SnapshotError(
            f"no format has the version {version!r}", hint=hint, path=None, offset=None,
        )  # fmt: skip
    if version != VERSION:
        raise VersionError(
            f"format version {version} is newer than this program reads: {VERSION}",
            hint="read it with a newer bloomtide", path=None, offset=None,
            expected=VERSION, got=version,
        )  # fmt: skip
    return fields


def digest_of(path: Path) -> str:
    """Which file this is. Not a CRC, which tells damage and not one sound file from another."""
    with path.open("rb") as file:
        return file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()


def require_digest(path: Path, expected: str, hint: str) -> None:
    """Refuses a file in the place of another one."""
    if (found := digest_of(path)) != expected:
        raise ChecksumError(
            f"{path} is not the file that belongs here", hint=hint,
            path=str(path), offset=None, expected=expected, got=found,
        )  # fmt: skip


@contextmanager
def errors_at(path: object) -> Iterator[None]:
    """Names the file in a refusal, which knows only bytes."""
    try:
        yield
    except SnapshotError as error:
        if path is not None and error.path is None:
            error.message = f"{path}: {error.message}"
            error.path = error.fields["path"] = str(path)
        raise
