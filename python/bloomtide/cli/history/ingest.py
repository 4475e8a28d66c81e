"""`bloomtide history ingest`: logs into a store, a line never becoming a Python object."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bloomtide import LogCounter
from bloomtide.cli import console
from bloomtide.cli.history import options
from bloomtide.cli.logs import FORM, WHAT, finish
from bloomtide.cli.options import (
    as_json,
    by_field,
    choice,
    error_rate,
    json_map,
    log_files,
    no_query,
    option,
)
from bloomtide.cli.progress import reading
from bloomtide.cli.quantities import show_bytes, show_count
from bloomtide.cli.sources import chunks
from bloomtide.durable.policy import SYNCS, Sync

if TYPE_CHECKING:
    from bloomtide.history import History


class Log:
    """One log on its way into the store's buffer."""

    def __init__(self, history: History, **options: Any) -> None:
        self.history = history
        self.counter = history.feed(lambda buffer: LogCounter(buffer, **options))

    def feed(self, chunk: bytes) -> None:
        """What the lines of this chunk add is in the journal when this returns."""
        self.history.feed(lambda _: self.counter.feed(chunk))

    def finish(self) -> None:
        """The log has ended."""
        self.history.feed(lambda _: self.counter.finish())


@click.command()
@options.store
@log_files
@by_field
@option("--window", metavar="TIME", help="Of a new store: what one row spans; 1m if not given.")
@error_rate
@option(
    "--retention",
    metavar="RULES",
    help='How long rows are kept: "1m for 1d, 1h for 30d, 1d for 10y".',
)
@option("--lateness", metavar="TIME", help="How long rows wait for late lines; 0s.")
@choice(
    "--sync",
    of=SYNCS,
    metavar="WHEN",
    help="When a line is safe from a power cut: always, everysec (default) or no.",
)
@option(
    "--format",
    metavar="NAME",
    help="As `bloomtide top` has it; if not given, found from the first lines.",
)
@json_map
@no_query
@as_json
def ingest(
    store: Path,
    files: tuple[str, ...],
    by: str,
    window: str | None,
    error: float | None,
    retention: str | None,
    lateness: str | None,
    sync: Sync | None,
    format: str | None,
    json_map: str | None,
    no_query: bool,
    json: bool,
) -> int:
    """Count logs by time into a store, which is made if it is not there.

    Logs may come in any order: each line counts at its own time. Lines that are not understood
    are counted, and the first are shown.
    """
    from bloomtide.history import History

    sources = list(files) or ["-"]
    problems: list[console.CommandError] = []
    interrupted = False
    begun = time.perf_counter()
    with History.open(
        store,
        window,
        error_rate=error,
        retention=retention,
        lateness=lateness,
        sync=sync,
    ) as history:
        logs: list[Log] = []
        try:
            with reading(sources, what="logs") as advance:
                for source in sources:
                    words = {"query": not no_query, "format": format, "json_map": json_map}
                    log = Log(history, by=by, **words)
                    logs.append(log)
                    try:
                        for chunk in chunks(source, advance, WHAT, FORM):
                            log.feed(chunk)
                    except console.CommandError as problem:
                        # What was read of a damaged file counts, and the others are read as well.
                        problems.append(problem)
                    log.finish()
            history.compact()
        except KeyboardInterrupt:
            interrupted = True
        history.flush()
        stats = history.stats()
    reports = [log.counter.report() for log in logs]
    names = sources[: len(reports)]
    counted = sum(report.counted for report in reports)
    seconds = time.perf_counter() - begun
    if json:
        told = {
            "lines": sum(report.lines for report in reports),
            "counted": counted,
            "skipped": sum(report.skipped for report in reports),
            "without_field": sum(report.without for report in reports),
            "seconds": seconds,
            "store": stats.as_dict(),
        }
        console.write_json(told)
    elif counted:
        rate = show_count(counted / max(seconds, 1e-9))
        console.message(
            f"{show_count(counted)} lines counted, {rate} a second; the store holds"
            f" {show_count(stats.events)} events in {show_bytes(stats.bytes + stats.journal_bytes)}"
        )
    return finish(names, reports, problems, by=by, interrupted=interrupted)
