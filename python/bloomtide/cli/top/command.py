"""`bloomtide top`: reads logs, and shows what is hot in them now."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator

import click

from bloomtide import LogCounter
from bloomtide._core import parse_duration
from bloomtide.cli import console
from bloomtide.cli.instants import parse_when
from bloomtide.cli.logs import FORM, WHAT, finish
from bloomtide.cli.options import as_json, by_field, flag, json_map, log_files, no_query, option
from bloomtide.cli.sources import CHUNK, chunks, is_packed, stdin
from bloomtide.cli.top.follow import Follower
from bloomtide.cli.top.hotness import PLACES, Hotness
from bloomtide.cli.top.views import Json, Live, Table, View
from bloomtide.errors import require
from bloomtide.records import LogReport
from bloomtide.system import has_input


@click.command()
@log_files
@by_field
@option(
    "--half-life",
    metavar="TIME",
    default="10m",
    show_default=True,
    help="A count falls to its half in this, such as 90s, 10m or 1h; or `never`.",
)
@option(
    "-n",
    "--number",
    metavar="N",
    type=int,
    default=10,
    show_default=True,
    help="How many to show.",
)
@option(
    "--places",
    metavar="N",
    type=int,
    help="So many different ones are counted exactly; 16,384, or 8 times --number. Each takes about"
    " 200 bytes. With more, upper bounds are marked.",
)
@option(
    "--at",
    metavar="WHEN",
    type=parse_when,
    help="Show what was hot then: ISO 8601, in UTC if it names no zone, or Unix seconds.",
)
@flag("-f", "--follow", help="Go on as the files grow, through rotation.")
@option(
    "--refresh",
    metavar="SECONDS",
    type=float,
    default=1.0,
    show_default=True,
    help="Between two views.",
)
@option(
    "--format",
    metavar="FORMAT",
    help="combined, common, vcombined, vcommon, squid, caddy, w3c, cloudfront, json or bare,"
    " or as nginx ($) or GoAccess (%) write one; if not given, found from the first lines.",
)
@json_map
@no_query
@as_json
def top(
    files: tuple[str, ...],
    by: str,
    half_life: str,
    number: int,
    places: int | None,
    at: float | None,
    follow: bool,
    refresh: float,
    format: str | None,
    json_map: str | None,
    no_query: bool,
    json: bool,
) -> int:
    """Show what is hot in a web or proxy log now: live on a terminal, as a table or JSON elsewhere.

    Hits fade with the log's own time. Arrows tell what comes up and what cools, against a memory
    that is six times longer. Lines that are not understood are counted, and the first are shown.
    """
    require("number", number, "1 to 1000000", 1 <= number <= 1_000_000)
    places = max(PLACES, 8 * number) if places is None else places
    require("places", places, "--number to 2**30", number <= places <= 1 << 30)
    require("refresh", refresh, "0.01 to 3600 seconds", 0.01 <= refresh <= 3600)
    if follow and at is not None:
        raise console.CommandError(
            "--at shows the past and --follow waits for what comes", hint="give one of the two"
        )
    hotness = Hotness(
        by,
        None if half_life == "never" else parse_duration(half_life, "half_life"),
        places,
        query=not no_query,
        until=at,
        format=format,
        json_map=json_map,
    )
    reading = Reading(hotness, list(files) or ["-"], follow=follow, pause=min(refresh, 0.25))
    return Top(reading, number, at, refresh).run(_view(by, json, reading))


class Reading:
    """All logs, in the order they were named; those that are followed come last and together."""

    def __init__(self, hotness: Hotness, sources: list[str], *, follow: bool, pause: float) -> None:
        self.hotness = hotness
        self.pause = pause
        self.follow = follow
        followed = {name for name in sources if follow and name != "-" and not is_packed(name)}
        self.followers = [
            (Follower(name), hotness.counter()) for name in sources if name in followed
        ]
        self.once = [(name, hotness.counter()) for name in sources if name not in followed]
        self.names = [name for name in sources if name in followed] + [
            name for name, _ in self.once
        ]
        self.problems: list[console.CommandError] = []

    def steps(self) -> Iterator[None]:
        """Reads a piece for each step; ends with the last log, or never when one is followed."""
        for name, counter in self.once:
            try:
                for chunk in self._pieces(name):
                    _take(counter, chunk)
                    yield
            except console.CommandError as problem:
                # What was read of a damaged file counts, and the others are read all the same.
                self.problems.append(problem)
            counter.finish()
            yield
        while self.followers:
            came = False
            for follower, counter in self.followers:
                for piece in follower.poll():
                    came = True
                    if piece is None:
                        counter.finish()
                    else:
                        counter.feed(piece)
                    yield
            if not came:
                for _, counter in self.followers:
                    counter.settle()
                yield
                time.sleep(self.pause)

    def waiting(self) -> str:
        """Which files are not there now."""
        gone = [str(follower.path) for follower, _ in self.followers if follower.gone]
        return f"waiting for {', '.join(gone)} to come back" if gone else ""

    def reports(self) -> list[LogReport]:
        """Of each log, in the order of `names`."""
        return [counter.report() for counter in self.hotness.counters]

    def _pieces(self, name: str) -> Iterator[bytes]:
        if name != "-":
            yield from chunks(name, lambda count: None, WHAT, FORM)
            return
        file = stdin(WHAT, FORM)
        try:
            descriptor = file.fileno()
        except OSError:  # replaced by something that is only in memory
            yield from iter(lambda: file.read(CHUNK), b"")
            return
        while True:
            # An idle pipe must not stop the view.
            if not has_input(descriptor, self.pause):
                yield b""
            elif chunk := os.read(descriptor, CHUNK):
                yield chunk
            else:
                return


class Top:
    """Reads, and shows what is hot when it is time."""

    def __init__(self, reading: Reading, number: int, until: float | None, refresh: float) -> None:
        self.reading = reading
        self.number = number
        self.until = until
        self.refresh = refresh
        self.came: tuple[float | None, float] = (None, 0.0)
        """The log's latest time, and when it was seen to be that, by our own clock."""

    def run(self, view: View) -> int:
        """Until the logs end or ctrl-C; answers the exit code."""
        interrupted = False
        repeats = self.reading.follow or isinstance(view, Live)
        due = time.monotonic() + (0 if isinstance(view, Live) else self.refresh)
        # Closed also after an error: the terminal must get its cursor back.
        with contextlib.closing(view):
            try:
                for _ in self.reading.steps():
                    if repeats and time.monotonic() >= due:
                        self._show(view)
                        due = time.monotonic() + self.refresh
            except KeyboardInterrupt:
                interrupted = True
            self._show(view)
        return self._finish(interrupted)

    def _show(self, view: View) -> None:
        hot = self.reading.hotness.hot(self.number, self._now())
        # A wrong name needs no empty table above its error.
        if hot.sum("lines") or not self.reading.problems:
            view.show(hot)

    def _now(self) -> float:
        """The instant asked for, or the log's own time.

        While a log is followed its time goes on between its lines. It is not the clock's: servers
        that log the wrong zone are common, and hours of decay would leave nothing to see.
        """
        if self.until is not None:
            return self.until
        own = self.reading.hotness.time
        if own is None:
            return time.time()
        if not self.reading.follow:
            return own
        if own != self.came[0]:
            self.came = (own, time.monotonic())
        return own + time.monotonic() - self.came[1]

    def _finish(self, interrupted: bool) -> int:
        """Tell what was wrong with the logs."""
        reading = self.reading
        return finish(
            reading.names,
            reading.reports(),
            reading.problems,
            by=reading.hotness.options["by"],
            interrupted=interrupted,
        )


def _view(by: str, json: bool, reading: Reading) -> View:
    if json:
        return Json(by)
    if sys.stdout is not None and sys.stdout.isatty():
        return Live(by, reading.waiting)
    return Table(by)


def _take(counter: LogCounter, chunk: bytes) -> None:
    if chunk:
        counter.feed(chunk)
    else:
        counter.settle()
