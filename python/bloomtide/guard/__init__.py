"""Do I have to ask the database at all? A filter of all keys of a column answers first.

`DatabaseGuard` is for SQLAlchemy. `KeyFilter` and what it needs know no database, and are there
without it.
"""

from typing import TYPE_CHECKING, Any

from bloomtide import extras
from bloomtide.guard.filter.keys import KeyFilter
from bloomtide.guard.stats import FilterStats, GuardStats, State

if TYPE_CHECKING:
    from bloomtide.guard.guard import DatabaseGuard

__all__ = ["DatabaseGuard", "FilterStats", "GuardStats", "KeyFilter", "State"]


def __getattr__(name: str) -> Any:
    """`DatabaseGuard` when it is first asked for: it needs SQLAlchemy."""
    if name == "DatabaseGuard":
        with extras.require("guard", "`DatabaseGuard`"):
            from bloomtide.guard.guard import DatabaseGuard
        return DatabaseGuard
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
