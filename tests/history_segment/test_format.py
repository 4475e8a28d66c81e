"""The format is what its page says, and old files load for ever."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bloomery import digest
from bloomery._core import HistorySegment
from tests.history_segment.plain_reader import PlainSegment

GOLDEN = Path(__file__).parent.parent / "golden" / "history"


@pytest.mark.parametrize("rows", [1, 7, 64, 130])
def test_a_reader_made_from_the_specification_gives_the_same_answers(rows: int) -> None:
    rng = np.random.default_rng(rows)
    data = HistorySegment.build(
        rng.integers(0, 60, 800).astype(np.uint64),
        rng.integers(0, rows, 800).tolist(),
        (rng.zipf(1.5, 800) % 10**6 + 1).tolist(),
        row_count=rows,
        begin=-500,
        window=60,
        error_rate=0.1,
        seed=9,
    )
    ours, plain = HistorySegment.from_bytes(data), PlainSegment(data)
    for key in range(120):
        mark = digest(key, seed=9) % 2**64
        assert ours.rows_of(key).tolist() == plain.rows_of(mark)
    records = ours.row_records()
    numbers = iter(plain.row_numbers)
    for begin, end, events in zip(records["begin"], records["end"], records["events"], strict=True):
        # Each row begins where the one before it ends.
        assert [next(numbers) for _ in range(4)] == [0, end - begin, events, 1]
        if events:
            assert (next(numbers), next(numbers)) == (0, 59)


def test_a_segment_of_the_first_version_still_answers_as_it_did() -> None:
    segment = HistorySegment.open(GOLDEN / "v1.segment")
    segment.validate()
    answers = json.loads((GOLDEN / "v1.json").read_text())
    assert {key: segment.rows_of(key).tolist() for key in answers} == answers
    assert segment.info.events == 1000
