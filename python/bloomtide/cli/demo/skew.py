"""Chapter: hot pages under skew, counted by counters that grow."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from bloomtide import CountingBloomFilter, DynamicCountFilter, PartitionedDynamicCountFilter
from bloomtide.cli.demo.stage import Stage
from bloomtide.cli.quantities import show_bytes, show_seconds


def hot_pages(stage: Stage) -> dict[str, Any]:
    """Add each page with its visits as weight; compare the memory of three ways to count."""
    exact: Counter[str] = Counter()
    for batch in stage.batches:
        exact.update(batch)
    pages = list(exact)
    visits = np.fromiter(exact.values(), dtype=np.int64, count=len(exact))
    total = int(visits.sum())

    fixed = CountingBloomFilter(stage.expected, 0.01, counter_bits=32)
    whole = DynamicCountFilter(stage.expected, 0.01, total=total)
    cut = PartitionedDynamicCountFilter(stage.expected, 0.01, total=total)
    growing = {"whole": whole, "in partitions": cut}
    for filter in growing.values():
        filter.add_many(pages, visits)
    stage.say(
        f"{len(pages):,} pages, each added once with its visits as weight: {visits.max():,} for the"
        f" hottest, {np.median(visits):,.0f} for the one in the middle."
    )
    rows = [["counters of 32 bits", show_bytes(fixed.stats().bytes), "-", "-"]]
    for name, filter in growing.items():
        stats = filter.stats()
        rows.append(
            [
                f"growing, {name}",
                show_bytes(stats.bytes),
                f"{stats.rebuilds:,} of {stats.partitions:,} pieces",
                show_seconds(stats.longest_pause),
            ]
        )
    stage.table(["", "memory", "rebuilds", "longest"], rows)
    counted = {name: filter.count_many(pages) for name, filter in growing.items()}
    low = int((counted["in partitions"].astype(np.int64) < visits).sum())
    same = all((answers == counted["whole"]).all() for answers in counted.values())
    stage.say(
        f"A hot page widens only its own piece. Both {'agree' if same else 'DIFFER'} on every"
        f" page; {low} counts are too low, and no counter can be full."
    )
    return {
        "pages": len(pages),
        "total": total,
        "hottest": int(visits.max()),
        "fixed_bytes": fixed.stats().bytes,
        "whole_bytes": whole.stats().bytes,
        "partitioned_bytes": cut.stats().bytes,
        "partitions": cut.partitions,
        "longest_pause": cut.stats().longest_pause,
        "counted_too_low": low,
        "agree": same,
    }
