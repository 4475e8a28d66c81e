"""Chapter: a Bloom filter against an exact set."""

from __future__ import annotations

import sys
from typing import Any

from bloomtide import BloomFilter
from bloomtide.cli.demo.stage import Stage, Stopwatch
from bloomtide.cli.quantities import show_bytes, show_rate

TARGET = 0.01


def seen_before(stage: Stage) -> dict[str, Any]:
    """Plan, build in batches, then compare memory and errors with the truth."""
    plan = BloomFilter.plan(stage.expected, TARGET)
    stage.say(
        f"BloomFilter.plan({stage.expected:_}, {TARGET}) promises {plan.bits_per_key:.2f} bits"
        f" per key, {show_bytes(plan.bytes)}, {plan.hashes} hashes, {plan.layout} layout."
    )
    seen = BloomFilter.from_plan(plan)
    batches = stage.batches
    with Stopwatch() as watch:
        for batch in batches:
            seen.add_many(batch)
    missed = sum(int((~seen.contains_many(batch)).sum()) for batch in batches)
    false = int(seen.contains_many(stage.strangers).sum())
    measured = false / len(stage.strangers)
    stats = seen.stats()
    set_bytes = sys.getsizeof(stage.exact) + sum(map(sys.getsizeof, stage.exact))

    stage.table(
        ["", "BloomFilter", "Python set"],
        [
            ["memory", show_bytes(stats.bytes), show_bytes(set_bytes)],
            ["distinct pages", f"{stats.items:,.0f} (estimated)", f"{len(stage.exact):,}"],
            ["visited pages called new", f"{missed:,}", "0"],
            ["unvisited pages called seen", f"{false:,} of {len(stage.strangers):,}", "0"],
            ["that is an error of", show_rate(measured), "0 %"],
            ["predicted from its fill", show_rate(stats.predicted_error), ""],
        ],
    )
    rate = stage.visits / watch.seconds
    stage.say(
        f"{stage.visits:,} visits went in at {rate / 1e6:,.1f} million a second;"
        f" the set is {set_bytes / stats.bytes:,.0f} times larger."
    )
    return {
        "bytes": stats.bytes,
        "set_bytes": set_bytes,
        "items": stats.items,
        "distinct": len(stage.exact),
        "false_negatives": missed,
        "probes": len(stage.strangers),
        "false_positives": false,
        "measured_error": measured,
        "predicted_error": stats.predicted_error,
        "adds_per_second": rate,
    }
