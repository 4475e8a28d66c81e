"""`bloomtide remove`: take keys out of a filter that counts."""

from __future__ import annotations

import os
from pathlib import Path

import click

from bloomtide import TimeDecayingBloomFilter
from bloomtide.cli import console
from bloomtide.cli.files import filter_to_change
from bloomtide.cli.keys import key_batches, with_counts
from bloomtide.cli.kinds import Counting, require_counting
from bloomtide.cli.options import as_json, counted_lines, filter_file, given_keys, key_files
from bloomtide.errors import AbsentKeyError


@click.command()
@filter_file
@key_files
@given_keys
@counted_lines
@as_json
def remove(
    file: Path,
    keys: tuple[str, ...],
    key: tuple[str, ...],
    counts: bool,
    json: bool,
) -> int:
    """Remove one occurrence of each key, or nothing at all.

    The file is replaced only if every key was there; otherwise the first that was not is named.
    """
    read = occurrences = 0
    with filter_to_change(file) as filter:
        counter = require_counting(filter, file)
        for batch in key_batches(keys, key):
            names, weights = with_counts(batch) if counts else (batch, [1] * len(batch))
            _remove(counter, names, weights)
            read += len(names)
            occurrences += sum(weights)
    if json:
        console.write_json({"read": read, "removed": occurrences})
    else:
        console.message(f"{occurrences:,} removed")
    return 0


def _remove(filter: Counting, keys: list[bytes], counts: list[int]) -> None:
    if isinstance(filter, TimeDecayingBloomFilter):
        raise console.CommandError(
            "a filter that fades does not remove", hint="its counts go away by themselves"
        )
    try:
        filter.remove_many(keys, counts)
    except AbsentKeyError as problem:
        # A batch tells how many keys came before the one that it refused.
        absent = keys[problem.added or 0]
        raise console.CommandError(
            f"{os.fsdecode(absent)} is not there {problem.requested:,} times:"
            f" at most {problem.estimate:,}",
            hint="remove only what was added; the file is as it was",
        ) from None
