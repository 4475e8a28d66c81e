"""`bloomtide history segments`, `compact` and `verify`: what a store consists of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bloomtide.cli import console
from bloomtide.cli.history import options, tables
from bloomtide.cli.history.charts import moment
from bloomtide.cli.history.stores import must_exist, open_reading, tell_missing
from bloomtide.cli.options import as_json, option
from bloomtide.cli.quantities import parse_error_rate, show_bytes, show_count, show_rate, show_span

if TYPE_CHECKING:
    from bloomtide.history import History, SegmentReport

SHOWN = ("id", "level", "state", "begin", "end", "rows", "events", "bytes", "predicted_error",
         "parent", "file", "checksum")  # fmt: skip


@click.command()
@options.store
@options.as_csv
@options.as_arrow
@as_json
def segments(store: Path, csv: bool, arrow: bool, json: bool) -> int:
    """List the segments of a store: their time, level, size and predicted error."""
    form = tables.chosen(as_csv=csv, as_json=json, as_arrow=arrow)
    with open_reading(store) as history:
        found = history.segments()
    if form is not None:
        tables.write({name: [getattr(one, name) for one in found] for name in SHOWN}, form)
        return 0
    from rich.table import Table

    shown = Table()
    for heading in ("id", "level", "state", "begins (UTC)", "spans", "rows", "events", "bytes",
                    "error", "in"):  # fmt: skip
        shown.add_column(heading, justify="right", no_wrap=True)
    for one in found:
        shown.add_row(
            "-" if one.id is None else str(one.id),
            str(one.level),
            one.state,
            moment(one.begin, 60),
            show_span(one.end - one.begin),
            show_count(one.rows),
            show_count(one.events),
            show_bytes(one.bytes),
            show_rate(one.predicted_error),
            "-" if one.parent is None else str(one.parent),
        )
    console.show(shown)
    return 0


@click.command()
@options.store
@option("--retention", metavar="RULES", help='From now on: "1m for 1d, 1h for 30d, 1d for 10y".')
@option(
    "--max-error",
    metavar="RATE",
    type=parse_error_rate,
    help="Refuse what would make a larger share of the answers wrong.",
)
@option(
    "--merge-rows", metavar="ID", type=int, help="Instead: merge each two rows of this segment."
)
@option("--join", metavar="ID,ID", help="Instead: make one segment of these two neighbours.")
@as_json
def compact(
    store: Path,
    retention: str | None,
    max_error: float | None,
    merge_rows: int | None,
    join: str | None,
    json: bool,
) -> int:
    """Roll up what is complete, and drop what retention no longer keeps.

    --merge-rows and --join are the paper's compressions: they lose what cannot be had back.
    """
    must_exist(store)
    from bloomtide.history import History

    with History.open(store, retention=retention, background=False) as history:
        if merge_rows is not None or join is not None:
            made = _compressed(history, merge_rows, join, max_error)
            if json:
                console.write_json(made.as_dict())
            else:
                console.message(
                    f"segment {made.id}: {made.rows:,} rows, {show_bytes(made.bytes)}, error"
                    f" {show_rate(made.predicted_error)}"
                )
            return 0
        report = history.compact(max_error=max_error)
    if json:
        console.write_json(report.as_dict())
    else:
        console.message(
            f"sealed {report.sealed:,}, rolled up {report.rolled_up:,}, dropped"
            f" {report.dropped:,} segments; {show_bytes(report.bytes_before)} before,"
            f" {show_bytes(report.bytes_after)} now"
        )
    return 0


@click.command()
@options.store
@as_json
def verify(store: Path, json: bool) -> int:
    """Check every byte of every segment and the table of them; exit with 2 if any is bad."""
    with open_reading(store) as history:
        report = history.verify()
    if json:
        console.write_json(report.as_dict() | {"ok": not report.problems})
    elif not report.problems:
        console.write_lines(
            [f"{store}: ok, {report.segments:,} segments, {show_bytes(report.bytes)}".encode()]
        )
    for problem in report.problems:
        console.error(problem)
    tell_missing(report.missing)
    return 2 if report.problems else 0


def _compressed(
    history: History, merge_rows: int | None, join: str | None, max_error: float | None
) -> SegmentReport:
    if merge_rows is not None and join is not None:
        raise console.CommandError("--merge-rows and --join are two steps", hint="take one first")
    if max_error is None:
        raise console.CommandError(
            "this step raises the error", hint="say with --max-error how far it may go"
        )
    if merge_rows is not None:
        return history.compress(merge_rows, max_error=max_error)
    try:
        first, second = map(int, (join or "").split(","))
    except ValueError:
        raise console.CommandError(
            f"--join takes two ids: {join}", hint="such as 12,13; `segments` lists them"
        ) from None
    return history.join(first, second, max_error=max_error)
