"""The command, and the sizes of the experiments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from layered.halves import e4
from layered.shares import shares
from layered.table import classes
from layered.times import e5
from layered.urls import GENERATED
from trials.command import run
from trials.outcome import Outcome

SIZES = (32_432, 269_452, 1_562_978)
"""Of the paper's three lists."""
EVERYTHING = 10**9


def experiments(size: str, data: Path | None) -> dict[str, Callable[[], Outcome]]:
    """Every experiment, with its parameters for the size."""
    if size == "paper":
        return {
            "e4": partial(e4, data, SIZES, GENERATED),
            "classes": partial(classes, data, ("npm", "news"), SIZES[-1], SIZES[1], 100_000),
            "e5": partial(e5, data, SIZES, (500, 2000), 3),
            "shares": partial(shares, data, EVERYTHING, SIZES[-1]),
        }
    return {
        "e4": partial(e4, data, (1000, 4000), GENERATED),
        "classes": partial(classes, data, ("news",), 4000, 4000, 4000),
        "e5": partial(e5, data, (1000, 4000), (100, 500), 1),
        "shares": partial(shares, data, 4000, 4000),
    }


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    return run(
        arguments,
        folder="multi-layer-bloom-filter-url",
        experiments=experiments,
        plots="layered.plots",
        real="all of them",
    )
