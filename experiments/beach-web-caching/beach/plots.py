"""One picture for each experiment, in the style of the documentation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from docs.plots.style import BLUE, GREEN, GREY, ORANGE, one_plot, two_plots
from trials.outcome import Row

PURPLE = "#9c6ade"
COLOURS = (ORANGE, BLUE, GREEN, PURPLE, GREY)


def _of(rows: list[Row], **wanted: Any) -> list[Row]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def _saturation(rows: list[Row]) -> Any:
    """Points are measured, lines the formula; a point that would be at none is left out."""
    figure, (left, right) = two_plots()
    phases = sorted({row["phase"] for row in rows if row["way"] == "slices"})
    shown = [phases[round(i * (len(phases) - 1) / 3)] for i in range(4)]
    for phase, colour in zip(shown, COLOURS, strict=False):
        of = _of(rows, way="slices", phase=phase)
        _line(left, of, "formula", colour, f"phase {phase}")
        _points(left, of, colour)
    blocked = sorted({row["phase"] for row in rows if row["way"] == "blocked"})
    for phase, colour in zip((blocked[0], blocked[-1]), COLOURS, strict=False):
        of = _of(rows, way="blocked", phase=phase)
        _line(right, of, "formula", colour, f"phase {phase}: saturation^phase")
        _line(right, of, "predicted", colour, f"phase {phase}: block by block", "--")
        _points(right, of, colour)
    least = 1 / rows[0]["asked"]
    for side, title in ((left, "bits anywhere"), (right, "bits of a key in one block")):
        side.set(xlabel="saturation", yscale="log", ylim=(least / 2, 2), title=title)
        side.legend(fontsize=8)
    left.set(ylabel="false positives (points: measured)")
    return figure


def _line(axes: Any, rows: list[Row], what: str, colour: str, text: str, style: str = "-") -> None:
    fills = [row["saturation"] for row in rows]
    axes.plot(fills, [row[what] for row in rows], style, color=colour, label=text, lw=1.2)


def _points(axes: Any, rows: list[Row], colour: str) -> None:
    some = [row for row in rows if row["accepted"]]
    rates = [row["accepted"] / row["asked"] for row in some]
    axes.plot([row["saturation"] for row in some], rates, "o", color=colour, ms=4)


def _optimum(rows: list[Row]) -> Any:
    figure, (left, right) = two_plots()
    sizes = sorted({round(row["bits_per_key"]) for row in rows if row["question"] == "phase"})
    for each, colour in zip(sizes, COLOURS, strict=False):
        of = [
            row
            for row in _of(rows, question="phase")
            if round(row["bits_per_key"]) == each and row["accepted"]
        ]
        fills = [row["saturation"] for row in of]
        left.plot(
            fills, [row["rate"] for row in of], "o-", color=colour, ms=3, label=f"{each} bits a key"
        )
    left.set(xlabel="saturation, by phase", ylabel="false positives", yscale="log")
    memory = _of(rows, question="memory")
    right.plot(
        [row["saturation"] for row in memory],
        [row["bits_per_key"] for row in memory],
        "o-",
        color=PURPLE,
        ms=3,
        label="error 1 %",
    )
    right.set(xlabel="saturation, by phase", ylabel="bits a key", ylim=(8, 22))
    for side in (left, right):
        side.axvline(0.5, color=GREY, linewidth=1, linestyle=":")
        side.legend(fontsize=8)
    return figure


def _queries(rows: list[Row]) -> Any:
    figure, axes = one_plot()
    for rate, colour in zip(sorted({row["error_rate"] for row in rows}), COLOURS, strict=False):
        of = _of(rows, error_rate=rate)
        empty = [row["empty_pages"] / row["pages"] for row in of]
        axes.plot(empty, [row["formula"] for row in of], color=colour, lw=1.2)
        shares = [row["avoided_share"] for row in of]
        axes.plot(empty, shares, "o", color=colour, ms=4, label=f"error {rate:g}")
    axes.set(
        xlabel="pages for customers whose basket is empty",
        ylabel="queries avoided (lines: formula)",
    )
    axes.legend(fontsize=8)
    return figure


def _turnover(rows: list[Row]) -> Any:
    figure, axes = one_plot()
    changes = [row["changes"] for row in rows]
    for name, text, colour in (
        ("rebuilt", "bits, rebuilt", BLUE),
        ("counters", "counters, told of emptied baskets", GREEN),
        ("bits", "bits, never rebuilt", ORANGE),
    ):
        style = "o--" if name == "counters" else "o-"  # it covers the line of the rebuilt bits
        axes.plot(changes, [row[name] for row in rows], style, color=colour, ms=3, label=text)
    axes.set(
        xlabel="how often all full baskets were replaced",
        ylabel="queries avoided, of all that could be",
        ylim=(0, 1.03),
    )
    axes.legend(fontsize=8)
    return figure


def _pages(rows: list[Row]) -> Any:
    figure, axes = two_plots()
    for side, what, text, form in (
        (axes[0], "pages_per_second", "pages a second", "{:,.0f}"),
        (axes[1], "p99_ms", "p99, ms", "{:.1f}"),
    ):
        for guard, colour, shift in (("off", GREY, -0.2), ("on", ORANGE, 0.2)):
            of = _of(rows, guard=guard)
            places = [place + shift for place in range(len(of))]
            bars = side.bar(places, [row[what] for row in of], 0.38, color=colour)
            bars.set_label(f"guard {guard}")
            side.bar_label(bars, fmt=form, fontsize=8, color=GREY)
        side.set_xticks(range(len(of)), [f"{row['empty_percent']} %" for row in of])
        side.set(xlabel="baskets that are empty", ylabel=text)
        side.grid(axis="x", visible=False)
    axes[0].legend(fontsize=8, loc="upper left")
    return figure


PICTURES: dict[str, Callable[[list[Row]], Any]] = {
    "saturation": _saturation,
    "optimum": _optimum,
    "queries": _queries,
    "turnover": _turnover,
    "pages": _pages,
}
