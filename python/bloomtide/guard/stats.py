"""How far a guard can be trusted, what it was asked, and the records in which it tells it.

Counts are plain integers, changed by one statement each. Under the GIL none is lost; without it a
few may be, and they decide nothing but when `mode="auto"` looks again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, Literal, get_args

from bloomtide.errors import require

Mode = Literal["on", "shadow", "auto", "off"]

_LOOK = 1000
"""Questions after which `mode="auto"` decides."""
_USELESS = 0.9
"""The share of questions that went on to the database from which on the guard is of no use."""
_REST = 10_000
"""Questions that it then lets pass before it looks again."""


class State(Enum):
    """Only READY ever says "absent". In every other state the database is asked."""

    UNKNOWN = "unknown"
    """Never built, or the first build failed."""
    BUILDING = "building"
    """Keys are being read, and there is no filter yet that could be trusted."""
    READY = "ready"
    """The filter holds every committed key."""
    DEGRADED = "degraded"
    """Keys were written that nobody saw, until a rebuild; or other writers could not be followed,
    until they can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterStats:
    """What the filter of a guard is like now."""

    state: State
    reason: str
    """Why the state is not READY; empty if it is."""
    rebuilding: bool
    """Keys are being read into a second filter."""
    items: float
    """Estimated distinct keys inside."""
    capacity: int | None
    """Keys the filter in use was made for; it may grow."""
    error_rate: float
    """The target: the share of absent keys that cost a query all the same."""
    predicted_error: float
    """That share now, from the measured cells; 1 without a filter."""
    saturation: float
    """Share of cells that are not zero."""
    bytes: int
    removed: int
    """Keys taken out of the filter in use."""
    stale: int
    """Rows deleted since the last build whose keys are still inside; each may cost a query."""
    unseen: int
    """How often keys were written that nobody saw."""
    rebuilds: int
    """Builds that ended in a filter that was put to use."""
    rebuild_seconds: float
    """How long the last of them took."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "state": self.state.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardStats(FilterStats):
    """What a guard was asked, what it answered, and what it holds."""

    mode: str
    bypassed: bool
    """`mode="auto"` has found the guard useless for now and lets everything pass."""
    asked: int
    avoided: int
    """Questions answered "absent" without the database; in shadow mode, that would have been."""
    passed: int
    """Questions that went on to the database."""
    true_keys: int
    """Of the passed ones that were looked up here, those that the database knew."""
    false_true: int
    """Those that the database did not know, though the filter was trusted."""
    wrong_false: int
    """Shadow mode only: the guard would have said "absent" of a key that is there. Must be 0."""


class QuestionCounts:
    """Counts questions and answers; `bypass` says when a filter need not be asked."""

    __slots__ = (
        "_begun", "_span", "asked", "avoided", "bypass", "false_true", "mode", "true_keys",
        "wrong_false",
    )  # fmt: skip

    def __init__(self, mode: Mode = "on") -> None:
        require(
            "mode",
            mode,
            "one of " + ", ".join(get_args(Mode)),
            mode in get_args(Mode),
            hint='leave it out for "on"',
        )
        self.mode = mode
        self.bypass = mode == "off"
        self.asked = self.avoided = self.true_keys = self.false_true = self.wrong_false = 0
        self._span = _LOOK
        self._begun = (0, 0)
        """`asked` and `avoided` when the present look, or rest, began."""

    def look(self) -> None:
        """`mode="auto"` only, before each question: is the guard of any use?"""
        asked, avoided = self.asked - self._begun[0], self.avoided - self._begun[1]
        if asked < self._span:
            return
        if self.bypass:
            self.bypass, self._span = False, _LOOK
        elif avoided < (1 - _USELESS) * asked:
            self.bypass, self._span = True, _REST
        self._begun = (self.asked, self.avoided)

    def stats(self, held: FilterStats) -> GuardStats:
        """All figures of a guard whose filter is like this."""
        return GuardStats(
            **{name: getattr(held, name) for name in FilterStats.__dataclass_fields__},
            mode=self.mode,
            bypassed=self.bypass,
            asked=self.asked,
            avoided=self.avoided,
            passed=self.asked - self.avoided,
            true_keys=self.true_keys,
            false_true=self.false_true,
            wrong_false=self.wrong_false,
        )
