"""Arguments and options of `bloomery history`, and what they mean together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from bloomery.cli import console
from bloomery.cli.quantities import number_or_text

Store: TypeAlias = Annotated[
    Path, typer.Argument(metavar="STORE", help="The store's directory.", show_default=False)
]
Logs: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE",
        help="Logs, also .gz and .zst; `-` is stdin, the default.",
        show_default=False,
    ),
]
Start: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--start",
        metavar="WHEN",
        help="From here on: ISO 8601 with its zone, or Unix seconds; the store's beginning.",
        show_default=False,
    ),
]
End: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--end",
        metavar="WHEN",
        help="Up to here, not included; the store's end if not given.",
        show_default=False,
    ),
]
Last: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--last",
        metavar="TIME",
        help="The last 90s, 15m, 1h or 7d instead, up to the store's latest event.",
        show_default=False,
    ),
]
AsCsv: TypeAlias = Annotated[bool, typer.Option("--csv", help="Write CSV to stdout.")]
AsArrow: TypeAlias = Annotated[
    bool, typer.Option("--arrow", help="Write an Arrow stream to stdout.")
]
MaxError: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--max-error",
        metavar="RATE",
        help="Refuse what would make a larger share of the answers wrong.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class Span:
    """The range that was asked for, in Unix seconds; what was not given is the store's own."""

    start: float
    end: float


def span_of(history: Any, start: str | None, end: str | None, last: str | None) -> Span | None:
    """The range of time; None if the store is empty and nothing was named."""
    from bloomery._core import parse_duration, parse_instant

    if last is not None and (start is not None or end is not None):
        raise console.CommandError(
            "--last goes with neither --start nor --end", hint="give one or the other"
        )
    held = history.span()
    begin = None if start is None else float(parse_instant(number_or_text(start), "start"))
    until = None if end is None else float(parse_instant(number_or_text(end), "end"))
    if held is None and (begin is None or until is None):
        return None
    if held is not None:
        until = held[1] if until is None else until
        begin = until - parse_duration(last, "last") if last is not None else begin
        begin = held[0] if begin is None else begin
    assert begin is not None
    assert until is not None
    return Span(begin, until)
