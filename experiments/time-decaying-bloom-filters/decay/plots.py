"""One picture for each experiment, in the style of the documentation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from docs.plots.style import BLUE, GREEN, GREY, ORANGE, one_plot, two_plots
from trials.outcome import Row

COLOURS = (BLUE, GREEN, GREY, "#9c6ade", ORANGE)


def _of(rows: list[Row], **wanted: Any) -> list[Row]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def _line(axes: Any, rows: list[Row], x: str, y: str, **style: Any) -> None:
    axes.plot([row[x] for row in rows], [row[y] for row in rows], marker=".", **style)


def _e1(rows: list[Row]) -> Any:
    figure, (left, right) = two_plots()
    names = list(dict.fromkeys(row["stream"] for row in rows))
    for name, colour in zip(names, COLOURS[-len(names) :], strict=True):
        of = _of(rows, stream=name)
        _line(left, of, "rank", "hits", color=colour, label=name)
        _line(right, of, "page_share", "visit_share", color=colour, label=name)
    left.set(xscale="log", yscale="log", xlabel="page, by visits", ylabel="visits")
    right.plot([0.1, 0.15], [0.9, 0.9], "x", color=GREY, label="the paper's figure 1")
    right.set(xscale="log", xlabel="share of pages", ylabel="share of visits", ylim=(0, 1))
    right.legend(fontsize=8)
    return figure


def _over_basic(row: Row, column: str) -> Any:
    return row[column] / row["basic_bytes"] if column.endswith("_bytes") else row[column]


def _e2(rows: list[Row]) -> Any:
    figure, axes = two_plots()
    for side, setting in zip(axes, ("paper", "ours"), strict=True):
        names = list(dict.fromkeys(row["stream"] for row in rows))
        for name, colour in zip(names, (ORANGE, BLUE, GREEN), strict=False):
            of = [
                {k.removesuffix("_bytes"): _over_basic(row, k) for k in row}
                for row in _of(rows, stream=name, setting=setting)
            ]
            side.plot([], [], color=colour, label=name)
            if "optimized" in of[0]:
                _line(side, of, "decay", "optimized", color=colour)
            _line(side, of, "decay", "paper", color=colour, linestyle=":")
            _line(side, of, "decay", "paper_linked", color=colour, linestyle="--")
        side.axhline(1, color=GREY, linewidth=1)
        side.set(xlabel=f"lambda, setting: {setting}", ylabel="bytes, of the basic layout's")
        side.set(ylim=(0, 2))
    for style, text in ((":", "paper's layout, no links"), ("--", "paper's layout, links")):
        axes[0].plot([], [], style, color=GREY, label=text)
    axes[0].legend(fontsize=8)
    return figure


def _e3(rows: list[Row]) -> Any:
    figure, (left, right) = two_plots()
    plain = [row for row in rows if row["storage"] == "basic" and row["layout"] == "classic"]
    for rounding, colour in (("strict", BLUE), ("expiring", ORANGE)):
        of = _of(plain, rounding=rounding, policy="plain")
        _line(left, of, "decay", "error_rate", color=colour, label=f"{rounding}, measured")
        _line(left, of, "decay", "equation_5", color=colour, linestyle=":", label="Eq. 5, n_eff")
    left.set(xlabel="lambda", ylabel="error rate", ylim=(0, None))
    left.legend(fontsize=8)
    decays = list(dict.fromkeys(row["decay"] for row in rows))
    of = _of(rows, decay=decays[-1])
    labels = [
        ", ".join(str(row[key]) for key in ("storage", "rounding", "policy", "layout"))
        for row in of
    ]
    right.barh(labels[::-1], [row["mean_excess"] for row in of][::-1], color=BLUE)
    right.tick_params(axis="y", labelsize=7)
    right.set(xlabel=f"mean excess of a count (log), lambda {decays[-1]:g}", xscale="log")
    return figure


def _space(rows: list[Row]) -> Any:
    figure, axes = one_plot()
    for layout, colour in (("basic", BLUE), ("optimized", ORANGE)):
        for decay, style in zip(dict.fromkeys(row["decay"] for row in rows), "-:", strict=False):
            of = _of(rows, storage=layout, decay=decay)
            text = f"{layout}, lambda {decay:g}"
            _line(axes, of, "visits", "bytes", color=colour, linestyle=style, label=text)
    axes.set(xlabel="visits", ylabel="bytes", ylim=(0, None))
    axes.legend()
    return figure


def _rounding(rows: list[Row]) -> Any:
    figure, (left, right) = two_plots()
    decays = list(dict.fromkeys(row["decay"] for row in rows))
    names = list(dict.fromkeys(row["cells"] for row in rows))[::-1]
    height = 0.8 / len(decays)
    for number, (decay, colour) in enumerate(zip(decays, (BLUE, GREEN, ORANGE), strict=False)):
        of = {row["cells"]: row for row in _of(rows, decay=decay)}
        places = [place - number * height for place in range(len(names))]
        shares = [100 * of[name]["undercounted"] for name in names]
        left.barh(places, shares, height, color=colour, label=f"lambda {decay:g}")
        right.barh(places, [of[name]["left"] for name in names], height, color=colour)
    left.set_yticks([place - 0.25 for place in range(len(names))], names, fontsize=8)
    right.set_yticks([])
    left.set(xlabel="pages counted too low, %")
    right.set(xlabel="left of pages that nobody visits", xscale="symlog")
    right.set_xscale("symlog", linthresh=0.001)
    left.legend(fontsize=8)
    return figure


def _lazy(rows: list[Row]) -> Any:
    figure, (left, right) = two_plots()
    for way, colour in (("eager", GREY), ("basic", BLUE), ("optimized", ORANGE)):
        of = _of(rows, way=way)
        text = way if way == "eager" else f"lazy, {way}"
        _line(left, of, "cells", "longest_call_us", color=colour, label=text)
        _line(right, of, "cells", "batch_ns", color=colour, label=f"{text}, in batches")
        _line(right, of, "cells", "call_ns", color=colour, linestyle=":")
    left.set(xscale="log", yscale="log", xlabel="cells", ylabel="longest call, us")
    right.set(xscale="log", yscale="log", xlabel="cells", ylabel="ns for each key (dotted: calls)")
    left.legend()
    return figure


PICTURES: dict[str, Callable[[list[Row]], Any]] = {
    "e1": _e1,
    "e2": _e2,
    "e3": _e3,
    "space": _space,
    "rounding": _rounding,
    "lazy": _lazy,
}
