"""Columns as CSV, JSON lines or Arrow, on stdout or into a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

from bloomtide.cli import console

Form: TypeAlias = Literal["csv", "json", "arrow"]
Columns: TypeAlias = dict[str, Any]
"""Lists or arrays by name, all of one length. Keys are bytes, times `datetime64` in UTC."""

SUFFIXES: dict[str, Form] = {".csv": "csv", ".json": "json", ".jsonl": "json", ".arrow": "arrow"}
PIECE = 10_000
"""Rows that are written at once."""


def chosen(*, as_csv: bool, as_json: bool, as_arrow: bool) -> Form | None:
    """The one form that was asked for; None is a table for people."""
    wanted: dict[Form, bool] = {"csv": as_csv, "json": as_json, "arrow": as_arrow}
    asked = [form for form, given in wanted.items() if given]
    if len(asked) > 1:
        names = " and ".join(f"--{form}" for form in asked)
        raise console.CommandError(f"{names} are different forms", hint="give one of them")
    return asked[0] if asked else None


def form_of(path: Path) -> Form:
    """By the name's ending."""
    form = SUFFIXES.get(path.suffix.lower())
    if form is None:
        raise console.CommandError(
            f"{path}: the ending tells no form", hint="name it .csv, .json or .arrow"
        )
    return form


def write(columns: Columns, form: Form, path: Path | None = None) -> None:
    """All rows; a file is written whole or not at all."""
    if path is None:
        for piece in pieces(columns, form):
            console.write(piece)
        return
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            file.writelines(pieces(columns, form))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def pieces(columns: Columns, form: Form) -> Iterator[bytes]:
    """The rows in their form, piece by piece."""
    if form == "arrow":
        yield _arrow(columns)
        return
    length = len(next(iter(columns.values())))
    if form == "csv":
        yield (",".join(columns) + "\r\n").encode()
    for first in range(0, length, PIECE):
        rows = zip(*(_plain(column, first, form) for column in columns.values()), strict=True)
        yield _csv(rows) if form == "csv" else _json(list(columns), rows)


def _plain(column: Any, first: int, form: Form) -> Any:
    """Python's own values: an array's numbers are no JSON. Times are as people read them in CSV."""
    part = column[first : first + PIECE]
    if getattr(part, "dtype", None) is None:
        return part
    if part.dtype.kind != "M":
        return part.tolist()
    micros = part.astype("datetime64[us]").astype("int64")
    if form == "json":
        return (micros / 1e6).tolist()
    import numpy as np  # not at the top: every command would wait for it

    unit: Any = "us" if (micros % 1_000_000).any() else "s"
    return np.datetime_as_string(part, unit=unit, timezone="UTC").tolist()


def _csv(rows: Iterator[tuple[Any, ...]]) -> bytes:
    text = io.StringIO(newline="")
    table = csv.writer(text)
    for row in rows:
        table.writerow([_text(value) if isinstance(value, bytes) else value for value in row])
    return text.getvalue().encode()


def _json(names: list[str], rows: Iterator[tuple[Any, ...]]) -> bytes:
    lines = []
    for row in rows:
        fields: dict[str, Any] = {}
        for name, value in zip(names, row, strict=True):
            fields |= console.key_json(value) if isinstance(value, bytes) else {name: value}
        lines.append(console.to_json(fields) + b"\n")
    return b"".join(lines)


def _arrow(columns: Columns) -> bytes:
    from bloomtide.extras import require

    with require("arrow", "Arrow output", instead="take --csv"):
        import pyarrow as pa
    arrays = {}
    for name, column in columns.items():
        kind = getattr(getattr(column, "dtype", None), "kind", "")
        arrays[name] = pa.array(column, pa.timestamp("us", "UTC") if kind == "M" else None)
    table = pa.table(arrays)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _text(key: bytes) -> str:
    return key.decode("utf-8", "backslashreplace")
