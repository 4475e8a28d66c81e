"""How many between t1 and t2: counts of keys in any past range of time, in a directory.

`History` is the store; its segments are multi-Bloom filters.
"""

from typing import TYPE_CHECKING, Any

from bloomtide.history.decay import exponential, polynomial, sliding
from bloomtide.history.records import (
    CompactionReport,
    DecayedCount,
    HistoryStats,
    RangeCount,
    SegmentReport,
    Series,
    TopKeys,
    VerifyReport,
)

if TYPE_CHECKING:
    from bloomtide.history.store import History

__all__ = [
    "CompactionReport",
    "DecayedCount",
    "History",
    "HistoryStats",
    "RangeCount",
    "SegmentReport",
    "Series",
    "TopKeys",
    "VerifyReport",
    "exponential",
    "polynomial",
    "sliding",
]


def __getattr__(name: str) -> Any:
    """`History` when it is first asked for: what comes without it is small."""
    if name == "History":
        from bloomtide.history.store import History

        return History
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
