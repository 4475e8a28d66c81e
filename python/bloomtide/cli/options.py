"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from bloomtide.cli.quantities import (
    parse_error_rate,
    parse_items,
    parse_layer_sizes,
    parse_partitions,
)

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
    Literal["bloom", "scalable", "counting", "sbf", "dcf", "psbf", "pdcf", "tbf", "url"] | None,
    typer.Option(
        "--kind",
        help="bloom: membership; scalable: grows; counting: counts, removes;"
        " sbf, dcf, psbf, pdcf: counts without an upper end, for hot keys;"
        " tbf: counts that fade with time; url: URLs, their hosts and directories.",
        show_default=False,
    ),
]
Layout: TypeAlias = Annotated[
    Literal["blocked", "classic", "basic", "optimized", "tiered"] | None,
    typer.Option(
        "--layout",
        help="Not scalable: blocked is faster, classic smaller at low error rates."
        " tbf: basic, optimized or tiered, what holds its cells.",
    ),
]
Placement: TypeAlias = Annotated[
    Literal["blocked", "classic"] | None,
    typer.Option("--placement", help="tbf: where the cells of a key lie, as --layout of others."),
]
HalfLife: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--half-life", metavar="TIME", help="tbf: time in which a count halves: 90s, 15m, 1h, 7d."
    ),
]
Decay: TypeAlias = Annotated[
    float | None,
    typer.Option("--decay", help="tbf: what remains of a count after each --epoch, 0 to 1."),
]
Epoch: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--epoch", metavar="TIME", help="tbf: how often counts fade; a tenth of --half-life."
    ),
]
Rounding: TypeAlias = Annotated[
    Literal["strict", "expiring"] | None,
    typer.Option("--rounding", help="tbf: strict never counts too little, expiring reaches zero."),
]
At: TypeAlias = Annotated[
    str | None,
    typer.Option("--at", metavar="WHEN", help="tbf: ISO 8601 with its zone; now if not given."),
]
CounterBits: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--counter-bits",
        help="counting: 4, 8, 16 or 32 bits a counter; dcf, pdcf: 1 to 32 in the base array;"
        " tbf: 16 or 32.",
    ),
]
Policy: TypeAlias = Annotated[
    Literal["plain", "conservative", "recurring_minimum"] | None,
    typer.Option(
        "--policy",
        help="Of counters: conservative counts closer but cannot remove;"
        " recurring_minimum (sbf, psbf) counts doubtful keys a second time.",
    ),
]
Total: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--total",
        parser=parse_items,
        metavar="M",
        help="sbf, dcf, psbf, pdcf: occurrences of all keys together; 10 a key if not given.",
        show_default=False,
    ),
]
Partitions: TypeAlias = Annotated[
    Any,
    typer.Option(
        "--partitions",
        parser=parse_partitions,
        metavar="N|auto|adaptive",
        help="psbf, pdcf: pieces that are rebuilt alone; adaptive splits a hot piece further.",
        show_default=False,
    ),
]
Slack: TypeAlias = Annotated[
    float | None, typer.Option("--slack", help="sbf, psbf: spare bits a counter, 0 to 64.")
]
OnFull: TypeAlias = Annotated[
    Literal["grow", "saturate"] | None,
    typer.Option("--on-full", help="sbf, psbf: what happens when the spare bits are used up."),
]
Shrink: TypeAlias = Annotated[
    float | None,
    typer.Option("--shrink", help="dcf, pdcf: how eagerly memory is given back, 0 to 1."),
]
Hashes: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--hashes",
        help="Cells per key: with --bits or --cells; sbf, dcf, psbf, pdcf: also with --items.",
    ),
]
WithCounts: TypeAlias = Annotated[
    bool,
    typer.Option("--counts", help="Lines are `count<TAB>key`, as `bloomtide count` prints them."),
]
Growth: TypeAlias = Annotated[
    float | None, typer.Option("--growth", help="scalable: how much larger each new layer is.")
]
Tightening: TypeAlias = Annotated[
    float | None,
    typer.Option("--tightening", help="scalable: factor of each new layer's error rate."),
]
MaxLayers: TypeAlias = Annotated[
    int | None,
    typer.Option("--max-layers", help="url: depths that are told apart, 1 to 64; 8 if not given."),
]
Bind: TypeAlias = Annotated[
    Literal["salted_xor", "ordered", "xor"] | None,
    typer.Option("--bind", help="url: how segments are bound; xor is the paper to the letter."),
]
LayerSizes: TypeAlias = Annotated[
    Any,
    typer.Option(
        "--layer-sizes",
        parser=parse_layer_sizes,
        metavar="measured|uniform|N,N,...",
        help="url: distinct prefixes that each depth is made for.",
        show_default=False,
    ),
]
Derivation: TypeAlias = Annotated[
    Literal["enhanced", "double", "slices"] | None,
    typer.Option("--derivation", help="How positions come from a key's digest."),
]

JsonMap: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--json-map",
        metavar="MAP",
        help="Where JSON lines have their fields: path=request.uri|uri,time=ts,ip=remote_addr.",
    ),
]
NoQuery: TypeAlias = Annotated[
    bool, typer.Option("--no-query", help="Leave out what follows the `?` of a path.")
]
