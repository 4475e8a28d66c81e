"""A partial: what one task hands on, as bytes that refuse to be anything else.

The format is on paper in docs/formats/partial.md: a header with version, fingerprint and CRC-32,
the recipe as JSON, and a body in one zstd frame. The body is either the keys themselves, as a
stream of Arrow batches, or the snapshot of the filter. Few keys are smaller than a filter made for
many, and need no memory for one: a partition that is nearly empty ships next to nothing.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import zstandard

from bloomtide._core import from_bytes
from bloomtide.distributed.recipe import Recipe
from bloomtide.errors import (
    CapacityError,
    ChecksumError,
    NotASnapshotError,
    SnapshotError,
    TruncatedError,
    VersionError,
)

VERSION = 1
MAGIC = b"BLOOMPRT"
LIMIT = 2**31 - 2**20
"""Bytes of one value: what Arrow and the engines carry, with room for their own headers."""
_HEADER = struct.Struct("<8sHBBIQQ16sI")
_KEYS, _FILTER = 0, 1
_LEVEL = 1
"""Of zstd. Cells that are half full do not get smaller by more effort."""


@dataclass(frozen=True, slots=True)
class Partial:
    """A partial that was read and checked; its body is still packed."""

    recipe: Recipe
    form: int
    rows: int
    body: bytes

    @property
    def has_keys(self) -> bool:
        """Whether it holds keys, not a filter."""
        return self.form == _KEYS

    def tables(self) -> list[Any]:
        """The batches of keys."""
        arrow = arrow_module()
        with arrow.ipc.open_stream(self._unpacked()) as reader:
            return list(reader)

    def filter(self) -> Any:
        """The filter."""
        return from_bytes(self._unpacked())

    def _unpacked(self) -> bytes:
        try:
            return zstandard.ZstdDecompressor().decompress(self.body)
        except zstandard.ZstdError as error:
            raise SnapshotError(
                f"the body of a partial cannot be unpacked: {error}",
                hint="build it again", path=None, offset=_HEADER.size,
            ) from error  # fmt: skip


def pack_keys(recipe: Recipe, batches: Sequence[Any], rows: int) -> bytes:
    """A partial of the keys themselves."""
    arrow = arrow_module()
    sink = arrow.BufferOutputStream()
    # Without a batch nobody knows the type of the keys, and none is needed.
    schema = batches[0].schema if batches else arrow.schema([("key", arrow.null())])
    with arrow.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return _pack(recipe, _KEYS, sink.getvalue(), rows)


def pack_filter(recipe: Recipe, made: Any, rows: int) -> bytes:
    """A partial of the filter."""
    return _pack(recipe, _FILTER, made.to_bytes(), rows)


def _pack(recipe: Recipe, form: int, raw: Any, rows: int) -> bytes:
    body = zstandard.ZstdCompressor(level=_LEVEL).compress(raw)
    about = recipe.to_json()
    size = _HEADER.size + len(about) + len(body)
    if size > LIMIT:
        refuse_size(size)
    fields = (MAGIC, VERSION, form, 0, len(about), len(body), rows, recipe.fingerprint)
    check = zlib.crc32(body, zlib.crc32(about, zlib.crc32(_HEADER.pack(*fields, 0))))
    return b"".join((_HEADER.pack(*fields, check), about, body))


def unpack(data: bytes) -> Partial:
    """Reads a partial; refuses what is damaged, cut short, of another version or something else."""
    data = bytes(data)
    if not data.startswith(MAGIC):
        raise NotASnapshotError(
            f"these {len(data):,} bytes are no partial of a distributed build",
            hint="merge what `build_partition` or `merge` returned; a finished filter has its own "
            "`merge`",
            path=None, offset=0,
        )  # fmt: skip
    _require_length(data, _HEADER.size)
    *fields, check = _HEADER.unpack_from(data)
    _, version, form, _, about_size, body_size, rows, fingerprint = fields
    if version != VERSION:
        raise VersionError(
            f"the partial was written by version {version} of the format; "
            f"this bloomtide reads {VERSION}",
            hint="run the same bloomtide on every machine",
            path=None, offset=8, expected=VERSION, got=version,
        )  # fmt: skip
    _require_length(data, _HEADER.size + about_size + body_size, exactly=True)
    got = zlib.crc32(data[_HEADER.size :], zlib.crc32(_HEADER.pack(*fields, 0)))
    if got != check:
        raise ChecksumError(
            "the partial was changed after it was written",
            hint="build it again", path=None, offset=48, expected=check, got=got,
        )  # fmt: skip
    about = data[_HEADER.size : _HEADER.size + about_size]
    recipe = Recipe.from_json(about)
    if recipe.fingerprint != fingerprint or form not in (_KEYS, _FILTER):
        raise SnapshotError(
            "the partial's recipe does not say what this bloomtide would write",
            hint="run the same bloomtide on every machine", path=None, offset=_HEADER.size,
        )  # fmt: skip
    return Partial(recipe, form, rows, data[_HEADER.size + about_size :])


def require_size(recipe: Recipe) -> None:
    """Refuses, before anything is built, a filter that no engine could hand on as one value."""
    if recipe.size > LIMIT:
        refuse_size(recipe.size)


def refuse_size(size: int) -> NoReturn:
    """One value cannot be that large."""
    raise CapacityError(
        f"a filter of {size:,} bytes is too large for one value: at most {LIMIT:,}",
        hint="cut the key space into shards: ShardedFilter, or build_sharded of the engine",
        needed=size, limit=LIMIT,
    )  # fmt: skip


def _require_length(data: bytes, expected: int, *, exactly: bool = False) -> None:
    if len(data) < expected or (exactly and len(data) != expected):
        raise TruncatedError(
            f"the partial has {len(data):,} bytes instead of {expected:,}",
            hint="build it again", path=None, offset=len(data), expected=expected, got=len(data),
        )  # fmt: skip


def arrow_module() -> Any:
    """pyarrow, which every engine brings."""
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError as error:  # pragma: no cover - the tests run with it
        raise ImportError(
            "bloomtide.distributed needs pyarrow: "
            "pip install 'bloomtide[spark]', or [dask], or [ray]"
        ) from error
    return pyarrow
