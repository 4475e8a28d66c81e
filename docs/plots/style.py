"""How every plot looks: no background, and greys and colours that stand out on white and on black.

An SVG drawn here is the same byte for byte each time: identifiers are salted with a constant and no
date is written.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("svg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

IMAGES = Path(__file__).resolve().parent.parent / "images"

ORANGE = "#e8590c"
BLUE = "#3b8bd9"
GREEN = "#2f9e66"
GREY = "#808080"

mpl.rcParams.update(
    {
        "svg.hashsalt": "bloomtide",
        "font.size": 11,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.3,
        "legend.frameon": False,
        **dict.fromkeys(
            [
                "text.color",
                "axes.labelcolor",
                "axes.edgecolor",
                "axes.titlecolor",
                "xtick.color",
                "ytick.color",
                "grid.color",
            ],
            GREY,
        ),
    }
)


def one_plot() -> tuple[Figure, Axes]:
    """A figure with one pair of axes."""
    return plt.subplots(figsize=(7.2, 4.2), layout="constrained")


def two_plots() -> tuple[Figure, tuple[Axes, Axes]]:
    """A figure with two pairs of axes side by side."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
    return figure, (left, right)


def save(figure: Figure, name: str) -> None:
    """Write `docs/images/<name>.svg`."""
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
