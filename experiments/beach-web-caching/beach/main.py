"""The command, and the sizes of the experiments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from beach.optimum import optimum
from beach.pages import pages
from beach.queries import queries, turnover
from beach.saturation import saturation
from trials.command import run
from trials.outcome import Outcome
from webshop.load import Load

STEPS = (10, 20, 30, 40, 50, 60, 70, 80, 90)
EMPTY = (50, 60, 70, 80, 90, 95, 98, 99)
RATES = (0.1, 0.01, 0.001)


def experiments(size: str, data: Path | None) -> dict[str, Callable[[], Outcome]]:
    """Every experiment, with its parameters for the size."""
    if size == "paper":
        return {
            "saturation": partial(saturation, 2**20, range(5, 21), STEPS, 4_000_000),
            "optimum": partial(
                optimum, 100_000, (8, 10, 16), range(1, 21), (10, 12, 14, 16, 20), 4_000_000
            ),
            "queries": partial(queries, 100_000, 2_000_000, EMPTY, RATES),
            "turnover": partial(turnover, 100_000, 5_000, 16),
            "pages": partial(pages, True, 100_000, (50, 80, 95, 99), Load(3, 2, 16)),
        }
    return {
        "saturation": partial(saturation, 2**15, range(5, 21, 3), STEPS, 20_000),
        "optimum": partial(optimum, 5_000, (8,), range(1, 13), (10, 14, 20), 100_000),
        "queries": partial(queries, 5_000, 50_000, (50, 95), (0.1, 0.01)),
        "turnover": partial(turnover, 5_000, 250, 8),
        "pages": partial(pages, False, 400, (95,), Load(0.5, 1, 2)),
    }


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    return run(
        arguments,
        folder="beach-web-caching",
        experiments=experiments,
        plots="beach.plots",
        real="none of them",
    )
