"""Waiting in tests: `until` polls a condition and fails at a deadline.

A test never sleeps for a fixed time and hopes that something has happened meanwhile: it waits for
what it needs, or moves a clock of its own. This is the one place under `tests` that may sleep; the
linter refuses `time.sleep` and `asyncio.sleep` everywhere else (`banned-api` in pyproject.toml).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")

WITHIN = 30.0
"""Seconds: far more than anything takes, so that only a real failure reaches it."""
_PAUSE = 0.005


def until(condition: Callable[[], Answer], *, within: float = WITHIN) -> Answer:
    """The first true answer of `condition`; fails if none comes in time."""
    deadline = time.monotonic() + within
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"still {answer!r} after {within:g} s"
        time.sleep(_PAUSE)
    return answer


async def until_async(condition: Callable[[], Answer], *, within: float = WITHIN) -> Answer:
    """`until` for a test inside an event loop, which goes on meanwhile."""
    deadline = time.monotonic() + within
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"still {answer!r} after {within:g} s"
        await asyncio.sleep(_PAUSE)
    return answer


async def run_ready_tasks(turns: int = 10) -> None:
    """Lets the event loop run what is ready now, and what that makes ready."""
    for _ in range(turns):
        await asyncio.sleep(0)
