"""The tour: its chapters in order. A later structure adds its chapter to `CHAPTERS`."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from bloomery.cli import console
from bloomery.cli.demo.counting import how_often
from bloomery.cli.demo.fading import how_hot_now
from bloomery.cli.demo.growing import unknown_size
from bloomery.cli.demo.membership import seen_before
from bloomery.cli.demo.sharing import many_processes
from bloomery.cli.demo.skew import hot_pages
from bloomery.cli.demo.snapshots import damaged_file
from bloomery.cli.demo.stage import Stage
from bloomery.cli.options import AsJson

Chapter = Callable[[Stage], dict[str, Any]]

CHAPTERS: tuple[tuple[str, Chapter], ...] = (
    ("Have I seen this page?", seen_before),
    ("How often was it visited?", how_often),
    ("And when a few pages are far hotter than the rest?", hot_pages),
    ("How hot is it now?", how_hot_now),
    ("And when nobody knows how many will come?", unknown_size),
    ("Can I trust the file?", damaged_file),
    ("Can many processes use one filter?", many_processes),
)

NEXT = """
[bold]Where to go next[/bold]
  bloomery plan --items 1e9 --error 0.1%                      what would it cost?
  bloomery new seen.bloom --items 10M --error 0.1%            make a filter file
  zcat urls.gz | bloomery add seen.bloom --new > fresh.txt    keep what was not seen before
  bloomery check seen.bloom --key https://example.com/        0 maybe, 1 certainly not
  python -c "import bloomery; help(bloomery.BloomFilter)"     the same in Python"""


def demo(
    quick: Annotated[
        bool, typer.Option("--quick", help="A fiftieth of the visits, for a first look.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, other visits.", min=0)] = 1,
    json: AsJson = False,
) -> int:
    """A one-minute tour on generated web traffic; every number is measured while you watch."""
    began = time.perf_counter()
    results: dict[str, Any] = {"seed": seed}
    with tempfile.TemporaryDirectory(prefix="bloomery-demo-") as folder:
        stage = Stage(quick=quick, seed=seed, silent=json, folder=Path(folder))
        stage.say(
            f"[bold]bloomery[/bold] on {stage.visits:,} visits to a site of {stage.pages:,} pages,"
            " a few of them very popular."
        )
        for number, (question, chapter) in enumerate(CHAPTERS, start=1):
            stage.heading(f"{number}. {question}")
            results[chapter.__name__] = chapter(stage)
    results["seconds"] = time.perf_counter() - began
    if json:
        console.write_json(results)
    else:
        stage.say(NEXT, f"\n[dim]The tour took {results['seconds']:.1f} s.[/dim]")
    return 0
