"""The command, and the sizes of the experiments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from decay.claims import e3
from decay.lazy import lazy
from decay.memory import e2, space
from decay.rounding import rounding
from decay.skew import e1
from trials.command import run
from trials.outcome import Outcome

DECAYS = (0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99)
EVERYTHING = 10**9


def experiments(size: str, data: Path | None) -> dict[str, Callable[[], Outcome]]:
    """Every experiment, with its parameters for the size.

    A shape is pages, visits in an epoch, epochs.
    """
    if size == "paper":
        return {
            "e1": partial(e1, data, EVERYTHING, 100_000, 4_000_000, 1.1),
            "e2": partial(e2, data, EVERYTHING, (10_000, 40_000, 100), DECAYS, 2),
            "e3": partial(e3, (100_000, 20_000, 400), (0.5, 0.8, 0.9, 0.99), 1_000_000, 20),
            "space": partial(space, (20_000, 10_000, 1000), (0.5, 0.9), 1.0),
            "rounding": partial(rounding, 2000, 400, (0.5, 0.9, 0.99)),
            "lazy": partial(lazy, (10**5, 10**6, 10**7, 10**8), 400_000, 5),
        }
    return {
        "e1": partial(e1, data, 10_000, 2000, 40_000, 1.1),
        "e2": partial(e2, data, 10_000, (500, 2000, 20), (0.1, 0.5, 0.9), 1),
        "e3": partial(e3, (500, 1000, 30), (0.5, 0.9), 50_000, 5),
        "space": partial(space, (1000, 500, 100), (0.5,), 1.0),
        "rounding": partial(rounding, 200, 200, (0.5, 0.9)),
        "lazy": partial(lazy, (10**4, 10**5), 2000, 2),
    }


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    return run(
        arguments,
        folder="time-decaying-bloom-filters",
        experiments=experiments,
        plots="decay.plots",
        real="e1 and e2",
    )
