"""`bloomtide new`: make an empty filter file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from bloomtide import BloomFilter
from bloomtide.cli import console
from bloomtide.cli.info import describe
from bloomtide.cli.kinds import KINDS, Filter, parameters
from bloomtide.cli.options import (
    as_json,
    choice,
    filter_file,
    flag,
    force_new,
    goals,
    option,
    shape,
)
from bloomtide.cli.quantities import parse_items, show_bytes


@click.command()
@filter_file
@goals
@shape
@option("--bits", metavar="N", type=parse_items, help="bloom: size in bits, instead of --items.")
@option(
    "--cells",
    metavar="N",
    type=parse_items,
    help="Of counters: how many, instead of --items.",
)
@choice(
    "--hash",
    of=("xxh3", "keyed"),
    metavar="NAME",
    help="xxh3; or keyed: a random secret defends against chosen keys.",
)
@option("--seed", metavar="N", type=int, help="Seed of the hash.")
@flag("--shared", help="Make it memory-mapped, for many processes at once.")
@force_new
@as_json
def new(
    file: Path,
    items: int | None,
    error: float | None,
    kind: str | None,
    bits: int | None,
    cells: int | None,
    shared: bool,
    force: bool,
    json: bool,
    **more: Any,
) -> int:
    """Make an empty filter file for --items keys, or with --bits or --cells and --hashes."""
    kind = kind or "bloom"
    size = "cells" if "cells" in KINDS[kind].takes else "bits"
    if items is None and bits is None and cells is None and kind != "scalable":
        raise console.CommandError(
            f"how large? neither --items nor --{size} is given",
            hint=f"bloomtide new {file} --items 10M --error 1%",
        )
    if shared and kind != "bloom":
        raise console.CommandError(
            f"--shared does not go with --kind {kind}", hint="it goes with --kind bloom"
        )
    refuse_existing(file, force=force)
    sizes = {"capacity": items, "error_rate": error, "bits": bits, "cells": cells}
    chosen = parameters(kind, **sizes, **more)
    made = _make_shared(file, chosen, force) if shared else _make(file, kind, chosen)
    if json:
        console.write_json(made)
    else:
        console.message(f"made {file}: {kind}, {show_bytes(made['stats']['bytes'])} of cells")
    return 0


def refuse_existing(file: Path, *, force: bool) -> None:
    """A filter can be years of keys: it is replaced only when that was said."""
    if not force and os.path.lexists(file):
        raise console.CommandError(f"{file} exists", hint="--force replaces it")


def _make(file: Path, kind: str, chosen: dict[str, Any]) -> dict[str, Any]:
    made: Filter = KINDS[kind].cls(**chosen)
    made.save(file)
    return describe(file, made)


def _make_shared(file: Path, chosen: dict[str, Any], force: bool) -> dict[str, Any]:
    # `open` uses an existing file. To replace one, the new file is made beside it and moved.
    if force:
        file = _replaceable(file)
    place = file.with_name(f"{file.name}.{os.getpid()}.new") if force else file
    with BloomFilter.open(place, mode="c", **chosen) as made:
        described = describe(file, made)
    if place != file:
        place.replace(file)
    return described | {"file_bytes": file.stat().st_size, "state": "sealed"}


def _replaceable(file: Path) -> Path:
    """Where the path leads: a file, or none yet. What is no file is not replaced, as in `save`."""
    target = Path(os.path.realpath(file))
    kinds = {
        "a directory": target.is_dir(),
        "a named pipe": target.is_fifo(),
        "a socket": target.is_socket(),
        "a device": target.is_char_device() or target.is_block_device(),
    }
    for kind, found in kinds.items():
        if found:
            raise console.CommandError(
                f"cannot write {file}: it is {kind}, not a file", hint="give the path of a file"
            )
    return target
