"""The tour: its chapters in order. A later structure adds its chapter to `CHAPTERS`."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import click

from bloomtide.cli import console
from bloomtide.cli.options import as_json, flag, option

NEXT = """
[bold]Where to go next[/bold]
  bloomtide plan --items 1e9 --error 0.1%                      what would it cost?
  bloomtide new seen.bloom --items 10M --error 0.1%            make a filter file
  zcat urls.gz | bloomtide add seen.bloom --new > fresh.txt    keep what was not seen before
  bloomtide check seen.bloom --key https://example.com/        0 maybe, 1 certainly not
  python -c "import bloomtide; help(bloomtide.BloomFilter)"     the same in Python"""


@click.command()
@flag("--quick", help="A fiftieth of the visits, for a first look.")
@option(
    "--seed",
    metavar="N",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Another seed, other visits.",
)
@as_json
def demo(quick: bool, seed: int, json: bool) -> int:
    """A one-minute tour on generated web traffic; every number is measured while you watch."""
    # Not at the top: every other command would wait for NumPy, which the visits need.
    from bloomtide.cli.demo.chapters import CHAPTERS
    from bloomtide.cli.demo.stage import Stage

    began = time.perf_counter()
    results: dict[str, Any] = {"seed": seed}
    with tempfile.TemporaryDirectory(prefix="bloomtide-demo-") as folder:
        stage = Stage(quick=quick, seed=seed, silent=json, folder=Path(folder))
        stage.say(
            f"[bold]bloomtide[/bold] on {stage.visits:,} visits to a site of {stage.pages:,} pages,"
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
