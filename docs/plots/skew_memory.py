"""Memory of the structures that count against the skew of the stream, measured with all keys in."""

# ruff: noqa: T201

from __future__ import annotations

from bloomtide.cli.skew import Stream, compare, plan_of
from docs.plots.style import BLUE, GREEN, GREY, ORANGE, one_plot, save

KEYS = 100_000
OCCURRENCES = 1_000_000
SKEWS = [step / 10 for step in range(17)]
TABLE = (0.0, 0.5, 0.8, 1.0, 1.2, 1.5)

LINES = [
    ("CountingBloomFilter", GREY, "-", "counting, as wide as needed"),
    ("SpectralBloomFilter", BLUE, "-", "spectral"),
    ("PartitionedSpectralBloomFilter", BLUE, "--", "spectral, partitioned"),
    ("DynamicCountFilter", GREEN, "-", "dynamic count"),
    ("PartitionedDynamicCountFilter", ORANGE, "-", "dynamic count, partitioned"),
]

bits: dict[str, list[float]] = {name: [] for name, *_ in LINES}
for skew in SKEWS:
    stream = Stream(KEYS, OCCURRENCES, skew)
    goal = {"capacity": KEYS, "error_rate": 0.01, "total": OCCURRENCES}
    rows = compare(stream, plan_of("pdcf", goal, skew), goal)
    for row, (name, *_) in zip(rows, LINES, strict=True):
        assert row["name"].startswith(name.partition(",")[0])
        bits[name].append(row["measured_bytes"] * 8 / KEYS)
    if skew in TABLE:
        told = ", ".join(f"{name} {values[-1]:.0f}" for name, values in bits.items())
        print(f"skew {skew}, hottest {stream.largest}: bits per key {told}")

figure, axes = one_plot()
for name, colour, style, label in LINES:
    axes.plot(SKEWS, bits[name], style, color=colour, label=label)
axes.set(xlabel="skew: the key of rank r comes in proportion to 1/r^skew", ylabel="bits per key")
axes.set(ylim=(0, 560))
axes.legend(loc="upper left", ncols=2, fontsize=9)
save(figure, "skew-memory")
