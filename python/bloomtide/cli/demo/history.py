"""Chapter: how many between t1 and t2."""

from __future__ import annotations

from collections import Counter
from typing import Any

from bloomtide.cli.demo.stage import Stage, Stopwatch
from bloomtide.cli.quantities import show_bytes, show_seconds

DAY, START = 86_400, 1_770_000_000 // 86_400 * 86_400
DAYS = 30
WEEK = (START + 14 * DAY, START + 21 * DAY)
"""The third one."""


def how_many_between(stage: Stage) -> dict[str, Any]:
    """A month of visits in a store, and the counts of one week of it."""
    from bloomtide import History

    exact: Counter[str] = Counter()
    path = stage.folder / "history"
    visits = 0
    with History.open(path, "1h") as history, Stopwatch() as filling:
        for day in range(DAYS):
            batch = stage.batches[day % len(stage.batches)]
            batch = batch[day % 7 :: 7]
            at = [START + day * DAY + number * DAY // len(batch) for number in range(len(batch))]
            history.add_many(batch, at=at)
            visits += len(batch)
            if WEEK[0] <= at[0] < WEEK[1]:
                exact.update(batch)
        history.seal()
        history.compact(now=START + DAYS * DAY)
    with History.open(path, mode="r") as history:
        pages = [page for page, _ in exact.most_common(3)] + ["https://example.org/never"]
        with Stopwatch() as asking:
            counts = {page: history.count(page, *WEEK).upper for page in pages}
        wrong = sum(
            count != exact[page]
            for page, count in zip(
                exact, history.count_many(list(exact), *WEEK).tolist(), strict=True
            )
        )
        size = history.stats().bytes
    stage.say(
        f"{visits:,} visits of {DAYS} days went into a store on disk. How often did people come"
        " in the third week?"
    )
    stage.table(
        ["page", "counted", "exactly"],
        [[page, f"{count:,}", f"{exact[page]:,}"] for page, count in counts.items()],
    )
    stage.say(
        f"Never too low, and too high for {wrong:,} of {len(exact):,} pages. Cost:"
        f" {show_bytes(size)} on disk; an answer takes {show_seconds(asking.seconds / len(pages))},"
        " also over a year."
    )
    return {
        "visits": visits,
        "bytes": size,
        "seconds": filling.seconds,
        "counted": counts,
        "exact": {page: exact[page] for page in counts},
        "wrong": wrong,
        "pages": len(exact),
    }
