"""`bloomery add`: put keys into a filter file."""

from __future__ import annotations

from itertools import compress
from typing import Annotated

import typer

from bloomery.cli import console
from bloomery.cli.files import filter_to_change
from bloomery.cli.keys import key_batches
from bloomery.cli.options import AsJson, FilterFile, GivenKeys, KeyFiles


def add(
    file: FilterFile,
    keys: KeyFiles = None,
    key: GivenKeys = None,
    new: Annotated[
        bool, typer.Option("--new", help="Print the keys that were certainly not there before.")
    ] = False,
    shared: Annotated[
        bool,
        typer.Option("--shared", help="Map the file: each key is in at once, for all processes."),
    ] = False,
    json: AsJson = False,
) -> int:
    """Add keys, one per line, and tell how many were new.

    The file is replaced at the end in one step, or not at all. With --shared, or if other
    processes have the file open, each key goes in at once.
    """
    if new and json:
        raise console.CommandError(
            "--new and --json both write to stdout", hint="leave out one of them"
        )
    read = added = 0
    with filter_to_change(file, shared=shared) as filter:
        for batch in key_batches(keys or [], key or [], prints_lines=new):
            fresh = filter.add_many(batch)
            read += len(batch)
            added += int(fresh.sum())
            if new:
                # Written before the file is saved: a key nobody read is not remembered as seen.
                console.write_lines(list(compress(batch, fresh.tolist())))
    if json:
        console.write_json({"read": read, "added": added, "present": read - added})
    else:
        console.message(f"{added:,} new, {read - added:,} already there")
    return 0
