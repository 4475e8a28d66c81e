"""How long something takes."""

from __future__ import annotations

import time
from collections.abc import Callable


def timed(work: Callable[..., object], *given: object) -> float:
    """Seconds that it takes."""
    start = time.perf_counter()
    work(*given)
    return time.perf_counter() - start
