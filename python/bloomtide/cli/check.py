"""`bloomtide check`: which keys are in a filter file. The grep of filters."""

from __future__ import annotations

from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bloomtide.cli import console
from bloomtide.cli.files import read_state
from bloomtide.cli.instants import parse_when, show_when
from bloomtide.cli.keys import by_line, key_batches
from bloomtide.cli.kinds import Filter, at_instant
from bloomtide.cli.options import as_json, filter_file, flag, given_keys, key_files, option

if TYPE_CHECKING:
    from bloomtide.recent import RecentFilter


@click.command()
@filter_file
@key_files
@given_keys
@flag("-v", "--invert", help="Select the keys that are certainly absent.")
@flag("-c", "--count", help="Print only how many were selected.")
@option(
    "--at",
    metavar="WHEN",
    type=parse_when,
    help="tbf: as of then; now if not given. A state of `dedup --within`: no earlier than the"
    " latest time it has seen, which is taken if none is given.",
)
@flag("-q", "--quiet", help="Print nothing, stop at the first selected.")
@as_json
def check(
    file: Path,
    keys: tuple[str, ...],
    key: tuple[str, ...],
    invert: bool,
    count: bool,
    quiet: bool,
    at: float | None,
    json: bool,
) -> int:
    """Print the keys that are (maybe) present; exit with 0 if there are any, else with 1.

    Absent is certain. Present is wrong for the share of absent keys that `bloomtide info` shows.
    A state of `dedup --within` is asked as of the latest time it has seen, or as of --at.
    """
    filter = read_state(file)
    when: Any = _as_of(filter, file, at)
    read = selected = 0
    prints_lines = not (count or quiet)
    for batch in key_batches(keys, key, prints_lines=prints_lines):
        with by_line(read):
            hits = filter.contains_many(batch, **when) ^ invert
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


def _as_of(filter: Filter | RecentFilter, file: Path, at: float | None) -> dict[str, float]:
    """The keyword that says when, for what keeps time."""
    if not hasattr(filter, "within"):
        return at_instant(filter, file, at)
    own: float | None = filter.time  # type: ignore[union-attr]
    if own is not None and at is not None and at < own:
        raise console.CommandError(
            f"{file} has seen {show_when(own)} and forgotten what was before",
            hint="leave out --at, or give a later one",
        )
    when = own if at is None else at
    return {} if when is None else {"at": when}
