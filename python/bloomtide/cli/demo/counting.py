"""Chapter: a counting filter against exact counts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from bloomtide import CountingBloomFilter
from bloomtide.cli.demo.stage import Stage
from bloomtide.cli.quantities import show_bytes


def how_often(stage: Stage) -> dict[str, Any]:
    """Count every visit; show the most visited pages, then forget one of them."""
    # 32 bits a counter: the most popular page has more visits than 16 bits can hold.
    visits = CountingBloomFilter(stage.expected, 0.01, counter_bits=32)
    exact: Counter[str] = Counter()
    for batch in stage.batches:
        visits.add_many(batch)
        exact.update(batch)

    pages = list(exact)
    truth = np.fromiter(exact.values(), dtype=np.int64, count=len(exact))
    counted = visits.count_many(pages).astype(np.int64)
    top = exact.most_common(5)
    stage.table(
        ["page", "true", "counted"],
        [[page, f"{count:,}", f"{visits.count(page):,}"] for page, count in top],
    )
    right = int((counted == truth).sum())
    low = int((counted < truth).sum())
    stage.say(
        f"Of {len(pages):,} pages {right / len(pages):.2%} are counted exactly and {low} too low:"
        " a count can only be too high.",
        f"Cost: {show_bytes(visits.stats().bytes)}, with no page stored.",
    )
    page, count = top[0]
    before = visits.count(page)
    visits.remove(page, count)
    after = visits.count(page)
    stage.say(f"remove(page, {count:,}) takes the top page from {before:,} to {after:,}.")
    return {
        "bytes": visits.stats().bytes,
        "pages": len(pages),
        "exactly_counted": right,
        "counted_too_low": low,
        "top": [{"page": p, "true": n, "counted": int(counted[pages.index(p)])} for p, n in top],
        "after_remove": after,
    }
