"""One picture for each experiment, in the style of the documentation."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

from docs.plots.style import BLUE, GREEN, GREY, ORANGE, one_plot, two_plots
from trials.outcome import Row

COLOURS = {"SBF": GREY, "PSBF": GREEN, "DCF": BLUE, "PDCF": ORANGE}
STYLES = {"Eq. 4": ":", "levels": "--", "auto": "-.", "PDCF, PSBF's memory": "--"}


def _lines(axes: Any, rows: list[Row], by: tuple[str, ...], x: str, y: str) -> None:
    """A line for each filter, or filter and way to choose c."""

    def label(row: Row) -> tuple[str, ...]:
        return tuple(str(row[column]) for column in by)

    for names, group in groupby(sorted(rows, key=label), key=label):
        part = sorted(group, key=lambda row: row[x])
        colour = COLOURS.get(names[0].split(",")[0], ORANGE)
        style = STYLES.get(names[-1], "-")
        points = [row[x] for row in part], [row[y] for row in part]
        text = ", ".join(word for word in names if word != "one")
        axes.plot(*points, style, marker=".", color=colour, label=text)


def _log(axes: Any, x: str, y: str) -> None:
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y)


def _e6(rows: list[Row]) -> Any:
    figure, (left, right) = two_plots()
    for theta, colour in ((0.0, BLUE), (2.0, ORANGE)):
        of = [row for row in rows if row["theta"] == theta]
        c = [row["partitions"] for row in of]
        text = f"theta {theta:g}"
        left.plot(c, [row["mean_rebuild_us"] for row in of], ".-", color=colour, label=text)
        right.plot(c, [row["peak_bytes"] for row in of], ".-", color=colour, label=text)
    _log(left, "partitions", "mean rebuild, us")
    right.set(xscale="log", xlabel="partitions", ylabel="peak memory with buffer, bytes")
    right.legend()
    return figure


def _e7(rows: list[Row]) -> Any:
    figure, (left, right) = two_plots()
    for axes, column, title in (
        (left, "dcf_over_pdcf", "DCF / PDCF"),
        (right, "psbf_over_pdcf", "PSBF / PDCF"),
    ):
        for share in sorted({row["occ"] for row in rows}):
            of = [row for row in rows if row["occ"] == share]
            points = [row["mean"] for row in of], [row[column] for row in of]
            axes.plot(*points, ".-", label=f"occ {share:g}")
        axes.axhline(1, color=GREY, linewidth=1)
        axes.set(xscale="log", xlabel="M/n", ylabel=f"memory, {title}")
    right.legend()
    return figure


def _e8(rows: list[Row]) -> Any:
    figure, (left, right) = two_plots()
    # Of the literal array only the counters moved are known.
    timed = [row for row in rows if row["chosen"] != "literal"]
    _lines(left, timed, ("filter", "chosen"), "n", "mean_rebuild_us")
    _lines(right, timed, ("filter", "chosen"), "n", "access_ns")
    _log(left, "distinct keys", "mean rebuild, us")
    left.legend(fontsize=8, ncols=2, loc="lower right", bbox_to_anchor=(1, 0.08))
    right.set(xscale="log", xlabel="distinct keys", ylabel="access, ns")
    right.legend(loc="center")
    return figure


def _e9(rows: list[Row]) -> Any:
    figure, axes = one_plot()
    n, step = rows[-1]["n"], rows[0]["step"]
    of = [row for row in rows if (row["n"], row["step"], row["draw"]) == (n, step, 0)]
    labels = [f"{row['filter']}, c = {row['partitions']}, {row['mode']}" for row in of]
    places = list(range(len(of)))[::-1]
    total = [row["seconds"] for row in of]
    colours = [COLOURS[row["filter"]] for row in of]
    axes.barh(places, total, color=colours, alpha=0.35)
    axes.barh(places, [row["rebuild_seconds"] for row in of], color=colours)
    axes.set_yticks(places, labels, fontsize=9)
    axes.set(xscale="log", xlim=(1e-3, None))
    axes.set(xlabel=f"seconds (log), n = {n}, steps of {step}; dark: in rebuilds")
    return figure


def _e10(rows: list[Row]) -> Any:
    figure, axes = one_plot()
    labels = [f"{row['filter']}, theta {row['theta']:g}" for row in rows]
    wrong = [100 * (1 - row["exact_share"]) for row in rows]
    axes.barh(labels[::-1], wrong[::-1], color=[COLOURS[row["filter"]] for row in rows][::-1])
    axes.set(xlabel="counts that are not exact, %")
    return figure


def _e11(rows: list[Row]) -> Any:
    figure, (left, right) = two_plots()
    x = [row["frequency"] for row in rows]
    left.plot(x, [row["partitions"] for row in rows], ".-", color=ORANGE)
    right.plot(x, [row["mean_rebuild_us"] for row in rows], ".-", color=ORANGE)
    _log(left, "requests in a second", "partitions by Eq. 3")
    _log(right, "requests in a second", "mean rebuild, us")
    return figure


def _e12(rows: list[Row]) -> Any:
    figure, (left, right) = two_plots()
    drawn = [row for row in rows if row["stream"] == "zipf"]
    _lines(left, drawn, ("filter", "chosen"), "theta", "bits_per_counter")
    _lines(right, drawn, ("filter", "chosen"), "theta", "operation_ns")
    left.set(xlabel="theta", ylabel="bits for each counter", ylim=(0, None))
    right.set(xlabel="theta", ylabel="insert, ns", yscale="log")
    left.legend(fontsize=8)
    return figure


def _e13(rows: list[Row]) -> Any:
    figure, (left, right) = two_plots()
    percent = [{**row, "exact_share": 100 * row["exact_share"]} for row in rows]
    _lines(left, percent, ("filter",), "load", "exact_share")
    _lines(right, rows, ("filter",), "load", "bytes")
    left.set(xlabel="load, 1 is what was expected", ylabel="exact counts, %")
    right.set(xlabel="load, 1 is what was expected", ylabel="bytes", ylim=(0, None))
    left.legend()
    return figure


def _pause(rows: list[Row]) -> Any:
    figure, axes = one_plot()
    labels = [f"{row['filter']}, c = {row['partitions']}" for row in rows]
    longest = [row["longest_rebuild_us"] for row in rows]
    axes.barh(labels[::-1], longest[::-1], color=[COLOURS[row["filter"]] for row in rows][::-1])
    axes.set(xscale="log", xlim=(1, None), xlabel="longest pause, us")
    return figure


PICTURES: dict[str, Callable[[list[Row]], Any]] = {
    "e6": _e6,
    "e7": _e7,
    "e8": _e8,
    "e9": _e9,
    "e10": _e10,
    "e11": _e11,
    "e12": _e12,
    "e13": _e13,
    "pause": _pause,
}
