"""The format is what its page says, and the golden file loads for ever."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bloomtide import digest
from bloomtide._core import HistoryBuffer, HistorySegment
from tests.golden.make_golden import HISTORY, make_segment
from tests.history_segment.plain_reader import PlainSegment


@pytest.mark.parametrize("rows", [1, 7, 64, 130])
@pytest.mark.parametrize("every", [1, 5])
def test_a_reader_made_from_the_specification_gives_the_same_answers(rows: int, every: int) -> None:
    """With `every`, only each fifth row has events."""
    rng = np.random.default_rng(rows)
    buffer = HistoryBuffer(window=60, rows=rows, names=0, seed=9)
    keys, counts = rng.integers(0, 60, 800), rng.zipf(1.5, 800) % 10**6 + 1
    times = (rng.integers(0, rows, 800) // every * every - rows) * 60
    for key, count, at in zip(keys.tolist(), counts.tolist(), times.tolist(), strict=True):
        buffer.add(key, count, at + 7)  # before 1970
        buffer.add(key, count, at + 59)
    data = buffer.seal(-1, error_rate=0.1).segment
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
            assert (next(numbers), next(numbers)) == (7, 52)


def test_the_golden_segment_still_answers_as_it_did() -> None:
    path = HISTORY / "v1.segment"
    assert make_segment()[0] == path.read_bytes()
    segment = HistorySegment.open(path)
    segment.validate()
    plain = PlainSegment(path.read_bytes())
    answers = json.loads((HISTORY / "v1.json").read_text())
    seed = segment.info.seed
    for key, rows in answers.items():
        assert segment.rows_of(key).tolist() == rows
        assert plain.rows_of(digest(key, seed=seed) % 2**64) == rows
    assert segment.info.events == 1000
