"""The command, and the sizes of the experiments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from spans.compressions import compressions
from spans.formulas import e14
from trials.command import run
from trials.outcome import Outcome


def experiments(size: str, data: Path | None) -> dict[str, Callable[[], Outcome]]:
    """Every experiment, with its parameters for the size."""
    if size == "paper":
        return {
            "e14": partial(e14, 10_000, (1, 2, 5, 10, 20, 50), (0.1, 0.01, 0.001), 100_000, 3),
            "compressions": partial(compressions, 10_000, 16, 0.01, 100_000, 4),
        }
    return {
        "e14": partial(e14, 500, (1, 4), (0.1, 0.02), 20_000, 2),
        "compressions": partial(compressions, 500, 8, 0.02, 20_000, 2),
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
