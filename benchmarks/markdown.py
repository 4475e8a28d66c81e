"""A Markdown table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NOTHING = "-"
"""Shown where there is no number."""


def table(rows: Iterable[Sequence[str]], header: Sequence[str]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    lines = [_line(header), _line(["---", *["---:"] * (len(header) - 1)])]
    return "\n".join([*lines, *map(_line, rows)])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
