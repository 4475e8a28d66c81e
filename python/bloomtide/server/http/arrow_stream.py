"""Arrow streams as columns, without trust in what a stream claims.

Compressed buffers say themselves how large they will be, and some columns take no bytes for a row:
a small body could ask for any amount of memory. So each message is looked at before Arrow reads it:
it must not be compressed, and may not claim more rows than it has bytes. What is looked at are two
tables of Arrow's format (Message.fbs): `Message` and `RecordBatch`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO, Any, NoReturn

from bloomtide import extras
from bloomtide.errors import BloomtideError, MissingExtraError, RequestError

MEDIA_TYPE = "application/vnd.apache.arrow.stream"
ROWS = 65_536
"""Of a batch: the most that a monitor takes as a whole. Longer ones are cut."""
EXPANDED = 64 << 20
"""Bytes of a batch's keys, each row's counted."""
_HEADER_TYPE, _HEADER = 1, 2
_DICTIONARY, _RECORDS = 2, 3
_LENGTH, _COMPRESSION = 0, 3
_DATA = 1


def pyarrow() -> Any:
    """The library, which a server may lack."""
    try:
        with extras.require("arrow", "Arrow", instead="send application/x-ndjson"):
            import pyarrow as pa
    except MissingExtraError as error:
        raise RequestError(
            f"this server has no Arrow: {error.message}", hint=error.hint,
            status=415, field="Content-Type",
        ) from error  # fmt: skip
    return pa


def read_batches(body: IO[bytes], columns: frozenset[str]) -> Iterator[Any]:
    """The batches of a stream; its columns are some of these, and `key`."""
    pa = pyarrow()
    try:
        for message in pa.ipc.MessageReader.open_stream(body):
            _check(message)
        body.seek(0)
        with pa.ipc.open_stream(body) as reader:
            names = reader.schema.names
            if "key" not in names or set(names) - columns or len(set(names)) < len(names):
                _refuse("the columns must be `key`, and may be `time` and `count`")
            for batch in reader:
                batch.validate(full=True)
                for start in range(0, batch.num_rows, ROWS):
                    yield batch.slice(start, ROWS)
    except (pa.ArrowInvalid, OSError, struct.error) as error:
        if isinstance(error, BloomtideError):
            raise
        _refuse("the body is not an Arrow stream, or was cut short")


def has_plain_keys(column: Any) -> bool:
    """Whether these are keys, each of which has bytes of its own.

    A row of a dictionary, or of a view, may share a long key with all others; a monitor's journal
    would hold it for each. So dictionaries may not make more of their keys than a body could hold.
    """
    from pyarrow import compute, types

    kind = column.type
    if not types.is_dictionary(kind):
        return _is_key(kind)
    if types.is_integer(kind.value_type):
        return True
    if not _is_key(kind.value_type):
        return False
    lengths = compute.binary_length(column.dictionary).take(column.indices)
    return bool(compute.sum(lengths).as_py() <= EXPANDED)


def is_within(column: Any, least: int, most: int) -> bool:
    """Whether these are whole numbers in that range; the column is not empty."""
    from pyarrow import compute, types

    if not types.is_integer(column.type):
        return False
    found = compute.min_max(column).as_py()
    return bool(least <= found["min"] and found["max"] <= most)


def write(columns: dict[str, list[Any]]) -> bytes:
    """A stream of one batch."""
    pa = pyarrow()
    try:
        batch = pa.RecordBatch.from_pydict(columns)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        _refuse("the keys are of several types, which an Arrow column cannot be")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _refuse(message: str) -> NoReturn:
    hint = "send an Arrow stream with the column `key`, and if wanted `time` and `count`"
    raise RequestError(message, hint=hint, status=400, field="body")


def _is_key(kind: Any) -> bool:
    from pyarrow import types

    kinds = (
        types.is_string, types.is_large_string, types.is_binary, types.is_large_binary,
        types.is_integer,
    )  # fmt: skip
    return any(fits(kind) for fits in kinds)


def _check(message: Any) -> None:
    data = message.metadata.to_pybytes()
    table = _offset(data, 0)
    kind = _field(data, table, _HEADER_TYPE)
    header = _field(data, table, _HEADER)
    if kind is None or header is None or data[kind] not in (_DICTIONARY, _RECORDS):
        return
    records: int | None = _offset(data, header)
    if data[kind] == _DICTIONARY:
        inner = _field(data, _offset(data, header), _DATA)
        records = None if inner is None else _offset(data, inner)
    if records is None:
        return
    if _field(data, records, _COMPRESSION) is not None:
        _refuse("the stream is compressed")
    length = _field(data, records, _LENGTH)
    rows = 0 if length is None else struct.unpack_from("<q", data, length)[0]
    size = 0 if message.body is None else message.body.size
    if not 0 <= rows <= size:
        _refuse("a batch claims more rows than it has bytes")


def _offset(data: bytes, at: int) -> int:
    """Where a flatbuffer's reference leads."""
    return at + int(struct.unpack_from("<I", data, at)[0])


def _field(data: bytes, table: int, number: int) -> int | None:
    """Where a field of a flatbuffer's table is; None if it is left out."""
    fields = table - struct.unpack_from("<i", data, table)[0]
    place = 4 + 2 * number
    if place >= struct.unpack_from("<H", data, fields)[0]:
        return None
    offset = struct.unpack_from("<H", data, fields + place)[0]
    return table + offset if offset else None
