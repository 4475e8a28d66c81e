"""Opening a store for a command, and the range of time that a question is about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bloomtide._core import parse_duration
from bloomtide.cli import console
from bloomtide.cli.instants import show_when

if TYPE_CHECKING:
    from bloomtide.history import History

NICE = (1, 10, 60, 300, 900, 3600, 21_600, 86_400, 604_800, 2_592_000, 31_536_000)
"""Seconds of a step that people think in."""
STEPS = 100
"""Of a series whose step was not given, at most."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range of time in Unix seconds, the end not included."""

    start: float
    end: float

    def step(self) -> float:
        """A length that cuts it into not too many steps."""
        length = self.end - self.start
        return float(next((step for step in NICE if length <= STEPS * step), NICE[-1]))

    def aligned(self, step: float) -> Span:
        """The same, or a little more: whole steps since 1970."""
        whole = -(-self.end // step) * step
        return Span(self.start // step * step, whole)


def open_reading(path: Path) -> History:
    """A store that exists, beside its writer if there is one."""
    must_exist(path)
    from bloomtide.history import History

    return History.open(path, mode="r")


def must_exist(path: Path) -> None:
    """The library would make a new store, or speak of modes."""
    if not (path / "store.json").is_file():
        raise console.CommandError(
            f"{path}: there is no store", hint="`bloomtide history ingest` makes one from logs"
        )


def span_of(
    history: History, start: float | None, end: float | None, last: str | None
) -> Span | None:
    """What was asked for; what was not is the store's own. None if the store is empty.

    `last` ends with the latest event, not now: a log that was read is as old as it is.
    """
    if last is not None and (start is not None or end is not None):
        raise console.CommandError(
            "--last goes with neither --start nor --end", hint="give one or the other"
        )
    stats = history.stats()
    if stats.first is None or stats.last is None:
        return None
    # The range excludes its end, and the latest event belongs to it.
    first, behind = stats.first, stats.last + 1e-6
    until = behind if end is None else end
    if last is not None:
        return Span(until - parse_duration(last, "last"), until)
    begin = first if start is None else start
    if begin > until and (start is None or end is None):
        return Span(begin, begin)
    if begin > until:
        raise console.CommandError(
            f"--start {show_when(begin)} is after --end {show_when(until)}",
            hint="a range goes from --start up to --end, which it does not include",
        )
    return Span(begin, until)


def tell_missing(missing: tuple[tuple[float, float], ...], partial: int = 0) -> None:
    """What an answer lacks, on stderr."""
    from bloomtide.cli.history.charts import moment

    if partial:
        console.message(f"rows that the range cuts: {partial:,}; all of their counts are included")
    for start, end in missing:
        begin = "the beginning" if start == float("-inf") else moment(start, 1)
        stop = "the end" if end == float("inf") else f"{moment(end, 1)} UTC"
        console.message(f"missing: {begin} to {stop}")
