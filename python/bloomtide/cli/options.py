"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from bloomtide.cli.instants import parse_when
from bloomtide.cli.quantities import (
    parse_error_rate,
    parse_items,
    parse_layer_sizes,
    parse_partitions,
)

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]

PATH = click.Path(path_type=Path, readable=False)
"""Completed by shells. Whether it can be read is found out, and told, by whoever reads it."""
SOURCE = click.Path(readable=False)
"""The same as text, since `-` is stdin."""


def option(*names: str, metavar: str, help: str, **more: Any) -> Decorator[Any]:
    """An option with a value. Its metavar is the word that the documentation has for it."""
    return click.option(*names, metavar=metavar, help=help, **more)


def flag(*names: str, help: str) -> Decorator[Any]:
    """An option without a value."""
    return click.option(*names, is_flag=True, help=help)


def choice(
    *names: str, of: tuple[str, ...], metavar: str, help: str, **more: Any
) -> Decorator[Any]:
    """An option whose value is one of some words; the help text says which."""
    return option(*names, metavar=metavar, help=help, type=click.Choice(of), **more)


def together(*options: Decorator[Any]) -> Decorator[Any]:
    """Several options as one, in this order."""

    def decorate(command: Command) -> Command:
        for one in reversed(options):
            command = one(command)
        return command

    return decorate


filter_file = click.argument("file", metavar="FILE", type=PATH, help="The filter file.")
key_files = click.argument(
    "keys",
    metavar="[KEYS-FILE]...",
    nargs=-1,
    type=SOURCE,
    help="Files with one key per line, also .gz and .zst; `-` is stdin, the default.",
)
log_files = click.argument(
    "files",
    metavar="[FILE]...",
    nargs=-1,
    type=SOURCE,
    help="Logs, also .gz and .zst; `-` is stdin, the default.",
)
given_keys = option(
    "--key", metavar="KEY", multiple=True, help="A key given here; can be repeated."
)
as_json = flag("--json", help="Write JSON to stdout.")
force_new = flag("--force", help="Replace a file that exists.")
counted_lines = flag(
    "--counts", help="Lines are `count<TAB>key`, as `bloomtide count` prints them."
)
instant = option(
    "--at",
    metavar="WHEN",
    type=parse_when,
    help="tbf: ISO 8601, in UTC if it names no zone, or Unix seconds; now if not given.",
)

error_rate = option(
    "--error",
    metavar="RATE",
    type=parse_error_rate,
    help="Largest share of absent keys called present, such as 0.001 or 0.1%; 1% if not given.",
)
goals = together(
    option(
        "--items",
        metavar="N",
        type=parse_items,
        help="Distinct keys to be held, such as 1000000, 1e9 or 10M.",
    ),
    error_rate,
    choice(
        "--kind",
        of=("bloom", "scalable", "counting", "sbf", "dcf", "psbf", "pdcf", "tbf", "url"),
        metavar="KIND",
        help="bloom: membership; scalable: grows; counting: counts, removes;"
        " sbf, dcf, psbf, pdcf: counts without an upper end, for hot keys;"
        " tbf: counts that fade with time; url: URLs, their hosts and directories.",
    ),
    option(
        "--total",
        metavar="M",
        type=parse_items,
        help="sbf, dcf, psbf, pdcf: occurrences of all keys together; 10 a key if not given.",
    ),
)
"""What a filter is for."""

shape = together(
    option(
        "--partitions",
        metavar="N|auto",
        type=parse_partitions,
        help="psbf, pdcf: pieces that are rebuilt alone, and widened alone by a hot key.",
    ),
    choice(
        "--layout",
        of=("blocked", "classic"),
        metavar="LAYOUT",
        help="Not scalable: blocked is faster, classic smaller at low error rates.",
    ),
    option(
        "--hashes",
        metavar="N",
        type=int,
        help="Cells per key: with --bits or --cells; sbf, dcf, psbf, pdcf: also with --items.",
    ),
    option(
        "--counter-bits",
        metavar="N",
        type=int,
        help="counting: 4, 8, 16 or 32 bits a counter; dcf, pdcf: 1 to 32 in the base array;"
        " tbf: 16 or 32.",
    ),
    choice(
        "--policy",
        of=("plain", "conservative"),
        metavar="POLICY",
        help="Of counters: plain; conservative counts closer but cannot remove.",
    ),
    option("--slack", metavar="X", type=float, help="sbf, psbf: spare bits a counter, 0 to 64."),
    option(
        "--shrink",
        metavar="X",
        type=float,
        help="dcf, pdcf: how eagerly memory is given back, 0 to 1.",
    ),
    option(
        "--growth",
        metavar="X",
        type=float,
        help="scalable: how much larger each new layer is.",
    ),
    option(
        "--tightening",
        metavar="X",
        type=float,
        help="scalable: factor of each new layer's error rate.",
    ),
    option(
        "--half-life",
        metavar="TIME",
        help="tbf: time in which a count halves: 90s, 15m, 1h, 7d.",
    ),
    option(
        "--decay",
        metavar="X",
        type=float,
        help="tbf: what remains of a count after each --epoch, 0 to 1.",
    ),
    option(
        "--epoch",
        metavar="TIME",
        help="tbf: how often counts fade; a tenth of --half-life.",
    ),
    choice(
        "--rounding",
        of=("strict", "expiring"),
        metavar="HOW",
        help="tbf: strict never counts too little, expiring reaches zero.",
    ),
    choice(
        "--storage",
        of=("basic", "optimized"),
        metavar="WHAT",
        help="tbf: what holds its cells, basic or optimized.",
    ),
    option(
        "--max-layers",
        metavar="N",
        type=int,
        help="url: depths that are told apart, 1 to 64; 8 if not given.",
    ),
    option(
        "--layer-sizes",
        metavar="SIZES",
        type=parse_layer_sizes,
        help="url: distinct prefixes that each depth is made for: uniform or N,N,...",
    ),
)
"""How a filter is built: `bloomtide.cli.kinds.parameters` knows which kind takes which."""

by_field = choice(
    "--by",
    of=("path", "host", "ip", "status", "referer"),
    metavar="FIELD",
    default="path",
    show_default=True,
    help="What is counted: path, host, ip, status or referer.",
)
json_map = option(
    "--json-map",
    metavar="MAP",
    help="Where JSON lines have their fields: path=request.uri|uri,time=ts,ip=remote_addr.",
)
no_query = flag("--no-query", help="Leave out what follows the `?` of a path.")
