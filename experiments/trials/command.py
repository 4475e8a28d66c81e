"""The command: run an experiment, write its CSV and its plot, say which claims hold."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from trials.outcome import Outcome, Row
from trials.streams import default_folder

EXPERIMENTS = Path(__file__).resolve().parents[1]
IMAGES = EXPERIMENTS.parent / "docs" / "images" / "experiments"

Experiments = Callable[[str, Path | None], dict[str, Callable[[], Outcome]]]
"""Every experiment with its parameters, for a size and the folder of real streams."""


def run(
    arguments: list[str] | None, *, folder: str, experiments: Experiments, plots: str, real: str
) -> int:
    """Run what is asked for. A claim that falls short is a finding, not a failure.

    `folder` is the paper's below `experiments`, `plots` the module with its `PICTURES`, and `real`
    says which experiments read real streams.
    """
    parser = argparse.ArgumentParser(prog=f"python experiments/{folder}")
    names = [*experiments("smoke", None), "all"]
    parser.add_argument("experiment", choices=names)
    parser.add_argument("--size", choices=("smoke", "paper"), default="smoke")
    parser.add_argument("--out", type=Path, help="folder for CSV and plot; smoke: none are written")
    parser.add_argument(
        "--data", type=Path, default=default_folder(), help=f"real streams for {real}"
    )
    asked = parser.parse_args(arguments)
    results = EXPERIMENTS / folder / "results"
    for name, experiment in experiments(asked.size, asked.data).items():
        if asked.experiment not in (name, "all"):
            continue
        outcome = experiment()
        claims = [claim.row() for claim in outcome.claims]
        for claim in claims:
            theirs = f" (theirs: {claim['theirs']})" if claim["theirs"] else ""
            print(f"{name}: {claim['claim']}: {claim['ours']}{theirs}: {claim['verdict']}")
        tables = asked.out or (results if asked.size == "paper" else None)
        if tables is None:
            continue
        write(tables / f"{name}.csv", outcome.rows)
        write(tables / f"{name}.claims.csv", claims)
        draw(plots, name, outcome.rows, asked.out or IMAGES)
    return 0


def write(path: Path, rows: list[Row]) -> None:
    """A CSV with a header; numbers with five digits, enough for any of them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        for row in rows:
            table.writerow({k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()})


def draw(plots: str, name: str, rows: list[Row], folder: Path) -> None:
    """Writes `<name>.svg` where matplotlib is installed: the tests do without."""
    try:
        from matplotlib import pyplot as plt
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        print("no matplotlib: no plot")
        return
    folder.mkdir(parents=True, exist_ok=True)
    figure = import_module(plots).PICTURES[name](rows)
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
