"""`bloomtide watch`: opens a monitor, feeds it, and shows it, on a page or in the terminal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bloomtide.cli import console
from bloomtide.cli.logs import finish, is_redis, told
from bloomtide.cli.options import (
    PATH,
    SOURCE,
    as_json,
    by_field,
    choice,
    flag,
    json_map,
    no_query,
    option,
)
from bloomtide.cli.quantities import parse_error_rate, parse_items
from bloomtide.cli.server_settings import read_settings, server_options
from bloomtide.durable.policy import SYNCS, Sync
from bloomtide.errors import require
from bloomtide.system import require_posix

if TYPE_CHECKING:
    from bloomtide.cli.watch.source import Feeder, Source
    from bloomtide.monitor import Monitor, SourceStats

LOOK = 0.25
"""Seconds between two looks whether all sources have ended."""


@click.command()
@click.argument(
    "sources",
    metavar="[SOURCE]...",
    nargs=-1,
    type=SOURCE,
    help="Logs, also .gz and .zst, patterns in quotes, `-` for stdin, or redis://host:port/stream.",
)
@flag("--demo", help="Watch the traffic of a site that does not exist.")
@option(
    "--data",
    metavar="DIR",
    type=PATH,
    help="Where everything is kept; bloomtide-data if not given.",
)
@flag("-f", "--follow", help="Go on as the files grow, through rotation.")
@by_field
@no_query
@option("--format", metavar="FORMAT", help="As of `bloomtide top`; if not given, it is found.")
@json_map
@option(
    "--items",
    metavar="COUNT",
    type=parse_items,
    help="Distinct keys expected; 1M for a new monitor.",
)
@option(
    "--error",
    "error_rate",
    metavar="RATE",
    type=parse_error_rate,
    help="How often an answer may be wrong; 1% for a new monitor.",
)
@option("--half-life", metavar="TIME", help="How fast what was hot cools; 10m for a new monitor.")
@option("--window", metavar="TIME", help="The finest step of the history; 1m for a new monitor.")
@option("--retention", metavar="RULES", help="How long the history keeps its steps.")
@choice(
    "--sync",
    of=SYNCS,
    metavar="WHEN",
    default="everysec",
    show_default=True,
    help="When events are safe from a power cut: always, everysec or no.",
)
@flag("--tui", help="Show what is hot here in the terminal, too.")
@option(
    "-n",
    "--number",
    metavar="N",
    type=int,
    default=15,
    show_default=True,
    help="How many keys --tui shows.",
)
@flag("--no-server", help="Only read, and end with the last source.")
@server_options
@option(
    "--rate",
    metavar="N",
    type=int,
    default=1000,
    show_default=True,
    help="With --demo: visits a second.",
)
@as_json
def watch(
    sources: tuple[str, ...],
    demo: bool,
    data: Path | None,
    follow: bool,
    by: str,
    no_query: bool,
    format: str | None,
    json_map: str | None,
    items: int | None,
    error_rate: float | None,
    half_life: str | None,
    window: str | None,
    retention: str | None,
    sync: Sync,
    tui: bool,
    number: int,
    no_server: bool,
    password_file: Path | None,
    http_token_file: Path | None,
    set_: tuple[str, ...],
    rate: int,
    json: bool,
) -> int:
    """Watch logs and streams: what is new, how often, what is hot, and what was when.

    Every event goes into a filter of what was seen, counters, a list of what is hot and a history;
    a page shows them, and any Redis client may ask. What was read stays read: started again, it
    goes on behind the last line that counts, also after a crash.
    """
    require_posix("`bloomtide watch`", lacks="fork")
    require("number", number, "1 to 1000", 1 <= number <= 1000)
    if demo == bool(sources):
        raise console.CommandError(
            "--demo brings its own traffic" if demo else "nothing to watch",
            hint="name a log, redis://host:port/stream or `-`; or --demo alone",
        )
    directory = data or Path("bloomtide-data") / ("demo" if demo else "")
    given: dict[str, Any] = {
        "capacity": items, "error_rate": error_rate, "half_life": half_life, "window": window,
        "retention": retention,
    }  # fmt: skip
    options = {"by": by, "query": not no_query, "format": format, "json_map": json_map}
    from bloomtide.cli.watch.source import Feeder
    from bloomtide.monitor import Monitor

    server = None
    if not no_server:
        # What the server has to say goes to the terminal, which the view may need for itself.
        preferred = [("dir", str(directory / "keys")), ("loglevel", "warning")]
        server = read_settings(set_, password_file, http_token_file, preferred=preferred)
    clock, found = _sources(
        sources, demo, follow, options, rate, tell=not tui and (follow or server is not None)
    )
    settings = {name: value for name, value in given.items() if value is not None}
    with Monitor.open(directory / "monitor", sync=sync, clock=clock, **settings) as monitor:
        feeders = [Feeder(source, monitor) for source in found]
        running = Running(monitor, feeders, number if tui else None, by)
        if server is None:
            interrupted = running.until_the_end()
        else:
            from bloomtide.cli.watch.serving import serve

            interrupted = serve(server, running, json)
        if json:
            console.write_lines([console.to_json(monitor.stats().as_dict())])
        return _finish(feeders, by, interrupted)


class Running:
    """The sources, and the view in the terminal if there is one."""

    def __init__(
        self, monitor: Monitor, feeders: Sequence[Feeder], rows: int | None, by: str
    ) -> None:
        self.monitor = monitor
        self.feeders = feeders
        self._rows = rows
        self._by = by
        self._ended = threading.Event()
        self._drawer: threading.Thread | None = None

    def start(self) -> None:
        """Begins to read, and to show."""
        for feeder in self.feeders:
            feeder.start()
        if self._rows is not None:
            self._drawer = threading.Thread(target=self._draw, name="view", daemon=True)
            self._drawer.start()

    def stop(self) -> None:
        """Takes no more events, and leaves the terminal as it was."""
        for feeder in self.feeders:
            feeder.stop()
        self._ended.set()
        if self._drawer is not None:
            self._drawer.join()

    def until_the_end(self) -> bool:
        """Until all sources have ended, or ctrl-C or SIGTERM; whether it was one of these."""

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGTERM, interrupt)
        self.start()
        try:
            while not all(feeder.wait(LOOK) for feeder in self.feeders):
                pass
        except KeyboardInterrupt:
            return True
        finally:
            signal.signal(signal.SIGTERM, before)
            self.stop()
        return False

    def about_sources(self) -> list[SourceStats]:
        """What became of each log and stream, for the page."""
        from bloomtide.monitor import SourceStats

        return [
            SourceStats(
                name=name, lines=report.lines, counted=report.counted, skipped=report.skipped,
                without=report.without, field=self._by,
                bad=tuple(console.printable(told(name, line)) for line in report.bad),
            )
            for feeder in self.feeders
            for name, report in feeder.source.reports()
        ]  # fmt: skip

    def about_problems(self) -> list[str]:
        """Sources that wait or have failed."""
        found = [feeder.source.waiting for feeder in self.feeders if feeder.source.waiting]
        return found + [each.message for feeder in self.feeders for each in feeder.problems()]

    def _draw(self) -> None:
        from bloomtide.cli.watch.view import Terminal

        view = Terminal(self.monitor, self._rows or 1, self._notes)
        try:
            view.show()
            while not self._ended.wait(1.0):
                view.show()
            with suppress(Exception):  # the last look is not worth a traceback
                view.show()
        finally:
            view.close()

    def _notes(self) -> list[str]:
        """What people should know: sources that wait or have failed, a monitor that is full."""
        notes = self.about_problems()
        reports = [report for feeder in self.feeders for _, report in feeder.source.reports()]
        for what, lines in (
            ("lines were not understood", sum(report.skipped for report in reports)),
            (f"lines have no {self._by}", sum(report.without for report in reports)),
        ):
            notes += [f"{lines:,} {what}"] if lines else []
        return notes + ([self.monitor.failure] if self.monitor.failure else [])


def _sources(
    names: Sequence[str], demo: bool, follow: bool, options: dict[str, Any], rate: int, tell: bool
) -> tuple[Callable[[], float] | None, list[Source]]:
    """The clock, and what to read."""
    if demo:
        from bloomtide.cli.watch.demo import Demo, DemoClock

        clock = DemoClock()
        return clock, [Demo(clock, rate)]
    from bloomtide.cli.log_files import no_log
    from bloomtide.cli.watch.logs import is_any_there, log_sources
    from bloomtide.cli.watch.streams import RedisStream

    streams: list[Source] = [RedisStream(name, tell=tell) for name in names if is_redis(name)]
    files = [name for name in names if not is_redis(name)]
    if not streams and not is_any_there(files):
        raise no_log(", ".join(files))
    return None, streams + log_sources(files, follow=follow, options=options, tell=tell)


def _finish(feeders: Sequence[Feeder], by: str, interrupted: bool) -> int:
    """Tell what was wrong with the sources; answers the exit code."""
    problems = [
        console.CommandError(problem.message, hint=problem.hint)
        for feeder in feeders
        for problem in feeder.problems()
    ]
    logs = [each for feeder in feeders for each in feeder.source.reports()]
    if not any(report.lines for _, report in logs):
        # Nothing new in a log that was read before, or no log at all.
        for problem in problems:
            console.error(problem.message, problem.hint)
        return 2 if problems else (130 if interrupted else 0)
    names, reports = zip(*logs, strict=True)
    return finish(names, reports, problems, by=by, interrupted=interrupted)
