"""The group of commands."""

from __future__ import annotations

import click

from bloomtide.cli.lazy import Entry, LazyGroup

COMMANDS = {
    "ingest": Entry(
        "bloomtide.cli.history.ingest:ingest", "Count logs by time into a store.", "history"
    ),
    "count": Entry(
        "bloomtide.cli.history.ask:count", "Counts of keys in a range of time.", "history"
    ),
    "series": Entry(
        "bloomtide.cli.history.ask:series", "Counts step by step, as chart or rows.", "history"
    ),
    "top": Entry(
        "bloomtide.cli.history.ask:top", "The most frequent keys of a range of time.", "history"
    ),
    "segments": Entry(
        "bloomtide.cli.history.keep:segments", "List the segments of a store.", "history"
    ),
    "compact": Entry(
        "bloomtide.cli.history.keep:compact", "Roll up and drop old segments.", "history"
    ),
    "verify": Entry("bloomtide.cli.history.keep:verify", "Check every byte of a store.", "history"),
    "export": Entry(
        "bloomtide.cli.history.export:export", "Write counts as CSV, JSON or Arrow.", "history"
    ),
}


@click.command(cls=LazyGroup, table=COMMANDS)
def history() -> None:
    """How many between t1 and t2? Counts of keys by time, in a store of their own."""
