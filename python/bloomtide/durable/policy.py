"""When what was written is safe from a power cut: one word for everything that keeps a log.

    always     on the disk before the call returns
    everysec   on the disk within a second
    no         whenever the operating system pleases

Under each of them it was written when the call returns, so a kill of the process loses none of it.
"""

from __future__ import annotations

from typing import Literal, get_args

from bloomtide.errors import require

Sync = Literal["always", "everysec", "no"]
SYNCS: tuple[Sync, ...] = get_args(Sync)

INTERVAL = 0.4
"""Seconds between two syncs of `everysec`: a slow one still ends within the second."""


def require_sync(sync: str, name: str = "sync") -> None:
    """Refuses any other word, under the name of the argument or setting."""
    require(name, sync, f"one of {', '.join(SYNCS)}", sync in SYNCS)
