"""One picture for each experiment, in the style of the documentation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from docs.plots.style import BLUE, GREEN, GREY, ORANGE, one_plot, two_plots
from trials.outcome import Row

COLOURS = (BLUE, ORANGE, GREEN, GREY, "#9c6ade")


def _of(rows: list[Row], **wanted: Any) -> list[Row]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def _line(axes: Any, rows: list[Row], x: str, y: str, **style: Any) -> None:
    axes.plot([row[x] for row in rows], [row[y] for row in rows], **style)


def _e14(rows: list[Row]) -> Any:
    figure, axes = two_plots()
    hashes = sorted({row["k2"] for row in rows})
    for side, name in zip(axes, ("P_CM", "P_FF"), strict=True):
        for k2, colour in zip(hashes, COLOURS, strict=False):
            fresh = _of(rows, stream="fresh", k2=k2)
            _line(side, fresh, "rows", f"{name}_formula", color=colour, label=f"k2 = {k2}")
            for kind, mark in (("fresh", "o"), ("Zipf", "x"), ("recurring", ".")):
                of = _of(rows, stream=kind, k2=k2)
                _line(side, of, "rows", f"{name}_measured", color=colour, marker=mark, ls="")
        side.set(xscale="log", yscale="log", xlabel="rows of an MBF", ylabel=name)
    for kind, mark in (("fresh", "o"), ("Zipf", "x"), ("recurring", ".")):
        axes[0].plot([], [], mark, color=GREY, label=f"{kind} keys, measured")
    axes[0].plot([], [], color=GREY, label="the paper's formula")
    figure.legend(loc="outside lower center", ncols=4, fontsize=8)
    return figure


def _compressions(rows: list[Row]) -> Any:
    figure, (left, right) = two_plots()
    for kind, colour in (("fresh", BLUE), ("recurring", ORANGE)):
        merged, joined = (_of(rows, stream=kind, way=way) for way in ("rows", "MBFs"))
        _line(left, merged, "step", "P_FF", color=colour, marker="o", label=f"{kind} keys")
        _line(right, joined, "step", "P_BF", color=colour, marker="o", label=f"{kind} keys")
    left.set(xlabel="merges of neighbouring rows", ylabel="keys counted wrongly (P_FF)")
    right.set(xlabel="doublings: MBFs joined", ylabel="absent keys past the gate (P_BF)")
    for side in (left, right):
        side.set(ylim=(0, 1.02))
        side.legend(fontsize=8)
    return figure


def _sizes(rows: list[Row]) -> Any:
    figure, axes = two_plots()
    rate = rows[0]["rate"]
    layouts = ("paper", "exact", "ours")
    kinds = list(dict.fromkeys(row["stream"] for row in rows))
    for side, column in zip(axes, ("bits_an_entry", "wrong"), strict=True):
        for number, (layout, colour) in enumerate(zip(layouts, COLOURS, strict=False)):
            of = _of(rows, layout=layout, rate=rate)
            places = [kinds.index(row["stream"]) + 0.2 * number - 0.3 for row in of]
            side.bar(places, [row[column] for row in of], 0.18, color=colour, label=layout)
        side.set_xticks(range(len(kinds)), kinds)
    axes[0].set(ylabel="bits for each key of a row")
    axes[1].set(ylabel="keys counted wrongly")
    axes[1].axhline(rate, color=GREY, linewidth=1, linestyle=":")
    axes[0].legend(fontsize=8)
    return figure


def _cost(rows: list[Row]) -> Any:
    figure, axes = one_plot()
    for way, colour in zip(dict.fromkeys(row["way"] for row in rows), COLOURS, strict=False):
        _line(axes, _of(rows, way=way), "rows", "query_us", color=colour, marker="o", label=way)
    axes.set(xscale="log", yscale="log", xlabel="rows that are summed", ylabel="us for a count")
    axes.legend(fontsize=8)
    return figure


def _peers(rows: list[Row]) -> Any:
    figure, axes = two_plots()
    streams = list(dict.fromkeys(row["stream"] for row in rows))
    stores = list(dict.fromkeys(row["store"] for row in rows))
    for side, column in zip(axes, ("bytes_an_event", "query_us"), strict=True):
        for number, (store, colour) in enumerate(zip(stores, COLOURS, strict=False)):
            of = _of(rows, store=store)
            places = [streams.index(row["stream"]) + 0.16 * number - 0.32 for row in of]
            side.barh(places, [row[column] for row in of], 0.14, color=colour, label=store)
        side.set_yticks(range(len(streams)), [name.replace(", ", ",\n") for name in streams])
        side.set(xscale="log")
        side.invert_yaxis()
    axes[1].set_yticklabels([])
    axes[0].set(xlabel="bytes an event")
    axes[1].set(xlabel="us for a key's count in a range")
    axes[1].legend(fontsize=8)
    return figure


def _year(rows: list[Row]) -> Any:
    figure, axes = one_plot()
    for number, (column, label) in enumerate(
        (("query_us", "with roll-ups"), ("summing_us", "summing rows"))
    ):
        places = [index + 0.3 * number - 0.15 for index in range(len(rows))]
        axes.bar(places, [row[column] for row in rows], 0.28, color=COLOURS[number], label=label)
    axes.set_xticks(range(len(rows)), [row["what"] for row in rows])
    axes.set(yscale="log", ylabel="us for a count", xlabel="range")
    axes.legend(fontsize=8)
    return figure


PICTURES: dict[str, Callable[[list[Row]], Any]] = {
    "e14": _e14,
    "compressions": _compressions,
    "sizes": _sizes,
    "cost": _cost,
    "peers": _peers,
    "year": _year,
}
