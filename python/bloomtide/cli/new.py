"""`bloomtide new`: make an empty filter file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bloomtide import BloomFilter
from bloomtide.cli import console
from bloomtide.cli.info import describe
from bloomtide.cli.kinds import KINDS, Filter, parameters
from bloomtide.cli.options import (
    AsJson,
    Bind,
    CounterBits,
    Decay,
    Derivation,
    Epoch,
    ErrorRate,
    FilterFile,
    Force,
    Growth,
    HalfLife,
    Hashes,
    Items,
    KindName,
    LayerSizes,
    Layout,
    MaxLayers,
    OnFull,
    Partitions,
    Placement,
    Policy,
    Rounding,
    Shrink,
    Slack,
    Tightening,
    Total,
)
from bloomtide.cli.quantities import parse_items, show_bytes


def new(
    file: FilterFile,
    items: Items = None,
    error: ErrorRate = None,
    kind: KindName = None,
    total: Total = None,
    partitions: Partitions = None,
    layout: Layout = None,
    bits: Annotated[
        int | None,
        typer.Option(
            "--bits", parser=parse_items, metavar="N", help="Size in bits, instead of --items."
        ),
    ] = None,
    cells: Annotated[
        int | None,
        typer.Option(
            "--cells",
            parser=parse_items,
            metavar="N",
            help="sbf, dcf, psbf, pdcf, tbf: number of counters, instead of --items.",
        ),
    ] = None,
    hashes: Hashes = None,
    counter_bits: CounterBits = None,
    policy: Policy = None,
    slack: Slack = None,
    on_full: OnFull = None,
    shrink: Shrink = None,
    growth: Growth = None,
    tightening: Tightening = None,
    derivation: Derivation = None,
    half_life: HalfLife = None,
    decay: Decay = None,
    epoch: Epoch = None,
    rounding: Rounding = None,
    placement: Placement = None,
    max_layers: MaxLayers = None,
    bind: Bind = None,
    layer_sizes: LayerSizes = None,
    hash: Annotated[
        Literal["xxh3", "keyed"] | None,
        typer.Option("--hash", help="keyed: a random secret defends against chosen keys."),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the hash.")] = None,
    shared: Annotated[
        bool,
        typer.Option("--shared", help="Make it memory-mapped, for many processes at once."),
    ] = False,
    force: Force = False,
    json: AsJson = False,
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
    chosen = parameters(
        kind,
        capacity=items,
        error_rate=error,
        layout=layout,
        bits=bits,
        cells=cells,
        hashes=hashes,
        total=total,
        partitions=partitions,
        counter_bits=counter_bits,
        policy=policy,
        slack=slack,
        on_full=on_full,
        shrink=shrink,
        growth=growth,
        tightening=tightening,
        derivation=derivation,
        half_life=half_life,
        decay=decay,
        epoch=epoch,
        rounding=rounding,
        placement=placement,
        max_layers=max_layers,
        bind=bind,
        layer_sizes=layer_sizes,
        hash=hash,
        seed=seed,
    )
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
    place = file.with_name(f"{file.name}.{os.getpid()}.new") if force else file
    with BloomFilter.open(place, mode="c", **chosen) as made:
        described = describe(file, made)
    if place != file:
        place.replace(file)
    return described | {"file_bytes": file.stat().st_size, "state": "sealed"}
