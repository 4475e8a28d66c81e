"""`bloomtide check`: which keys are in a filter file. The grep of filters."""

from __future__ import annotations

from itertools import compress
from pathlib import Path

import click

from bloomtide.cli import console
from bloomtide.cli.files import read_filter
from bloomtide.cli.keys import by_line, key_batches
from bloomtide.cli.options import as_json, filter_file, flag, given_keys, key_files


@click.command()
@filter_file
@key_files
@given_keys
@flag("-v", "--invert", help="Select the keys that are certainly absent.")
@flag("-c", "--count", help="Print only how many were selected.")
@flag("-q", "--quiet", help="Print nothing, stop at the first selected.")
@as_json
def check(
    file: Path,
    keys: tuple[str, ...],
    key: tuple[str, ...],
    invert: bool,
    count: bool,
    quiet: bool,
    json: bool,
) -> int:
    """Print the keys that are (maybe) present; exit with 0 if there are any, else with 1.

    Absent is certain. Present is wrong for the share of absent keys that `bloomtide info` shows.
    """
    filter = read_filter(file)
    read = selected = 0
    prints_lines = not (count or quiet)
    for batch in key_batches(keys, key, prints_lines=prints_lines):
        with by_line(read):
            hits = filter.contains_many(batch) ^ invert
        read += len(batch)
        selected += int(hits.sum())
        if quiet and selected:
            break
        if prints_lines:
            lines = list(compress(batch, hits.tolist()))
            if json:
                lines = [console.to_json(console.key_json(k) | {"present": not invert})
                         for k in lines]  # fmt: skip
            console.write_lines(lines)
    if count and not quiet:
        if json:
            console.write_json({"read": read, "selected": selected})
        else:
            console.write_lines([b"%d" % selected])
    return 0 if selected else 1
