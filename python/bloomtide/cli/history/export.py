"""`bloomtide history export`: rows of a store, for other programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from bloomtide._core import parse_duration
from bloomtide.cli import console
from bloomtide.cli.history import tables
from bloomtide.cli.history.ask import as_bytes, columns_of
from bloomtide.cli.history.options import AsArrow, AsCsv, End, Last, Start, Store
from bloomtide.cli.history.stores import open_reading, span_of, tell_missing
from bloomtide.cli.options import AsJson, GivenKeys
from bloomtide.cli.quantities import show_count
from bloomtide.errors import require


def export(
    store: Store,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Where to: .csv, .json or .arrow; stdout if not given.",
            show_default=False,
        ),
    ] = None,
    key: GivenKeys = None,
    number: Annotated[
        int,
        typer.Option("-n", "--number", help="Without --key: so many of the most frequent keys."),
    ] = 0,
    start: Start = None,
    end: End = None,
    last: Last = None,
    step: Annotated[
        str | None,
        typer.Option("--step", metavar="TIME", help="Of each count; the store's window."),
    ] = None,
    csv: AsCsv = False,
    arrow: AsArrow = False,
    json: AsJson = False,
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
        names = [os.fsencode(name) for name in key or []]
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
