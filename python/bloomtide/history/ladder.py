"""The ladder of windows: how wide the rows of each level are, and how long each level is kept.

Level 0 has rows of the store's own window. A segment of level j spans one window of level j + 1, so
it becomes one row of a segment of that level. Every window is a whole multiple of the one below and
begins at a multiple of itself since 1970 (UTC): stores that never met have the same edges.

    window 1m:   level 0  rows of 1m, segments of 1h
                 level 1  rows of 1h, segments of 1d
                 level 2  rows of 1d, segments of 32d
                 level 3  rows of 32d, segments of 1024d

Retention is written as rules, finest first: `"1m for 1d, 1h for 30d, 1d for 10y"`; a last rule
without `for` is kept for ever. A level is kept as long as the coarsest rule whose window is not
wider than its own. The windows of the rules are steps of the ladder.

Everything here is in whole microseconds.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

from bloomtide._core import parse_duration
from bloomtide.errors import ParameterError, require

MICRO = 1_000_000
DAY = 86_400 * MICRO
YEAR = 366 * DAY
"""Of a retention rule: rather a day too long than one too short."""
STEPS = tuple(seconds * MICRO for seconds in (1, 60, 3600, 86_400, 32 * 86_400, 1024 * 86_400))
"""Windows people think in, each a multiple of the one before."""
FEWEST = 4
"""Rows of a segment that are worth a level of its own."""
BRANCHES = 32
"""Rows of a segment where no round window fits."""
MOST = 4096
"""Rows of a segment at most: its columns should stay within a few pages."""

_RULE = re.compile(r"\s*(?P<window>.+?)(?:\s+for\s+(?P<keep>.+?))?\s*")
_YEARS = re.compile(r"(\d+(?:\.\d+)?)y")


@dataclass(frozen=True, slots=True)
class Rule:
    """Rows of this window are kept for this long; None is for ever."""

    window: int
    keep: int | None


@dataclass(frozen=True, slots=True)
class Level:
    """One step of the ladder."""

    number: int
    window: int
    """What one row spans."""
    span: int
    """What one segment spans: the window of the next level."""
    keep: int | None
    """How long its segments are kept; None is for ever."""

    def begin(self, instant: int) -> int:
        """Where the segment begins that holds this instant."""
        return instant - instant % self.span


def micros(value: Any, name: str, *, zero: bool = False) -> int:
    """A length of time in whole microseconds, as people write it; zero only where that is meant."""
    if zero and _is_zero(value):
        return 0
    length = parse_duration(value, name) * MICRO
    # The largest floats are no finite number of microseconds.
    require(name, value, "a microsecond to 1e300 seconds", 0.5 < length < math.inf)
    return round(length)


def parse_retention(text: str | None) -> tuple[Rule, ...]:
    """The rules of a retention; none if nothing is ever dropped."""
    if text is None:
        return ()
    if not isinstance(text, str):
        _refuse(text, "text")
    rules = [_parse_rule(part, text) for part in text.split(",")]
    for finer, coarser in pairwise(rules):
        if not (finer.keep and coarser.window > finer.window):
            _refuse(text, "rules with ever wider windows, all but the last with a time to keep")
        if coarser.keep is not None and coarser.keep <= finer.keep:
            _refuse(text, "rules that keep wider windows longer")
        if coarser.window % finer.window:
            _refuse(text, "rules whose windows are whole multiples of each other")
    return tuple(rules)


def build_ladder(window: int, retention: tuple[Rule, ...] = ()) -> tuple[int, ...]:
    """The windows of a new store, finest first; the last one is the span of the last level."""
    wanted = [rule.window for rule in retention if rule.window > window]
    windows = [window]
    while wanted or windows[-1] < STEPS[-1]:
        here = windows[-1]
        until = wanted[0] if wanted else None
        # The next rule's window is a step in any case, round ones before it if they divide it.
        fits = [
            step
            for step in STEPS
            if step % here == 0
            and FEWEST * here <= step <= MOST * here
            and (until is None or (step < until and until % step == 0))
        ]
        windows.append(fits[0] if fits else wanted.pop(0) if wanted else here * BRANCHES)
    if len(windows) < 2 or (retention and windows[-1] == retention[-1].window):
        windows.append(windows[-1] * BRANCHES)
    longest = retention[-1].keep if retention else None
    if longest is not None:
        # A segment that spans more than is ever kept would only delay what is dropped.
        kept = [number for number, span in enumerate(windows) if number and span <= longest]
        last = bisect_left(windows, retention[-1].window)  # which has to be a level of its own
        del windows[max([1, last + 1, *kept]) + 1 :]
    for finer, coarser in pairwise(windows):
        require(
            "window", window / MICRO, f"at most {MOST} times finer than the next window",
            coarser // finer <= MOST, hint="name a window between the two in `retention`",
        )  # fmt: skip
    return tuple(windows)


def levels_of(windows: Sequence[int], retention: tuple[Rule, ...] = ()) -> tuple[Level, ...]:
    """The levels of a ladder, each with the time that its segments are kept."""
    for rule in retention:
        if rule.window not in windows[:-1]:
            steps = ", ".join(f"{window / MICRO:g}" for window in windows[:-1])
            _refuse(f"{rule.window / MICRO:g} s", f"about windows of the store's ladder: {steps} s")
    return tuple(
        Level(number, window, span, _keep(window, retention))
        for number, (window, span) in enumerate(pairwise(windows))
    )


def _keep(window: int, retention: tuple[Rule, ...]) -> int | None:
    if not retention:
        return None
    # Rows that are finer than every rule go with the first.
    finer = [rule for rule in retention if rule.window <= window]
    return (finer[-1] if finer else retention[0]).keep


def _parse_rule(part: str, text: str) -> Rule:
    found = _RULE.fullmatch(part)
    if found is None:
        _refuse(text, "rules such as 1m for 1d")
    years = _YEARS.fullmatch(found["keep"] or "")
    try:
        window = micros(found["window"], "retention")
        if found["keep"] is None:
            return Rule(window, None)
        keep = round(float(years[1]) * YEAR) if years else micros(found["keep"], "retention")
    except ParameterError:  # it knows lengths of time, not rules
        _refuse(text, "rules such as 1m for 1d")
    if keep < window:
        _refuse(text, "rules that keep at least one window")
    return Rule(window, keep)


def _is_zero(value: Any) -> bool:
    if isinstance(value, str):
        return re.fullmatch(r"\s*0+(\.0+)?\s*(ms|[smhdw])?\s*", value) is not None
    return not isinstance(value, bool) and not value


def _refuse(got: object, allowed: str) -> NoReturn:
    raise ParameterError(
        f"`retention` must be {allowed}, got: {got}",
        hint='write rules finest first, such as "1m for 1d, 1h for 30d, 1d for 10y"',
        name="retention",
        got=got,
        allowed=allowed,
    )
