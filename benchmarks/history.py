"""A history's own work for each event: hashing, counting by key and minute, the journal, the seal.

Three hours of a skewed stream of URLs in Arrow batches, a little out of order as logs are. Each
batch's records are appended to a file, and every hour is sealed once: what is timed ends with the
finished segments. Syncing to the disk is not part of it; that takes the disk's time, not ours.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pyarrow as pa

from benchmarks.workload import zipf_stream
from bloomtide._core import HistoryBuffer, pack_records

BATCH = 50_000
MINUTE = 60_000_000
HOURS = 3
START = 1_760_000_400_000_000
"""A whole hour, in microseconds."""
JITTER = 2_000_000
ERROR = 0.01


@dataclass(frozen=True, slots=True)
class HistorySpeed:
    """The best round."""

    events: int
    add_seconds: float
    """Events into the open segments, and their records into a file."""
    seal_seconds: float
    journal_bytes: int
    segment_bytes: int
    items: int
    """Pairs of key and minute."""

    @property
    def per_second(self) -> float:
        """Events a second, the seals included."""
        return self.events / (self.add_seconds + self.seal_seconds)


def measure(events: int, rounds: int) -> HistorySpeed:
    """Adds and seals the same stream so many times."""
    keys = zipf_stream(events, exponent=1.0).arrow
    random = np.random.default_rng(7)
    steps = np.arange(events, dtype=np.int64) * (HOURS * 60 * MINUTE - JITTER) // events
    times = pa.array(START + steps + random.integers(0, JITTER, events), pa.timestamp("us", "UTC"))
    runs = [_once(list(_batches(keys, times)), events) for _ in range(rounds)]
    return max(runs, key=lambda run: run.per_second)


def _batches(keys: pa.StringArray, times: pa.Array) -> Iterator[tuple[pa.Array, pa.Array]]:
    for start in range(0, len(keys), BATCH):
        yield keys.slice(start, BATCH), times.slice(start, BATCH)


def _once(batches: list[tuple[pa.Array, pa.Array]], events: int) -> HistorySpeed:
    buffer = HistoryBuffer(window=MINUTE, rows=60)
    written = size = items = 0
    with tempfile.TemporaryFile(buffering=0) as journal:
        start = perf_counter()
        for keys, times in batches:
            buffer.add_many(keys, at=times)
            written += journal.write(pack_records(bytes(4), 1, buffer.take_journal()))
        added = perf_counter()
        for segment in buffer.segments():
            sealed = buffer.seal(segment.index, error_rate=ERROR)
            buffer.drop(segment.index)
            size += len(sealed.segment)
            items += segment.entries
        end = perf_counter()
    if buffer.entries or items == 0:
        raise SystemExit("the history was not sealed")
    return HistorySpeed(events, added - start, end - added, written, size, items)
