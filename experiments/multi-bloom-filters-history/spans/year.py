"""`year`: a year of one-minute windows, 525,600 rows, and ranges of it with and without roll-ups.

Every question is asked as `History` answers it and by summing the finest rows, in turn. The first
time counts: it may have to map files, and the sum before it has emptied the processor's caches.
What it takes when it is asked again and again is told beside it. Cold is the first question to a
store that was just opened, by a process of its own that has asked another store before: no file is
mapped or checked yet, all are in the page cache, and Python has its modules.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from bloomtide import History
from spans.events import START
from trials.outcome import Claim, Outcome, Row
from trials.streams import zipf

MINUTE, DAY = 60, 86_400
PIECE = 500_000
COLD = """
import json, sys, time
from bloomtide import History
folder, key, start, end = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
for at in (folder + "-other", folder):
    begun = time.perf_counter()
    history = History.open(at, mode="r")
    opened = time.perf_counter()
    history.count(key, start, end)
    answered = time.perf_counter()
print(json.dumps([opened - begun, answered - opened]))
"""


def _fill(folder: Path, days: int, events: int, pages: int) -> float:
    """A stream over so many days; how many seconds it took."""
    random = np.random.default_rng(525_600)
    begun = time.perf_counter()
    with History.open(folder, "1m", sync="everysec") as history:
        for first in range(0, events, PIECE):
            size = min(PIECE, events - first)
            low, high = (START + days * DAY * at / events for at in (first, first + size))
            at = np.sort(random.random(size)) * (high - low) + low
            keys = zipf(random, pages, 1.0, size)
            history.add_many(keys, at=at)
            history.compact(now=high)
        history.seal()
        history.compact(now=START + days * DAY)
    return time.perf_counter() - begun


def _ask(history: History, key: int, start: float, end: float, rollups: bool) -> tuple[float, int]:
    begun = time.perf_counter()
    answer = history.count(key, start, end, rollups=rollups)
    return time.perf_counter() - begun, answer.upper


def _both(history: History, key: int, start: float, end: float) -> tuple[float, float, float]:
    """The times of the first question, of the sum, and of the question asked again."""
    first, upper = _ask(history, key, start, end, True)
    summed, total = _ask(history, key, start, end, False)
    assert upper <= total, "a roll-up is above the sum of its rows"
    again = median(_ask(history, key, start, end, True)[0] for _ in range(3))
    return first, summed, again


def year(days: int, events: int, pages: int, asked: int) -> Outcome:
    """All ranges."""
    random = np.random.default_rng(1)
    table: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "year"
        seconds = _fill(folder, days, events, pages)
        _fill(folder.with_name("year-other"), 2, 1000, pages)
        with History.open(folder, mode="r") as history:
            stats = history.stats()
            edges = START + np.sort(random.integers(days * 1440 + 1, size=(asked, 2)), axis=1) * 60
            ranges: dict[str, list[tuple[float, float]]] = {
                "whole": [(START, START + days * DAY)] * max(3, asked // 5),
                "any": [(float(a), float(b)) for a, b in edges if a < b],
                "a day": [(float(a), float(a) + DAY) for a, _ in edges],
                "an hour": [(float(a), float(a) + 3600) for a, _ in edges],
            }
            for what, spans in ranges.items():
                keys = zipf(random, pages, 1.0, len(spans)).tolist()
                asks = [_both(history, k, *span) for k, span in zip(keys, spans, strict=True)]
                table.append(_row(what, asks, folder, keys, spans, days))
    return Outcome(table, _claims(table, days, stats.bytes, events / seconds))


def _row(
    what: str,
    asks: list[tuple[float, float, float]],
    folder: Path,
    keys: list[int],
    spans: list[tuple[float, float]],
    days: int,
) -> Row:
    cold = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", COLD, str(folder), str(key), str(start), str(end)],
                capture_output=True, check=True, text=True,
            ).stdout
        )
        for key, (start, end) in list(zip(keys, spans, strict=True))[: min(5, len(keys) // 2)]
    ]  # fmt: skip
    quick, slow, again = zip(*asks, strict=True)
    return {
        "what": what,
        "rows": days * 1440,
        "asked": len(asks),
        "query_us": median(quick) * 1e6,
        "again_us": median(again) * 1e6,
        "query_worst_us": max(quick) * 1e6,
        "summing_us": median(slow) * 1e6,
        "gain": median(s / q for s, q in zip(slow, quick, strict=True)),
        "cold_ms": median(answer for _, answer in cold) * 1e3,
        "cold_worst_ms": max(answer for _, answer in cold) * 1e3,
        "open_ms": median(opening for opening, _ in cold) * 1e3,
    }


def _claims(table: list[Row], days: int, size: int, rate: float) -> list[Claim]:
    of = {row["what"]: row for row in table}
    claims = []
    for what in ("whole", "any"):
        row = of[what]
        claims.append(
            Claim(
                f"{days * 1440:,} rows, range {what}: at least 100x faster than summing rows",
                "",
                f"{row['gain']:.0f}x ({row['query_us']:.0f} us, asked again"
                f" {row['again_us']:.0f}; {row['summing_us'] / 1000:.1f} ms)",
                row["gain"] >= 100,
            )
        )
        times = f"{row['cold_ms']:.1f} ms, worst {row['cold_worst_ms']:.1f}"
        told = f"{times}; opening the store {row['open_ms']:.0f} ms"
        text = f"range {what}: a count of cold files takes less than 10 ms"
        claims.append(Claim(text, "", told, row["cold_worst_ms"] < 10))
    claims.append(Claim("filled", "", f"{rate:,.0f} events a second, {size / 1e6:.0f} MB", True))
    return claims
