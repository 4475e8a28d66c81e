"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from bloomery.cli.quantities import parse_error_rate, parse_items

FilterFile: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FILE", help="The filter file.", show_default=False)
]
KeyFiles: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEYS-FILE",
        help="Files with one key per line, also .gz and .zst; `-` is stdin, the default.",
        show_default=False,
    ),
]
GivenKeys: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--key", metavar="KEY", help="A key given here; can be repeated."),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")]
Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Replace a file that exists.")]

Items: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--items",
        parser=parse_items,
        metavar="N",
        help="Distinct keys to be held, such as 1000000, 1e9 or 10M.",
        show_default=False,
    ),
]
ErrorRate: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--error",
        parser=parse_error_rate,
        metavar="RATE",
        help="Largest share of absent keys called present, such as 0.001 or 0.1%; 1% if not given.",
        show_default=False,
    ),
]
KindName: TypeAlias = Annotated[
    Literal["bloom", "scalable", "counting"],
    typer.Option("--kind", help="bloom: membership; scalable: grows; counting: counts, removes."),
]
Layout: TypeAlias = Annotated[
    Literal["blocked", "classic"] | None,
    typer.Option(
        "--layout",
        help="bloom, counting: blocked is faster, classic smaller at low error rates.",
    ),
]
CounterBits: TypeAlias = Annotated[
    int | None, typer.Option("--counter-bits", help="counting: 4, 8, 16 or 32 bits a counter.")
]
Policy: TypeAlias = Annotated[
    Literal["plain", "conservative"] | None,
    typer.Option("--policy", help="counting: conservative counts closer but cannot remove."),
]
Growth: TypeAlias = Annotated[
    float | None, typer.Option("--growth", help="scalable: how much larger each new layer is.")
]
Tightening: TypeAlias = Annotated[
    float | None,
    typer.Option("--tightening", help="scalable: factor of each new layer's error rate."),
]
Derivation: TypeAlias = Annotated[
    Literal["enhanced", "double", "slices"] | None,
    typer.Option("--derivation", help="How positions come from a key's digest."),
]
