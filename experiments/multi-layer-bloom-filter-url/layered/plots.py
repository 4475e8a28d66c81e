"""One picture for each experiment, in the style of the documentation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from docs.plots.style import BLUE, GREEN, GREY, ORANGE, one_plot, two_plots
from trials.outcome import Row

PURPLE = "#9c6ade"
COLOURS = (ORANGE, BLUE, GREEN, PURPLE, GREY, "#c2a200", "#20a4b8")


def _of(rows: list[Row], **wanted: Any) -> list[Row]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def _e4(rows: list[Row]) -> Any:
    """Each list at its largest size: the authors' count, and the truth."""
    last = {(row["list"], row["setting"]): row for row in rows}
    shown = list(last.values())[::-1]
    names = [
        f"{row['list']}, {row['urls'] / 1000:,.0f} k"
        + (", m = 2^b" if row["setting"] == "core" else "")
        for row in shown
    ]
    figure, (left, right) = two_plots()
    figure.set_size_inches(9.6, 0.9 + 0.42 * len(shown))
    right.set_yticks([])
    for number, (way, colour, text) in enumerate(
        (("bf", BLUE, "Bloom filter, m bits"), ("mlbf", ORANGE, "MLBF, m bits in each layer"))
    ):
        places = [place + 0.2 - 0.4 * number for place in range(len(shown))]
        both = [row[f"{way}_both"] / row["sample"] for row in shown]
        wrong = [row[f"{way}_wrong"] / row["absent"] for row in shown]
        left.barh(places, both, 0.38, color=colour, label=text)
        right.barh(places, wrong, 0.38, color=colour)
    once: str | None = "really in both halves"
    for place, row in enumerate(shown):
        if row["repeats"]:
            share = row["repeats"] / row["sample"]
            left.plot([share] * 2, [place - 0.45, place + 0.45], color=GREY, lw=2, label=once)
            once = None
    for side in (left, right):
        side.grid(axis="y", visible=False)
    left.set_yticks(range(len(shown)), names, fontsize=8)
    left.set(xlabel="accepted by both halves (as in figure 3)")
    right.set(xlabel="absent URLs accepted")
    figure.legend(loc="outside upper center", ncols=3, fontsize=8)
    return figure


def _classes(rows: list[Row]) -> Any:
    """Rates by class, for the first list."""
    name = rows[0]["list"]
    of = [row for row in _of(rows, list=name) if row["asked"]]
    kinds = list(dict.fromkeys(row["class"] for row in of))
    ways = list(dict.fromkeys(row["filter"] for row in of))
    least = 0.3 / max(row["asked"] for row in of)
    figure, axes = one_plot()
    figure.set_size_inches(9.6, 4.6)
    for number, (way, colour) in enumerate(zip(ways, COLOURS, strict=False)):
        rates = [max(least, row["rate"]) for row in _of(of, filter=way)]
        places = [place + (number - (len(ways) - 1) / 2) * 0.13 for place in range(len(kinds))]
        size = _of(of, filter=way)[0]["bytes"] * 8 / of[0]["added"]
        axes.bar(places, rates, 0.12, color=colour, label=f"{way} ({size:.0f} bits a URL)")
        for place, rate in zip(places, rates, strict=True):
            if rate == least:
                axes.text(place, 1.2 * least, "0", ha="center", color=colour, fontsize=7)
    axes.set_xticks(range(len(kinds)), kinds)
    axes.set(yscale="log", ylim=(least, 2), ylabel=f"absent URLs accepted, {name}")
    axes.axhline(0.05, color=GREY, linewidth=1, linestyle=":")
    axes.grid(axis="x", visible=False)
    figure.legend(loc="outside upper center", ncols=3, fontsize=8)
    return figure


def _e5(rows: list[Row]) -> Any:
    figure, axes = two_plots()
    ways = list(dict.fromkeys(row["way"] for row in rows))
    for side, what in zip(axes, ("add", "ask"), strict=True):
        for way, colour in zip(ways, COLOURS, strict=False):
            of = _of(rows, way=way)
            sizes = [row["urls"] for row in of]
            calls = [row[f"{what}_ms"] for row in of]
            side.plot(sizes, calls, color=colour, marker=".", label=way)
            if not way.endswith("search"):
                batch = [row[f"{what}_many_ms"] for row in of]
                side.plot(sizes, batch, color=colour, linestyle=":")
        side.set(xscale="log", yscale="log", xlabel="URLs", ylabel=f"ms to {what} (dotted: batch)")
    axes[0].legend(fontsize=8)
    return figure


def _shares(rows: list[Row]) -> Any:
    figure, axes = one_plot()
    names = list(dict.fromkeys(row["list"] for row in rows))
    for name, colour in zip(names, COLOURS, strict=False):
        of = _of(rows, list=name)
        style = "--" if name.startswith("generated") else "-"
        depths = [row["depth"] for row in of]
        shares = [row["share"] for row in of]
        axes.plot(depths, shares, style, color=colour, marker=".", label=name)
    axes.axhline(
        1, color=GREY, linewidth=1, linestyle=":", label="what the paper sizes a layer for"
    )
    axes.set(xlabel="depth", ylabel="distinct prefixes for each URL", ylim=(0, 1.05))
    axes.legend(fontsize=8)
    return figure


PICTURES: dict[str, Callable[[list[Row]], Any]] = {
    "e4": _e4,
    "classes": _classes,
    "e5": _e5,
    "shares": _shares,
}
