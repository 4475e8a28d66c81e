"""The command, and the sizes of the experiments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from spans.compressions import compressions
from spans.cost import cost
from spans.formulas import e14
from spans.peers import peers
from spans.sizes import sizes
from spans.year import year
from trials.command import run
from trials.outcome import Outcome

EVERYTHING = 10**9


def experiments(size: str, data: Path | None) -> dict[str, Callable[[], Outcome]]:
    """Every experiment, with its parameters for the size."""
    if size == "paper":
        return {
            "e14": partial(e14, 10_000, (1, 2, 5, 10, 20, 50), (0.1, 0.01, 0.001), 100_000, 3),
            "compressions": partial(compressions, 10_000, 16, 0.01, 100_000, 4),
            "sizes": partial(sizes, 10_000, 10, (0.01, 0.001)),
            "cost": partial(cost, 1000, (1, 10, 100, 1000, 4000), 1000),
            "peers": partial(
                peers, data, EVERYTHING, (1_000_000, 14), (1_000_000, 10_000, 14), 300
            ),
            "year": partial(year, 365, 2_628_000, 20_000, 30),
        }
    return {
        "e14": partial(e14, 500, (1, 4), (0.1, 0.02), 20_000, 2),
        "compressions": partial(compressions, 500, 8, 0.02, 20_000, 2),
        "sizes": partial(sizes, 500, 6, (0.02,)),
        "cost": partial(cost, 100, (1, 60), 20),
        "peers": partial(peers, None, 0, (3000, 1), (3000, 100, 1), 40),
        "year": partial(year, 2, 4000, 50, 4),
    }


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    return run(
        arguments,
        folder="multi-bloom-filters-history",
        experiments=experiments,
        plots="spans.plots",
        real="peers",
    )
