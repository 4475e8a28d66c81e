"""Chapter: a filter that grows."""

from __future__ import annotations

from typing import Any

from bloomtide import ScalableBloomFilter
from bloomtide.cli.demo.stage import Stage
from bloomtide.cli.quantities import show_bytes, show_rate

TARGET = 0.01


def unknown_size(stage: Stage) -> dict[str, Any]:
    """Start far too small and watch the layers come."""
    first = stage.expected // 25
    growing = ScalableBloomFilter(first, TARGET)
    for batch in stage.batches:
        growing.add_many(batch)
    stats = growing.stats()
    stage.say(
        f"Begun with room for {first:,} keys. {len(stage.exact):,} came:"
        " each layer is larger and stricter."
    )
    stage.table(
        ["layer", "room for", "holds about", "memory", "error now"],
        [
            [
                str(number),
                f"{layer.capacity:,}",
                f"{layer.items:,.0f}",
                show_bytes(layer.bytes),
                show_rate(layer.predicted_error),
            ]
            for number, layer in enumerate(stats.layers, start=1)
        ],
    )
    false = int(growing.contains_many(stage.strangers).sum())
    measured = false / len(stage.strangers)
    stage.say(
        f"All layers together err on {show_rate(measured)} of unvisited pages, measured;"
        f" the target was {show_rate(TARGET)}."
    )
    return {
        "first_capacity": first,
        "layers": len(stats.layers),
        "bytes": stats.bytes,
        "measured_error": measured,
        "predicted_error": stats.predicted_error,
        "target": TARGET,
    }
