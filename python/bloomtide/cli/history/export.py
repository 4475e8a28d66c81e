"""`bloomtide history export`: rows of a store, for other programs."""

from __future__ import annotations

import os
from pathlib import Path

import click

from bloomtide._core import parse_duration
from bloomtide.cli import console
from bloomtide.cli.history import options, tables
from bloomtide.cli.history.ask import as_bytes, columns_of
from bloomtide.cli.history.stores import open_reading, span_of, tell_missing
from bloomtide.cli.options import PATH, as_json, given_keys, option
from bloomtide.cli.quantities import show_count
from bloomtide.errors import require


@click.command()
@options.store
@option(
    "--out",
    metavar="FILE",
    type=PATH,
    help="Where to: .csv, .json or .arrow; stdout if not given.",
)
@given_keys
@option(
    "-n",
    "--number",
    metavar="N",
    type=int,
    default=0,
    help="Without --key: so many of the most frequent keys.",
)
@options.span
@option("--step", metavar="TIME", help="Of each count; the store's window.")
@options.as_csv
@options.as_arrow
@as_json
def export(
    store: Path,
    out: Path | None,
    key: tuple[str, ...],
    number: int,
    start: float | None,
    end: float | None,
    last: str | None,
    step: str | None,
    csv: bool,
    arrow: bool,
    json: bool,
) -> int:
    """Write key, start and count of every step in which a key came; CSV if nothing else is asked.

    Without --key and -n the events of all keys are counted. Counts are upper bounds.
    """
    require("number", number, "0 to 1000000", 0 <= number <= 1_000_000)
    form = tables.chosen(as_csv=csv, as_json=json, as_arrow=arrow)
    if out is not None:
        named = tables.form_of(out)
        if form not in (None, named):
            raise console.CommandError(
                f"{out}: the name says {named} and the option {form}", hint="leave the option out"
            )
        form = named
    with open_reading(store) as history:
        found = span_of(history, start, end, last)
        if found is None:
            console.message("the store is empty")
            return 1
        length = history.window if step is None else parse_duration(step, "step")
        if length is None:
            raise console.CommandError(
                "rows of this store end by arrivals, not by time", hint="name a --step"
            )
        span = found.aligned(length) if start is None else found
        names = [os.fsencode(name) for name in key]
        if number and not names:
            hot = history.top(span.start, span.end, number).items
            names = [as_bytes(item.key) for item in hot]
        columns, missing = columns_of(history, names, span, length)
    there = columns["upper"].nonzero()[0]
    kept: tables.Columns = {
        "key": [columns["key"][row] for row in there.tolist()],
        **{name: columns[name][there] for name in ("start", "upper", "inner", "estimate")},
    }
    tables.write(kept, form or "csv", out)
    if out is not None:
        console.message(f"{show_count(len(there))} rows in {out}")
    tell_missing(missing)
    return 0 if len(there) else 1
