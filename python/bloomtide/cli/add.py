"""`bloomtide add`: put keys into a filter file."""

from __future__ import annotations

from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bloomtide import CountFilter, CountingBloomFilter
from bloomtide.cli import console
from bloomtide.cli.files import filter_to_change
from bloomtide.cli.keys import by_line, key_batches, with_counts
from bloomtide.cli.kinds import Counting, at_instant, by_date, require_counting
from bloomtide.cli.options import (
    as_json,
    counted_lines,
    filter_file,
    flag,
    given_keys,
    instant,
    key_files,
)
from bloomtide.cli.quantities import show_seconds

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@click.command()
@filter_file
@key_files
@given_keys
@flag("--new", help="Print the keys that were certainly not there before.")
@counted_lines
@instant
@flag("--shared", help="Map the file: each key is in at once, for all processes.")
@as_json
def add(
    file: Path,
    keys: tuple[str, ...],
    key: tuple[str, ...],
    new: bool,
    counts: bool,
    at: float | None,
    shared: bool,
    json: bool,
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
        counter = require_counting(filter, file) if counts else None
        when: Any = at_instant(filter, file, at)
        for batch in key_batches(keys, key, prints_lines=new):
            if counter is None:
                with by_line(read), by_date(filter, at):
                    fresh = filter.add_many(batch, **when)
            else:
                batch, weights = with_counts(batch)
                with by_date(filter, at):
                    fresh = _add_weighted(counter, batch, weights, when)
            read += len(batch)
            added += int(fresh.sum())
            if new:
                # Written before the file is saved: a key nobody read is not remembered as seen.
                console.write_lines(list(compress(batch, fresh.tolist())))
        pauses = _pauses(filter)
    if json:
        console.write_json({"read": read, "added": added, "present": read - added} | pauses)
    else:
        console.message(f"{added:,} new, {read - added:,} already there")
        if pauses.get("rebuilds"):
            longest = show_seconds(pauses["longest_pause"])
            console.message(f"{pauses['rebuilds']:,} rebuilds, the longest took {longest}")
    return 0


def _add_weighted(
    filter: Counting, keys: list[bytes], counts: list[int], when: Any
) -> npt.NDArray[np.bool_]:
    if isinstance(filter, CountingBloomFilter):
        import numpy as np

        return np.array([filter.add(k, n) for k, n in zip(keys, counts, strict=True)], dtype=bool)
    return filter.add_many(keys, counts, **when)


def _pauses(filter: object) -> dict[str, Any]:
    """What growing counters did while keys went in: a file does not tell it afterwards."""
    if not isinstance(filter, CountFilter):
        return {}
    stats = filter.stats()
    return {"rebuilds": stats.rebuilds, "longest_pause": stats.longest_pause}
