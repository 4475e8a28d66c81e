"""Chapter: counts that fade, and the hottest keys now."""

from __future__ import annotations

from collections import Counter
from typing import Any

from bloomtide import TimeDecayingBloomFilter
from bloomtide.cli.demo.stage import Stage
from bloomtide.cli.quantities import show_bytes

HOUR, NOON = 3600, 1_770_000_000 // 3600 * 3600
HALF_LIFE = 2 * HOUR
MORNING, EVENING = "https://example.org/launch", "https://example.org/sale"


def how_hot_now(stage: Stage) -> dict[str, Any]:
    """A day of visits: one page is hot in the morning, another one in the evening."""
    hot = TimeDecayingBloomFilter(stage.expected, 0.01, half_life=HALF_LIFE).with_hot_list(200)
    batches = [stage.batches[i % len(stage.batches)] for i in range(24)]
    share = max(1, len(batches[0]) // 3)
    total: Counter[str] = Counter()
    exact: dict[str, float] = {MORNING: 0.0, EVENING: 0.0}
    for hour, batch in enumerate(batches):
        visits = batch + [MORNING] * (2 * share * (hour < 8)) + [EVENING] * (share * (hour >= 20))
        hot.add_many(visits, at=NOON + hour * HOUR)
        total.update(visits)
        for page, sum in exact.items():
            exact[page] = sum * 0.5 ** (HOUR / HALF_LIFE) + visits.count(page)
    now = NOON + (len(batches) - 1) * HOUR
    counts = {page: hot.count(page, now) for page in exact}
    top = hot.top(5, at=now)
    stage.say(
        f"A day of visits, an hour at a time; what is {HALF_LIFE // HOUR} hours old counts half."
        f" {MORNING} was hot in the first 8 hours, {EVENING} is in the last 4."
    )
    stage.table(
        ["page", "all day", "hot now", "exactly"],
        [[p, f"{total[p]:,}", f"{counts[p]:,.1f}", f"{exact[p]:,.1f}"] for p in exact],
    )
    stage.table(
        ["hottest now", "count", "share"],
        [[str(item.key), f"{item.count:,.0f}", f"{item.share:.1%}"] for item in top],
    )
    size = hot.filter.stats(at=now).bytes
    stage.say(
        f"Nobody went over all counters at the end of an hour. Cost: {show_bytes(size)}, and a list"
        " of 200 keys."
    )
    return {
        "bytes": size,
        "total": {page: total[page] for page in exact},
        "hot": counts,
        "exact": exact,
        "top": [item.key for item in top],
        "pages": {"morning": MORNING, "evening": EVENING},
    }
