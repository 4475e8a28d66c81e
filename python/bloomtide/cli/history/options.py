"""Arguments and options of `bloomtide history`, and what they mean together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from bloomtide.cli.quantities import parse_error_rate

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
        parser=parse_error_rate,
        metavar="RATE",
        help="Refuse what would make a larger share of the answers wrong.",
        show_default=False,
    ),
]
