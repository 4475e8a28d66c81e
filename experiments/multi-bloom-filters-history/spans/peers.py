"""`peers`: the comparison that a user would make: the same log in `History`, DuckDB and SQLite.

Bytes on disk, events a second, the time of one question ("how often did this key come between these
two instants?"), and how many answers are wrong. The questions are the same for all stores: half of
the keys drawn from events, so that frequent ones are asked for more often, a quarter from the
distinct keys, a quarter absent. A range begins and ends with windows and is anywhere in the stream.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spans.databases import DuckDB, SQLite, Store, grouped
from spans.events import Events, generated_pages, generated_urls, logs
from spans.ours import OurHistory
from trials.outcome import Claim, Outcome, Row

PIECE = 200_000
"""Events that come together; a piece ends with a window."""

THIRTY = {60_000_000: "1m for 30d", 3_600_000_000: "1h for 1024d"}
"""A retention that covers the stream, by its window."""

Question = tuple[str, int, int]
Makers = dict[str, Callable[[Path, int], Store]]

STORES: Makers = {
    "History": lambda folder, width: OurHistory(folder, width),
    "History, kept 30 days": lambda folder, width: OurHistory(folder, width, THIRTY[width]),
    "DuckDB": lambda folder, width: DuckDB(folder, width),
    "DuckDB, sorted by key": lambda folder, width: DuckDB(folder, width, order="key"),
    "DuckDB, index": lambda folder, width: DuckDB(folder, width, index=True),
    "SQLite, index": lambda folder, width: SQLite(folder, width),
}


def pieces(events: Events) -> Iterator[tuple[pa.Array, np.ndarray]]:
    """Pieces of the stream that end with a window."""
    windows = events.at // events.width
    first = 0
    while first < len(events):
        last = min(first + PIECE, len(events))
        if last < len(events):
            last = int(np.searchsorted(windows, windows[last - 1], side="right"))
        yield events.keys.slice(first, last - first), events.at[first:last]
        first = last


def questions(events: Events, count: int) -> list[Question]:
    """The same ones for every store."""
    random = np.random.default_rng(7)
    distinct = pc.unique(events.keys)
    visited = events.keys.take(pa.array(random.integers(len(events), size=count // 2)))
    any_key = distinct.take(pa.array(random.integers(len(distinct), size=count // 4)))
    keys = [*visited.to_pylist(), *any_key.to_pylist()]
    keys += [f"https://absent.example/{number}" for number in range(count - len(keys))]
    first, last = int(events.at[0]) // events.width, int(events.at[-1]) // events.width + 1
    edges = np.sort(random.integers(first, last + 1, size=(count, 2)), axis=1) * events.width
    asked = zip(keys, edges[:, 0].tolist(), edges[:, 1].tolist(), strict=True)
    return [asked for asked in asked if asked[1] < asked[2]]


def truths(events: Events, asked: list[Question]) -> list[int]:
    """By sorting: the instants of each key that is asked for."""
    counted = grouped(events.keys, events.at, events.width)
    wanted = pc.is_in(counted["key"], pa.array(list({key for key, _, _ in asked})))
    by_key: dict[str, list[tuple[int, int]]] = {}
    for row in counted.filter(wanted).to_pylist():
        by_key.setdefault(row["key"], []).append((row["window_start"], row["n"]))
    return [sum(n for at, n in by_key.get(key, []) if a <= at < b) for key, a, b in asked]


def measured(
    events: Events, make: Callable[[Path, int], Store], asked: list[Question], truth: list[int]
) -> Row:
    """One store with one stream."""
    with tempfile.TemporaryDirectory() as folder:
        store = make(Path(folder), events.width)
        gc.collect()
        start = time.perf_counter()
        for keys, at in pieces(events):
            store.add(keys, at)
        store.finish()
        ingest = time.perf_counter() - start
        answers, took = [], []
        for key, first, last in asked:
            begun = time.perf_counter()
            answers.append(store.count(key, first, last))
            took.append(time.perf_counter() - begun)
        size = store.bytes()
        store.close()
    assert all(a >= t for a, t in zip(answers, truth, strict=True)), "an answer below the truth"
    wrong = sum(a != t for a, t in zip(answers, truth, strict=True))
    excess = sum(answers) - sum(truth)
    return {
        "stream": events.name,
        "store": "",
        "events": len(events),
        "distinct": len(pc.unique(events.keys)),
        "bytes": size,
        "bytes_an_event": size / len(events),
        "events_a_second": len(events) / ingest,
        "query_us": median(took) * 1e6,
        "query_p99_us": float(np.quantile(took, 0.99)) * 1e6,
        "wrong": wrong / len(asked),
        "excess": excess / max(1, sum(truth)),
    }


def peers(
    data: Path | None, limit: int, urls: tuple[int, int], pages: tuple[int, int, int], count: int
) -> Outcome:
    """Every store with every stream."""
    rows: list[Row] = []
    streams = [*logs(data, limit), generated_pages(*pages), generated_urls(*urls, 0.3)]
    for events in streams:
        asked = questions(events, count)
        truth = truths(events, asked)
        for name, make in STORES.items():
            rows.append(measured(events, make, asked, truth) | {"store": name})
    of = {(row["stream"], row["store"]): row for row in rows}
    claims: list[Claim] = []
    for events in streams:
        ours = of[events.name, "History"]
        sides = [of[events.name, name] for name in STORES if name.startswith("DuckDB")]
        best = min(sides, key=lambda row: float(row["query_us"]))
        gain = best["query_us"] / ours["query_us"]
        times = f"{ours['query_us']:.0f} us; {best['store']} {best['query_us']:.0f} us"
        claims.append(
            Claim(
                f"{events.name}: a question is at least 5x faster than the fastest DuckDB",
                "",
                f"{gain:.0f}x ({times})",
                gain >= 5,
            )
        )
        claims.append(
            Claim(
                f"{events.name}: at most 1 % of the answers are wrong",
                "",
                f"{ours['wrong']:.2%}, {ours['excess']:.2%} too many in all",
                ours["wrong"] <= 0.01,
            )
        )
        claims.append(_bytes(events.name, of, min(sides, key=lambda row: int(row["bytes"]))))
    return Outcome(rows, claims)


def _bytes(stream: str, of: dict[tuple[str, str], Row], smallest: Row) -> Claim:
    """For a stream whose keys are mostly rare at most half is asked; elsewhere it is a finding."""
    ours, kept = of[stream, "History"], of[stream, "History, kept 30 days"]
    share = kept["bytes"] / smallest["bytes"]
    told = (
        f"{share:.2f} kept 30 days, {ours['bytes'] / smallest['bytes']:.2f} for ever"
        f" ({kept['bytes_an_event']:.1f} and {ours['bytes_an_event']:.1f} B an event;"
        f" {smallest['store']} {smallest['bytes_an_event']:.1f})"
    )
    return Claim(f"{stream}: bytes, at most half of the smallest DuckDB's", "", told, share <= 0.5)
