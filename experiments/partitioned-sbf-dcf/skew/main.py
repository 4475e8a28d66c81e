"""The command, and the sizes of the experiments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from skew.accuracy import e10, e13
from skew.dynamic import e9, pause
from skew.memory import e7, e12
from skew.rebuilds import e6, e8, e11
from trials.command import run
from trials.outcome import Outcome

THETAS = tuple(step / 10 for step in range(1, 21))
SWEEP = (1, 2, 5, 10, 20, 50, 100, 150, 200, 300, 500, 700, 1000, 2000, 5000, 10_000)
MEANS = (10, 100, 1000, 10_000, 100_000)
OCC = (0.05, 0.1, 0.25, 0.5, 1.0)


def experiments(size: str, data: Path | None) -> dict[str, Callable[[], Outcome]]:
    """Every experiment, with its parameters for the size."""
    if size == "paper":
        return {
            "e6": partial(e6, 100_000, 10, SWEEP),
            "e7": partial(e7, 100_000, MEANS, OCC, 100),
            "e8": partial(e8, (10_000, 20_000, 50_000, 100_000), 100),
            "e9": partial(e9, (10_000, 100_000), 3_000_000, (1000, 10_000, 100_000), 2000, 5),
            "e10": partial(e10, 100_000, 10, (0.0, 1.0), 100),
            "e11": partial(e11, 100_000, 10, (1e3, 1e4, 1e5, 1e6, 1e7)),
            "e12": partial(e12, 100_000, 10, THETAS, data, 2_000_000),
            "e13": partial(e13, 100_000, 10, 100, 10),
            "pause": partial(pause, 100_000, 10_000_000, 5, 1.0, ("auto", 100, 1000)),
        }
    return {
        "e6": partial(e6, 2000, 10, (1, 10, 100)),
        "e7": partial(e7, 2000, MEANS, OCC, 20),
        "e8": partial(e8, (1000, 4000), 20),
        "e9": partial(e9, (2000,), 20_000, (1000,), 200, 1),
        "e10": partial(e10, 2000, 10, (0.0,), 10),
        "e11": partial(e11, 2000, 10, (1e5, 1e7)),
        "e12": partial(e12, 2000, 10, (0.5, 1.0, 2.0), data, 20_000),
        "e13": partial(e13, 2000, 10, 10, 5),
        "pause": partial(pause, 2000, 50_000, 2, 1.0, ("auto", 50)),
    }


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    return run(
        arguments,
        folder="partitioned-sbf-dcf",
        experiments=experiments,
        plots="skew.plots",
        real="e12",
    )
