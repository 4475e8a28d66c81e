"""`sizes`: bits for each event: the paper's counters, ours, and an exact table.

The paper gives every counter ceil(log2(n2 + 1)) bits, for the one that might meet all n2 events.
Ours are as wide as what their column holds, and hold the largest count of a key instead of the sum.
An exact table has a 64-bit digest and a count for each key of each row.
"""

from __future__ import annotations

import numpy as np

from bloomtide._core import Digests, HistoryBuffer, HistorySegment
from bloomtide.reference.history import Sizes
from spans.arrays import Numbers, Segment
from spans.formulas import ABSENT, KINDS, SEED, windows
from trials.outcome import Claim, Outcome, Row

MINUTE = 60_000_000


def sealed(streams: list[Numbers], error_rate: float) -> HistorySegment:
    """Our segment with a row for each of these."""
    buffer = HistoryBuffer(window=MINUTE, arrivals=None, rows=len(streams), names=0)
    for row, keys in enumerate(streams):
        buffer.add_many(keys, at=row * 60)
    [one] = buffer.segments()
    made = buffer.seal(one.index, error_rate=error_rate, gate_error=error_rate)
    return HistorySegment.from_bytes(made.segment)


def _wrong(segment: HistorySegment, streams: list[Numbers]) -> tuple[float, float]:
    """Shares of the keys inside and of absent ones that the whole segment counts too high."""
    keys, truth = np.unique(np.concatenate(streams), return_counts=True)
    upper = segment.count_many(Digests(keys), 0, len(streams))
    assert (upper >= truth.astype(np.uint64)).all(), "an upper bound below the truth"
    absent = segment.count_many(Digests(ABSENT + np.arange(100_000)), 0, len(streams))
    return float((upper != truth).mean()), float((absent > 0).mean())


def sizes(n2: int, rows: int, rates: tuple[float, ...]) -> Outcome:
    """Every stream and layout."""
    table: list[Row] = []
    for kind in KINDS:
        for rate in rates:
            # The paper's promise is for a row; ours is for all rows of a segment together.
            planned = Sizes(n2, rows, rate / rows, rate)
            streams = list(windows(kind, planned, SEED))
            events = sum(map(len, streams))
            entries = sum(len(np.unique(keys)) for keys in streams)
            largest = max(int(np.bincount(keys - keys.min()).max()) for keys in streams)
            theirs = Segment(planned)
            for keys in streams:
                theirs.add_row(keys)
            keys, truth = np.unique(np.concatenate(streams), return_counts=True)
            wrong = float((theirs.counts(keys).sum(axis=1) != truth).mean())
            letter = planned.m1 + rows * planned.m2 * planned.d
            base = {"stream": kind, "rate": rate, "events": events, "entries": entries}
            table.append(base | {"layout": "paper", "bits": letter, "wrong": wrong, "false": 0.0})
            exact = entries * (64 + largest.bit_length())
            table.append(base | {"layout": "exact", "bits": exact, "wrong": 0.0, "false": 0.0})
            segment = sealed(streams, rate)
            inside, absent = _wrong(segment, streams)
            found = {"bits": 8 * segment.info.bytes, "wrong": inside, "false": absent}
            table.append(base | {"layout": "ours"} | found)
    for row in table:
        row["bits_an_event"] = row["bits"] / row["events"]
        row["bits_an_entry"] = row["bits"] / row["entries"]
    return Outcome(table, _claims(table, rates))


def _claims(table: list[Row], rates: tuple[float, ...]) -> list[Claim]:
    claims: list[Claim] = []
    for kind in KINDS:
        of = {(row["layout"], row["rate"]): row for row in table if row["stream"] == kind}
        rate = rates[0]
        paper, exact, ours = of["paper", rate], of["exact", rate], of["ours", rate]
        told = ", ".join(
            f"{name} {row['bits_an_entry']:.1f}"
            for name, row in (("paper", paper), ("exact", exact), ("ours", ours))
        )
        text = f"{kind} keys, {rate:.0%}: bits for each key of a row; ours below the exact table's"
        claims.append(Claim(text, "", told, ours["bits"] < exact["bits"]))
        worst = max(
            row[column] / row["rate"]
            for row in table
            if row["stream"] == kind and row["layout"] == "ours"
            for column in ("wrong", "false")
        )
        text = f"{kind} keys: share of wrong answers over the rate that was asked for, at most"
        claims.append(Claim(text, "1", f"{worst:.2f}", worst <= 1.1))
    return claims
