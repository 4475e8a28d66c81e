"""Segments, rows and roll-ups of a history, and what a range of time reads of them."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle

from docs.plots.style import BLUE, GREEN, GREY, ORANGE, one_plot, save

LEVELS = (("rows of 1 m", 64, 16), ("rows of 1 h", 16, 4), ("rows of 1 d", 4, 1))
"""Of each level: its name, rows that are drawn in all, and segments they lie in."""
WIDTH, HIGH = 64.0, 2.2
BASE = {0: 0.0, 1: 4.4, 2: 8.8}
START, END = 6.0, 55.0
"""The range that is asked for."""


def frame(axes: Axes, x: float, y: float, width: float, height: float, **style: object) -> None:
    """A box."""
    options: dict[str, object] = {"facecolor": "none", "edgecolor": GREY, "linewidth": 0.6}
    axes.add_patch(Rectangle((x, y), width, height, **{**options, **style}))


def read_by(level: int, begin: float, end: float) -> bool:
    """Whether the range reads this row: it is covered, and the row above it is not."""
    if not (begin >= START - 1e-9 and end <= END + 1e-9):
        return False
    if level == len(LEVELS) - 1:
        return True
    wider = WIDTH / LEVELS[level + 1][1]
    parent = begin // wider * wider
    return not (parent >= START - 1e-9 and parent + wider <= END + 1e-9)


figure, axes = one_plot()
figure.set_size_inches(9.6, 4.6)
axes.set(xlim=(-11, WIDTH + 15), ylim=(-6.4, 14.4))
axes.axis("off")

for level, (name, rows, segments) in enumerate(LEVELS):
    y, width = BASE[level], WIDTH / rows
    axes.text(-1, y + HIGH / 2, f"level {level}\n{name}", ha="right", va="center", fontsize=10)
    for row in range(rows):
        begin, end = row * width, (row + 1) * width
        colour = ORANGE if read_by(level, begin, end) else "none"
        frame(axes, begin, y, width, HIGH, facecolor=colour, alpha=0.85, linewidth=0.4)
    for segment in range(segments):
        span = WIDTH / segments
        frame(axes, segment * span, y - 0.25, span, HIGH + 0.5, linewidth=1.6)
        if level + 1 < len(LEVELS):
            above = BASE[level + 1]
            lines = FancyArrowPatch(
                (segment * span + span / 2, y + HIGH + 0.3),
                (segment * span + span / 2, above - 0.35),
                arrowstyle="-|>", mutation_scale=7, color=GREY, linewidth=0.7,
            )  # fmt: skip
            axes.add_patch(lines)

for x in (START, END):
    axes.plot([x, x], [-1.1, 12.2], color=BLUE, linewidth=1.4, linestyle="--")
axes.annotate(
    "", xy=(END, 12.2), xytext=(START, 12.2), arrowprops={"arrowstyle": "<->", "color": BLUE}
)
axes.text((START + END) / 2, 12.5, "count(key, start, end)", ha="center", color=BLUE, fontsize=11)
axes.text(WIDTH + 1, 9.9, "whole days\nin the middle", va="center", color=ORANGE, fontsize=9)
edges = "hours and minutes\nat the two edges"
axes.text(WIDTH + 1, 5.5, edges, va="center", color=ORANGE, fontsize=9)
axes.text(WIDTH + 1, 1.1, "a segment is a row\nof the level above", va="center", fontsize=9)

axes.text(-1, -3.6, "one segment", ha="right", va="center", fontsize=10)
for bit in range(24):
    frame(axes, bit * 0.6, -2.9, 0.55, 0.8, facecolor=BLUE if bit in (3, 9, 17) else "none")
axes.text(0, -1.9, "gate: is the key here at all?", fontsize=9)
for column in range(16):
    read = column in (2, 7, 12)
    for row in range(5):
        colour = GREEN if read else "none"
        frame(axes, 24 + column * 1.1, -6 + row * 0.75, 1.0, 0.68, facecolor=colour, alpha=0.8)
axes.text(24, -1.9, "counters: rows of time, columns of keys", fontsize=9)
axes.text(
    43, -4.1,
    "a key has k columns; each lies in one piece,\nso any run of rows costs k reads;\n"
    "the count of a row is the smallest of its k cells",
    va="center", fontsize=9,
)  # fmt: skip
save(figure, "history-segments")
