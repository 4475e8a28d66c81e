"""`bloomtide history count`, `total`, `series` and `top`: what a store says of a range of time."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bloomtide.cli import console
from bloomtide.cli.history import charts, options, tables
from bloomtide.cli.history.stores import Span, open_reading, span_of, tell_missing
from bloomtide.cli.keys import key_batches
from bloomtide.cli.options import PATH, as_json, given_keys, key_files, option
from bloomtide.cli.quantities import show_count, show_rate
from bloomtide.errors import require

if TYPE_CHECKING:
    from bloomtide.history import History

ALL = "all keys"
TOTALS = 100_000
"""Steps of a series of totals at most; each is a question."""


FEW = 8
"""Keys that are counted one by one: an answer of a batch is an array, and NumPy loads for 0.1 s."""


@click.command()
@options.store
@key_files
@given_keys
@options.span
@as_json
def count(
    store: Path,
    keys: tuple[str, ...],
    key: tuple[str, ...],
    start: float | None,
    end: float | None,
    last: str | None,
    json: bool,
) -> int:
    """Print `count<TAB>key` for each key in a range of time; exit with 1 if all counts are 0.

    A count is never too small. With --json each answer has its bounds.
    """
    found = 0
    with open_reading(store) as history:
        span = span_of(history, start, end, last)
        if span is None:
            console.message("the store is empty")
            span = Span(0, 0)
        for batch in key_batches(keys, key, prints_lines=True):
            if json:
                answers = [history.count(name, span.start, span.end) for name in batch]
                found += sum(answer.upper > 0 for answer in answers)
                console.write_lines(
                    [
                        console.to_json(console.key_json(name) | answer.as_dict())
                        for name, answer in zip(batch, answers, strict=True)
                    ]
                )
                continue
            if len(batch) <= FEW:
                counts = [history.count(name, span.start, span.end).upper for name in batch]
            else:
                counts = history.count_many(batch, span.start, span.end).tolist()
            found += sum(count > 0 for count in counts)
            console.write_lines([b"%d\t%s" % pair for pair in zip(counts, batch, strict=True)])
        total = history.total(span.start, span.end)
    tell_missing(total.missing, total.partial)
    return 0 if found else 1


@click.command()
@options.store
@options.span
@as_json
def total(store: Path, start: float | None, end: float | None, last: str | None, json: bool) -> int:
    """Print how many events of all keys there are in a range of time; exit with 1 if none.

    Exact, but a row that the range cuts is counted whole. With --json the answer has its bounds.
    """
    with open_reading(store) as history:
        span = span_of(history, start, end, last) or Span(0, 0)
        answer = history.total(span.start, span.end)
    if json:
        console.write_json(answer.as_dict())
    else:
        console.write_lines([b"%d" % answer.upper])
    tell_missing(answer.missing, answer.partial)
    return 0 if answer.upper else 1


@click.command()
@options.store
@given_keys
@options.span
@option("--step", metavar="TIME", help="Of each count; if not given, a round length.")
@option("--plot", metavar="FILE", type=PATH, help="Draw it into an SVG file.")
@options.as_csv
@options.as_arrow
@as_json
def series(
    store: Path,
    key: tuple[str, ...],
    start: float | None,
    end: float | None,
    last: str | None,
    step: str | None,
    plot: Path | None,
    csv: bool,
    arrow: bool,
    json: bool,
) -> int:
    """Show counts step by step: as a chart, or as CSV, JSON lines or Arrow.

    Without --key the events of all keys are counted. Counts are upper bounds.
    """
    form = tables.chosen(as_csv=csv, as_json=json, as_arrow=arrow)
    with open_reading(store) as history:
        found = span_of(history, start, end, last)
        if found is None:
            console.message("the store is empty")
            return 1
        length = found.step() if step is None else _seconds(step)
        span = found.aligned(length) if step is None and start is None else found
        names = [os.fsencode(name) for name in key]
        columns, missing = columns_of(history, names, span, length)
    if plot is not None:
        charts.write_svg(
            plot, _chart(columns, span, length, names), f"{store.name}, by {length:g} s"
        )
    if form is not None:
        tables.write(columns, form)
    elif plot is None:
        _show(_chart(columns, span, length, names))
    tell_missing(missing)
    return 0 if any(columns["upper"]) else 1


@click.command()
@options.store
@option(
    "-n",
    "--number",
    metavar="N",
    type=int,
    default=10,
    show_default=True,
    help="How many to show.",
)
@options.span
@options.as_csv
@options.as_arrow
@as_json
def top(
    store: Path,
    number: int,
    start: float | None,
    end: float | None,
    last: str | None,
    csv: bool,
    arrow: bool,
    json: bool,
) -> int:
    """Show the most frequent keys of a range of time.

    A key's true count lies between its bounds. Keys that are not shown came at most as often as the
    last line says.
    """
    require("number", number, "1 to 1000000", 1 <= number <= 1_000_000)
    form = tables.chosen(as_csv=csv, as_json=json, as_arrow=arrow)
    with open_reading(store) as history:
        span = span_of(history, start, end, last)
        if span is None:
            console.message("the store is empty")
            return 1
        answer = history.top(span.start, span.end, number)
    items = answer.items
    columns: tables.Columns = {
        "key": [as_bytes(item.key) for item in items],
        "upper": [int(item.count) for item in items],
        "lower": [int(item.lower) for item in items],
        "share": [item.share for item in items],
    }
    if form is not None:
        tables.write(columns, form)
    else:
        from rich.table import Table
        from rich.text import Text

        shown = Table()
        shown.add_column("key", no_wrap=True, overflow="ellipsis", max_width=90)
        for heading in ("at most", "at least", "share"):
            shown.add_column(heading, justify="right", no_wrap=True)
        for name, upper, lower, share in zip(*columns.values(), strict=True):
            text = Text(console.printable(name.decode("utf-8", "backslashreplace")))
            shown.add_row(text, show_count(upper), show_count(lower), show_rate(share))
        console.show(shown)
    console.message(
        f"{show_count(answer.total)} events; any other key at most {show_count(answer.unlisted)}"
    )
    tell_missing(answer.missing)
    return 0 if items else 1


def columns_of(
    history: History, keys: list[bytes], span: Span, step: float
) -> tuple[tables.Columns, tuple[tuple[float, float], ...]]:
    """A row for each key and step: key, start, upper, inner, estimate; and what is missing."""
    import numpy as np

    if not keys:
        return _totals(history, span, step)
    parts = [history.series(key, span.start, span.end, step) for key in keys]
    columns: tables.Columns = {
        "key": [key for key, part in zip(keys, parts, strict=True) for _ in range(len(part))],
        **{
            field: np.concatenate([getattr(part, field) for part in parts])
            for field in ("start", "upper", "inner", "estimate")
        },
    }
    return columns, parts[0].missing


def _totals(
    history: History, span: Span, step: float
) -> tuple[tables.Columns, tuple[tuple[float, float], ...]]:
    """The same for the events of all keys, without a name."""
    import numpy as np

    count = math.ceil((span.end - span.start) / step - 1e-9)
    require("step", step, f"long enough for at most {TOTALS:,} steps", count <= TOTALS)
    starts = [span.start + number * step for number in range(count)]
    answers = [history.total(start, min(start + step, span.end)) for start in starts]
    columns: tables.Columns = {
        "key": [None] * count,
        "start": np.array([round(start * 1e6) for start in starts], dtype="datetime64[us]"),
        "upper": np.array([answer.upper for answer in answers], dtype=np.uint64),
        "inner": np.array([answer.inner for answer in answers], dtype=np.uint64),
        "estimate": np.array([answer.estimate for answer in answers]),
    }
    return columns, history.total(span.start, span.end).missing


def as_bytes(key: Any) -> bytes:
    """A key as its bytes; integers as their digits."""
    if isinstance(key, bytes):
        return key
    return str(key).encode()


def _seconds(step: str) -> float:
    from bloomtide._core import parse_duration

    return parse_duration(step, "step")


def _chart(columns: tables.Columns, span: Span, step: float, keys: list[bytes]) -> charts.Chart:
    values = columns["upper"].tolist()
    each = len(values) // max(1, len(keys))
    names = [console.printable(key.decode("utf-8", "backslashreplace")) for key in keys] or [ALL]
    lines = {name: values[i * each : (i + 1) * each] for i, name in enumerate(names)}
    return charts.Chart(span.start, step, lines)


def _show(chart: charts.Chart) -> None:
    """One key as a chart, several as a line each."""
    from rich.text import Text

    screen = console.stdout_console()
    lone = len(chart.lines) == 1
    for name, values in chart.lines.items():
        high = charts.HEIGHT if lone else 1
        rows = charts.blocks(values, screen.width - 2, high, screen.encoding)
        highest, total = max(values, default=0), sum(values)
        console.show(
            Text(f"{name}: {show_count(total)} in all, at most {show_count(highest)} a step")
        )
        for row in rows:
            console.show(Text(row, style="blue"))
    left = charts.moment(chart.start, chart.step)
    right = charts.moment(chart.end, chart.step)
    width = min(screen.width - 2, chart.steps)
    gap = max(4, width - len(left) - len(right))
    console.show(Text(f"{left}{' ' * gap}{right} UTC, steps of {chart.step:g} s", style="dim"))
