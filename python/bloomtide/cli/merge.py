"""`bloomtide merge`: one filter of all keys from several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bloomtide import ScalableBloomFilter
from bloomtide.cli import console, progress
from bloomtide.cli.files import read_filter
from bloomtide.cli.info import describe
from bloomtide.cli.new import refuse_existing
from bloomtide.cli.options import PATH, as_json, force_new
from bloomtide.errors import IncompatibleError


@click.command()
@click.argument("out", metavar="OUT", type=PATH, help="The file to write.")
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=PATH,
    help="Two or more filters made alike.",
)
@force_new
@as_json
def merge(out: Path, files: tuple[Path, ...], force: bool, json: bool) -> int:
    """Write to OUT the filter of all keys in the FILEs; counts are added up.

    The filters must agree in every parameter; nothing is written when they do not.
    """
    if len(files) < 2:
        raise console.CommandError(
            "there is one filter only", hint="bloomtide merge OUT FILE FILE..."
        )
    refuse_existing(out, force=force)
    merged: Any = None
    with progress.files([str(file) for file in files], "merging") as advance:
        for file in files:
            filter: Any = read_filter(file)
            if isinstance(filter, ScalableBloomFilter):
                raise console.CommandError(
                    f"{file} is a scalable filter, and those cannot be merged",
                    hint="make one bloom filter that is large enough, or ask each file in turn",
                )
            if merged is None:
                merged = filter.copy()
            elif type(merged) is not type(filter):
                raise console.CommandError(
                    f"{file} differs from {files[0]} in its kind:"
                    f" {filter.stats().kind} and {merged.stats().kind}",
                    hint="filters of one kind can be merged",
                )
            else:
                _merge_into(merged, filter, file)
            advance(file.stat().st_size)
    merged.save(out)
    if json:
        console.write_json(describe(out, merged))
    else:
        console.message(f"merged {len(files)} filters into {out}")
    return 0


def _merge_into(merged: Any, filter: Any, file: Path) -> None:
    try:
        merged.merge(filter)
    except IncompatibleError as problem:
        raise console.CommandError(f"{file}: {problem.message}", hint=problem.hint) from None
