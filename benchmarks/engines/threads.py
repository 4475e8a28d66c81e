"""Two threads for a library that has no `threads=`: each thread takes half of the keys.

This is what a user of such a library would try. It can only help if the library releases the
GIL while it works.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.engines.contract import Batch, Filter

_POOL = ThreadPoolExecutor(2, thread_name_prefix="half")


def in_halves(batch: Callable[[Filter, Any], Any]) -> Batch:
    """`batch(filter, keys)` as a `Batch`, run by two Python threads when asked for two."""

    def run(target: Filter, keys: Any, threads: int) -> object:
        if threads == 1:
            return batch(target, keys)
        middle = len(keys) // 2
        parts = (keys[:middle], keys[middle:])
        first, second = _POOL.map(batch, (target, target), parts)
        # Answers come back as one list, in order, as a caller needs them.
        return first + second if isinstance(first, list) else None

    return run
