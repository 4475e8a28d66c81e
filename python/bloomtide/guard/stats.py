"""How far a guard can be trusted, and the records in which it tells what it did."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any


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
