"""A partial: what one task hands on, as bytes that refuse to be anything else.

docs/formats/partial.md is the specification: the common header with a fingerprint and the recipe as
JSON, and a body in one zstd frame. The body is either the keys themselves, as a
stream of Arrow batches, or the snapshot of the filter. Few keys are smaller than a filter made for
many, and need no memory for one: a partition that is nearly empty ships next to nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from bloomtide import extras
from bloomtide._core import from_bytes
from bloomtide.distributed.recipe import Recipe
from bloomtide.errors import CapacityError, NotASnapshotError, SnapshotError
from bloomtide.format import kind_of, seal, unseal

KIND = "partial"
LIMIT = 2**31 - 2**20
"""Bytes of one value: what Arrow and the engines carry, with room for their own headers."""
_ADDED = struct.Struct("<B7xQ16s")
"""What stands before the recipe: form, number of keys, fingerprint."""
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
        try:
            with arrow.ipc.open_stream(self._unpacked()) as reader:
                batches = list(reader)
            for batch in batches:
                # Arrow believes offsets, and would read beyond its memory.
                batch.validate(full=True)
        except (arrow.ArrowException, OSError) as error:
            _refuse_body(error)
        return batches

    def filter(self) -> Any:
        """The filter."""
        return from_bytes(self._unpacked())

    def _unpacked(self) -> bytes:
        zstandard = _zstandard_module()
        try:
            size = zstandard.frame_content_size(self.body)
            if not 0 <= size <= LIMIT:
                raise zstandard.ZstdError(f"it claims {size:,} bytes")
            return bytes(zstandard.ZstdDecompressor().decompress(self.body))
        except zstandard.ZstdError as error:
            _refuse_body(error)


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
    body = _zstandard_module().ZstdCompressor(level=_LEVEL).compress(raw)
    packed = seal(KIND, _ADDED.pack(form, rows, recipe.fingerprint) + recipe.to_json(), body)
    if len(packed) > LIMIT:
        refuse_size(len(packed))
    return packed


def unpack(data: bytes) -> Partial:
    """Reads a partial; refuses what is damaged, cut short, of another version or something else."""
    try:
        added, body = unseal(bytes(data), KIND)
    except NotASnapshotError as error:
        raise NotASnapshotError(
            f"these {len(data):,} bytes are no partial of a distributed build",
            hint="merge what `build_partition` or `merge` returned; a finished filter has its own "
            "`merge`",
            path=None, offset=0,
        ) from error  # fmt: skip
    if len(added) < _ADDED.size or any(added[1:8]):
        _refuse_recipe()
    form, rows, fingerprint = _ADDED.unpack_from(added)
    recipe = Recipe.from_json(added[_ADDED.size :])
    if recipe.fingerprint != fingerprint or form not in (_KEYS, _FILTER):
        _refuse_recipe()
    return Partial(recipe, form, rows, bytes(body))


def is_partial(data: bytes) -> bool:
    """Whether these bytes are a partial, and not a finished filter."""
    return kind_of(data) == KIND


def _refuse_recipe() -> NoReturn:
    raise SnapshotError(
        "the partial's recipe does not say what this bloomtide would write",
        hint="run the same bloomtide on every machine", path=None, offset=None,
    )  # fmt: skip


def _refuse_body(error: Exception) -> NoReturn:
    raise SnapshotError(
        f"the body of a partial cannot be unpacked: {error}",
        hint="build it again", path=None, offset=None,
    ) from error  # fmt: skip


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


def arrow_module() -> Any:
    """pyarrow, which the extras of the engines bring."""
    with extras.require("distributed", "`bloomtide.distributed`"):
        import pyarrow
        import pyarrow.ipc
    return pyarrow


def _zstandard_module() -> Any:
    with extras.require("distributed", "`bloomtide.distributed`"):
        import zstandard
    return zstandard
