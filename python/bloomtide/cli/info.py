"""`bloomtide info`: what is in a filter file."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bloomtide.cli import console
from bloomtide.cli.files import read_state
from bloomtide.cli.instants import show_when
from bloomtide.cli.kinds import Filter
from bloomtide.cli.options import as_json, filter_file
from bloomtide.cli.quantities import show_bytes, show_count, show_rate
from bloomtide.errors import OverfullWarning

if TYPE_CHECKING:
    from rich.table import Table

    from bloomtide.recent import RecentFilter

PARAMETERS = (
    "capacity", "error_rate", "within", "generations",
    "half_life", "decay", "epoch", "rounding", "storage", "total",
    "partitions", "layout", "bits", "hashes", "counter_bits",
    "fraction_bits", "policy", "growth", "tightening", "max_layers", "bind",
    "layer_sizes", "derivation", "hash", "seed",
)  # fmt: skip


@click.command()
@filter_file
@as_json
def info(file: Path, json: bool) -> int:
    """Show a filter's kind, parameters, fill, items and error rate as it is now."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverfullWarning)  # it is among the facts
        facts = describe(file, read_state(file))
    if json:
        console.write_json(facts)
        return 0
    console.show(_facts_table(facts))
    if facts["stats"]["layers"]:
        console.show("", _layers_table(facts["stats"]["layers"]))
    for warning in facts["stats"]["warnings"]:
        console.show(f"warning: {warning}")
    return 0


def describe(file: Path, filter: Filter | RecentFilter) -> dict[str, Any]:
    """The facts as plain values: what `--json` prints."""
    stats = filter.stats()
    return {
        "file": console.printable(str(file)),
        "file_bytes": file.stat().st_size if file.exists() else None,
        "state": "sealed" if getattr(filter, "path", None) is None else "live",
        "kind": stats.kind,
        "parameters": {n: getattr(filter, n) for n in PARAMETERS if hasattr(filter, n)},
        "time": getattr(filter, "time", None),
        "stats": stats.as_dict(),
    }


def _facts_table(facts: dict[str, Any]) -> Table:
    from rich.table import Table

    stats = facts["stats"]
    table = Table.grid(padding=(0, 3))
    table.add_column(style="bold")
    table.add_column()
    table.add_row("file", f"{facts['file']} ({show_bytes(facts['file_bytes'])})")
    table.add_row("kind", facts["kind"])
    if facts["state"] == "live":
        table.add_row("state", "live: open for writing or never closed, no checksums to check")
    for name, value in facts["parameters"].items():
        shown = show_rate(value) if name == "error_rate" else value
        table.add_row(name.replace("_", " "), f"{shown:,}" if type(shown) is int else str(shown))
    if facts["time"] is not None:
        table.add_row("time", show_when(facts["time"]))
    table.add_row("items", f"about {show_count(stats['items'])}")
    table.add_row("fill", show_rate(stats["fill"]))
    table.add_row("error now", show_rate(stats["predicted_error"]))
    table.add_row("memory", show_bytes(stats["bytes"]))
    if facts["kind"] not in {"bloom", "scalable", "url", "recent"}:
        cells = "blocks" if facts["kind"] == "tbf" else "counters"
        table.add_row("saturated", f"{stats['saturated']:,} {cells}")
    return table


def _layers_table(layers: list[dict[str, Any]]) -> Table:
    from rich.table import Table

    deep = layers[0]["depth"] is not None
    order = "by depth" if deep else "oldest first"
    table = Table(title=f"layers, {order}", title_justify="left")
    for heading in ("capacity", "items", "hashes", "fill", "error now", "memory"):
        table.add_column(heading, justify="right")
    for layer in layers:
        table.add_row(
            show_count(layer["capacity"]),
            show_count(layer["items"]),
            str(layer["hashes"]),
            show_rate(layer["fill"]),
            show_rate(layer["predicted_error"]),
            show_bytes(layer["bytes"]),
        )
    return table
