"""One picture for each experiment, in the style of the documentation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from docs.plots.style import BLUE, GREEN, GREY, ORANGE, two_plots
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
    axes[0].legend(fontsize=8)
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


PICTURES: dict[str, Callable[[list[Row]], Any]] = {"e14": _e14, "compressions": _compressions}
