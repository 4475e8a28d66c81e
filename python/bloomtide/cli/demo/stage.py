"""What every chapter of the tour is given: the traffic, a folder, and a place to show things."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from bloomtide.cli import console
from bloomtide.stream import distinct_urls, web_stream


@dataclass
class Stage:
    """The tour's setting. With `silent` the chapters measure and show nothing."""

    quick: bool
    seed: int
    silent: bool
    folder: Path
    visits: int = field(init=False)
    pages: int = field(init=False)
    expected: int = field(init=False)
    """How many different pages the visits are thought to reach: not all, most are rarely seen."""

    def __post_init__(self) -> None:
        sizes = (20_000, 4_000, 3_000) if self.quick else (1_000_000, 200_000, 125_000)
        self.visits, self.pages, self.expected = sizes

    @cached_property
    def batches(self) -> list[list[str]]:
        """The visits in their order, a few thousand at a time; made once, used by every chapter."""
        stream = web_stream(self.visits, seed=self.seed, pages=self.pages, batch_size=50_000)
        return list(stream)

    @cached_property
    def exact(self) -> set[str]:
        """The pages that were really visited."""
        return {url for batch in self.batches for url in batch}

    @cached_property
    def strangers(self) -> list[str]:
        """Pages that exist but were never visited: what a filter must call absent."""
        return distinct_urls(self.pages, self.seed, start=self.pages)

    def heading(self, text: str) -> None:
        """Begin a chapter."""
        if not self.silent:
            from rich.rule import Rule

            console.show("", Rule(f"[bold]{text}[/bold]", align="left"))

    def say(self, *texts: str) -> None:
        """A paragraph, in rich's markup."""
        if not self.silent:
            console.show(*texts)

    def table(self, headings: list[str], rows: list[list[str]]) -> None:
        """A table whose first column is text and whose others are numbers."""
        if self.silent:
            return
        from rich.box import SIMPLE
        from rich.table import Table

        table = Table(box=SIMPLE, pad_edge=False)
        for number, heading in enumerate(headings):
            table.add_column(heading, justify="right" if number else "left")
        for row in rows:
            table.add_row(*row)
        console.show(table)


class Stopwatch:
    """Seconds of a `with` block."""

    seconds: float = 0.0

    def __enter__(self) -> Stopwatch:
        self._began = time.perf_counter()
        return self

    def __exit__(self, *exc: object) -> None:
        self.seconds = time.perf_counter() - self._began
