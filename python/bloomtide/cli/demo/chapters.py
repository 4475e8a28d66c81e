"""The chapters of the tour, in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bloomtide.cli.demo.counting import how_often
from bloomtide.cli.demo.fading import how_hot_now
from bloomtide.cli.demo.growing import unknown_size
from bloomtide.cli.demo.history import how_many_between
from bloomtide.cli.demo.membership import seen_before
from bloomtide.cli.demo.sharing import many_processes
from bloomtide.cli.demo.skew import hot_pages
from bloomtide.cli.demo.snapshots import damaged_file
from bloomtide.cli.demo.stage import Stage

Chapter = Callable[[Stage], dict[str, Any]]

CHAPTERS: tuple[tuple[str, Chapter], ...] = (
    ("Have I seen this page?", seen_before),
    ("How often was it visited?", how_often),
    ("And when a few pages are far hotter than the rest?", hot_pages),
    ("How hot is it now?", how_hot_now),
    ("How many between two instants?", how_many_between),
    ("And when nobody knows how many will come?", unknown_size),
    ("Can I trust the file?", damaged_file),
    ("Can many processes use one filter?", many_processes),
)
