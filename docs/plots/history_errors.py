"""How often counts over many segments of a history are too high, beside what answers predict."""

# ruff: noqa: T201

from __future__ import annotations

import tempfile

import numpy as np

from bloomtide.history import History
from docs.plots.style import BLUE, GREY, ORANGE, one_plot, save

KEYS, HOURS, START, HOUR = 1000, 1000, 1_767_225_600, 3600
KEY_NAMES = [f"key {number}" for number in range(KEYS)]
SEGMENTS = (1, 3, 10, 30, 100, 300, 1000)


def shares(store: History) -> list[tuple[float, float]]:
    """Of each number of segments: keys whose count is too high, and what the answers say."""
    found = []
    for segments in SEGMENTS:
        answers = [store.count(key, START, START + segments * HOUR) for key in KEY_NAMES]
        wrong = sum(answer.upper > segments for answer in answers) / KEYS
        found.append((wrong, sum(answer.predicted_error for answer in answers) / KEYS))
        print(f"{segments} segments: {found[-1][0]:.4f} too high, predicted {found[-1][1]:.4f}")
    return found


draw = np.random.default_rng(23)
with tempfile.TemporaryDirectory() as folder:
    words = {"sync": "no", "background": False, "clock": lambda: START + 10**8}
    with History.open(folder, "1m", **words) as history:  # type: ignore[arg-type]
        for hour in range(HOURS):
            at = START + hour * HOUR + draw.integers(0, 60, KEYS) * 60.0
            history.add_many(KEY_NAMES, at=at)
            history.seal()
        print(f"stats().predicted_error before: {history.stats().predicted_error:.4f}")
        apart = shares(history)
        history.compact()
        print(f"stats().predicted_error after: {history.stats().predicted_error:.4f}")
        together = shares(history)

figure, axes = one_plot()
axes.set(xscale="log", yscale="log", xlabel="hours in the range, each a segment")
axes.set_ylabel("share of the keys that are counted too high")
for name, colour, found in (("not rolled up", ORANGE, apart), ("rolled up", BLUE, together)):
    axes.plot(SEGMENTS, [told for _, told in found], color=colour, label=f"{name}, predicted")
    measured = [wrong or np.nan for wrong, _ in found]
    axes.plot(SEGMENTS, measured, "o", color=colour, label=f"{name}, measured")
axes.axhline(0.01, color=GREY, linestyle="--", linewidth=1, label="error_rate")
axes.legend(fontsize=9)
save(figure, "history-errors")
