"""The group of commands."""

from __future__ import annotations

import click

from bloomtide.cli.lazy import Entry, LazyGroup

COMMANDS = {
    "ingest": Entry("bloomtide.cli.history.ingest:ingest", "Count logs by time into a store."),
    "count": Entry("bloomtide.cli.history.ask:count", "Counts of keys in a range of time."),
    "total": Entry("bloomtide.cli.history.ask:total", "Events of all keys in a range of time."),
    "series": Entry("bloomtide.cli.history.ask:series", "Counts step by step, as chart or rows."),
    "top": Entry("bloomtide.cli.history.ask:top", "The most frequent keys of a range of time."),
    "info": Entry("bloomtide.cli.history.keep:info", "What a store holds, and how it was made."),
    "segments": Entry("bloomtide.cli.history.keep:segments", "List the segments of a store."),
    "compact": Entry("bloomtide.cli.history.keep:compact", "Roll up and drop old segments."),
    "verify": Entry("bloomtide.cli.history.keep:verify", "Check every byte of a store."),
    "export": Entry("bloomtide.cli.history.export:export", "Write counts as CSV, JSON or Arrow."),
}


@click.command(cls=LazyGroup, table=COMMANDS)
def history() -> None:
    """How many between t1 and t2? Counts of keys by time, in a store of their own."""
