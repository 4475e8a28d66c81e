"""`bloomtide history info`, `segments`, `compact` and `verify`: what a store consists of."""

from __future__ import annotations

from pathlib import Path

import click

from bloomtide.cli import console
from bloomtide.cli.history import options, tables
from bloomtide.cli.history.charts import moment
from bloomtide.cli.history.stores import must_exist, open_reading, tell_missing
from bloomtide.cli.options import as_json, option
from bloomtide.cli.quantities import parse_error_rate, show_bytes, show_count, show_rate, show_span

MADE_BY = ("window", "arrivals", "error_rate", "retention", "lateness", "sync", "hash", "location")
"""Settings that `info` shows."""
SHOWN = ("id", "level", "state", "begin", "end", "rows", "events", "bytes", "predicted_error",
         "parent", "file", "checksum")  # fmt: skip


@click.command()
@options.store
@as_json
def info(store: Path, json: bool) -> int:
    """Show what a store was made by, what it holds, and which of its files are damaged."""
    with open_reading(store) as history:
        stats, settings = history.stats(), history._state.settings
    facts = {name: getattr(settings, name) for name in MADE_BY}
    facts["window"] = history.window
    facts["lateness"] = settings.lateness / 1e6
    if json:
        console.write_json(facts | stats.as_dict())
        return 0
    from rich.table import Table

    levels = ", ".join(f"{number:,} of level {level}" for level, number in enumerate(stats.levels))
    shown = Table.grid(padding=(0, 3))
    shown.add_column(style="bold")
    shown.add_column()
    for name, value in facts.items():
        if value is not None:
            times = show_span(value) if name in {"window", "lateness"} else str(value)
            shown.add_row(name.replace("_", " "), times)
    shown.add_row("events", show_count(stats.events))
    if stats.first is not None and stats.last is not None:
        shown.add_row("times", f"{moment(stats.first, 1)} to {moment(stats.last, 1)} UTC")
    shown.add_row("segments", levels or "none")
    shown.add_row("bytes", show_bytes(stats.bytes))
    shown.add_row("predicted error", show_rate(stats.predicted_error))
    console.show(shown)
    for problem in stats.damaged:
        console.error(problem)
    return 0


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
@as_json
def compact(
    store: Path,
    retention: str | None,
    max_error: float | None,
    json: bool,
) -> int:
    """Roll up what is complete, and drop what retention no longer keeps."""
    must_exist(store)
    from bloomtide.history import History

    with History.open(store, retention=retention, background=False) as history:
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
