"""Who takes part, bloomtide first. A library that is not installed is reported as missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from benchmarks.engines import (
    abloom,
    bloomtide,
    bounter,
    datasketches,
    fastbloom,
    pybloom,
    rbloom,
)
from benchmarks.engines.contract import Counting, Hot, Membership, Missing
from benchmarks.engines.count_min import EQUAL

Engine = TypeVar("Engine", Membership, Counting, Hot)

MEMBERSHIP: dict[str, Callable[[], Membership]] = {
    "bloomtide": bloomtide.membership,
    abloom.SERIALIZABLE: lambda: abloom.membership(serializable=True),
    "abloom, default": lambda: abloom.membership(serializable=False),
    "rbloom": rbloom.membership,
    "fastbloom-rs": fastbloom.membership,
    "pybloom-live": pybloom.membership,
}
COUNTING: dict[str, Callable[[], Counting]] = {
    "bloomtide, 32-bit counters": lambda: bloomtide.counting(32),
    "bloomtide, 4-bit counters": lambda: bloomtide.counting(4),
    "bloomtide, PDCF": bloomtide.growing,
    "bloomtide, fading, basic": lambda: bloomtide.fading("basic"),
    "bloomtide, fading, optimized": lambda: bloomtide.fading("optimized"),
    "bounter": bounter.counting,
    "datasketches": datasketches.counting,
    "fastbloom-rs, 4-bit counters": fastbloom.counting,
    "bounter" + EQUAL: lambda: bounter.counting(equal=True),
    "datasketches" + EQUAL: lambda: datasketches.counting(equal=True),
    "fastbloom-rs, 4-bit counters" + EQUAL: lambda: fastbloom.counting(equal=True),
}

HOT: dict[str, Callable[[], Hot]] = {
    "bloomtide": bloomtide.hot,
    "datasketches": datasketches.hot,
}


def load(offered: dict[str, Callable[[], Engine]]) -> tuple[list[Engine], list[Missing]]:
    """The engines that can run here, and those that cannot with the reason."""
    ready: list[Engine] = []
    missing: list[Missing] = []
    for name, make in offered.items():
        try:
            ready.append(make())
        except ImportError as error:
            missing.append(Missing(name, str(error)))
    return ready, missing
