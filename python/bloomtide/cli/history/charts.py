"""Counts over time as a picture: columns of blocks on a terminal, or an SVG file.

The SVG is written by hand: a few paths and labels need no library, and the file is the same each
time. Its colours stand out on white and on black.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from pathlib import Path

BLOCKS, PLAIN = " ▁▂▃▄▅▆▇█", " .:-=+*#@"
"""From nothing to full; the second where only ASCII can be written."""
HEIGHT = 8
"""Rows of a chart of one key; several keys get one each."""
COLOURS = ("#3b8bd9", "#e8590c", "#2f9e66", "#9c6ade", "#b8860b", "#c2255c")
GREY = "#808080"
WIDE, HIGH = 960, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 46, 40
"""Room around the plot, in SVG units."""


@dataclass(frozen=True, slots=True)
class Chart:
    """Values of some keys for each step of time, from `start` on, in Unix seconds."""

    start: float
    step: float
    lines: dict[str, Sequence[float]]

    @property
    def steps(self) -> int:
        """Of each line."""
        return max(len(values) for values in self.lines.values())

    @property
    def end(self) -> float:
        """Where the last step ends."""
        return self.start + self.steps * self.step

    @property
    def highest(self) -> float:
        """Of all lines, and never zero."""
        return max((max(values, default=0) for values in self.lines.values()), default=0) or 1


def blocks(values: Sequence[float], width: int, height: int, encoding: str) -> list[str]:
    """Rows of text, the top one first: a column for each value, or for several where they share it.

    Columns that stand for several values show the largest: a short peak must not vanish.
    """
    if not values:
        return [""] * height
    width = min(width, len(values))
    edges = [round(column * len(values) / width) for column in range(width + 1)]
    columns = [max(values[a:b]) for a, b in pairwise(edges)]
    highest = max(columns) or 1
    marks = BLOCKS if encoding.lower().startswith("utf") else PLAIN
    full = len(marks) - 1
    # Rounded up: what is above zero shows.
    filled = [math.ceil(value / highest * height * full) for value in columns]
    return [
        "".join(marks[min(full, max(0, level - row * full))] for level in filled)
        for row in reversed(range(height))
    ]


def moment(second: float, step: float) -> str:
    """An instant as exactly as the step asks for."""
    form = "%Y-%m-%d %H:%M:%S" if step < 60 else "%Y-%m-%d %H:%M" if step < 86_400 else "%Y-%m-%d"
    return datetime.fromtimestamp(second, UTC).strftime(form)


def write_svg(path: Path, chart: Chart, title: str) -> None:
    """The chart as a file."""
    path.write_text(svg(chart, title), encoding="utf-8")


def svg(chart: Chart, title: str) -> str:
    """The chart as a document: one step line for each key."""
    top = _round_up(chart.highest)
    parts = [_text(LEFT, 20, title, size=15)]
    for part in range(5):
        y = HIGH - BOTTOM - part / 4 * (HIGH - TOP - BOTTOM)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDE - RIGHT}" stroke="{GREY}" opacity=".3"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{top * part / 4:,.6g}", anchor="end"))
    for part in range(5):
        x = LEFT + part / 4 * (WIDE - LEFT - RIGHT)
        second = chart.start + part / 4 * (chart.end - chart.start)
        anchor = ("start", "middle", "middle", "middle", "end")[part]
        parts.append(_text(x, HIGH - BOTTOM + 20, moment(second, chart.step), anchor=anchor))
    x = float(LEFT)
    for number, (name, values) in enumerate(chart.lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        parts.append(
            f'<path d="{_steps(values, chart.steps, top)}" fill="none" stroke="{colour}"'
            ' stroke-width="1.5" stroke-linejoin="round"/>'
        )
        shown = name if len(name) <= 40 else f"{name[:39]}…"
        parts.append(_text(x, 38, shown, colour=colour))
        x += 8 * len(shown) + 16
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}"'
        f' font-family="sans-serif" font-size="12">\n{body}\n</svg>\n'
    )


def _steps(values: Sequence[float], steps: int, top: float) -> str:
    """Level through each step, then up or down."""
    width, height = WIDE - LEFT - RIGHT, HIGH - TOP - BOTTOM
    path = [f"M{LEFT} {HIGH - BOTTOM}"]
    for number, value in enumerate(values):
        path.append(f"V{HIGH - BOTTOM - value / top * height:.1f}")
        path.append(f"H{LEFT + (number + 1) / steps * width:.1f}")
    return "".join([*path, f"V{HIGH - BOTTOM}"])


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, colour: str = GREY
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
        f' fill="{colour}">{escape(text)}</text>'
    )


def _round_up(value: float) -> float:
    """The next 1, 2, 4, 5 or 10 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * step for step in (1, 2, 4, 5, 10) if value <= power * step * (1 + 1e-9))
