"""Numbered batches: each counts once, whatever is sent again and wherever the power is cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bloomtide import History
from bloomtide._core import HistoryBuffer
from bloomtide.errors import BloomtideError, IncompatibleError, ParameterError
from bloomtide.history.batches import BufferRecipe, dump, replay_all
from tests.durable.faults import FailingDisk, PowerCut

START = 1_700_000_000
BATCHES = [[(f"key-{(n * 7 + b) % 50}", START + 600 * b + n) for n in range(400)] for b in range(6)]


def fill(rows: list[tuple[str, int]]) -> Any:
    def work(buffer: HistoryBuffer) -> None:
        buffer.add_many([key for key, _ in rows], at=[at for _, at in rows])

    return work


def counts(store: History) -> dict[str, int]:
    return {f"key-{n}": int(store.count(f"key-{n}").upper) for n in range(50)}


def truth(batches: list[list[tuple[str, int]]]) -> dict[str, int]:
    found = {f"key-{n}": 0 for n in range(50)}
    for rows in batches:
        for key, _ in rows:
            found[key] += 1
    return found


def test_a_batch_that_is_sent_again_counts_once(tmp_path: Path) -> None:
    for sent in ([0], [0, 1], [1], [0, 1, 2, 3], [2, 3, 4, 5]):
        with History.open(tmp_path, "1m", background=False) as store:
            known = store.positions.get("stream")
            for number in sent:
                added = store.add_batch("stream", number, fill(BATCHES[number]))
                assert added == (known is None or number > known)
    with History.open(tmp_path, mode="r") as store:
        assert counts(store) == truth(BATCHES)
        assert store.total().upper == 2400


def test_sources_do_not_know_each_other(tmp_path: Path) -> None:
    with History.open(tmp_path, "1m", background=False) as store:
        assert store.add_batch("one", 5, fill(BATCHES[0]))
        assert store.add_batch("two", 5, fill(BATCHES[1]))
        assert not store.add_batch("two", 4, fill(BATCHES[1]))
        assert counts(store) == truth(BATCHES[:2])


def test_batches_live_beside_other_events_and_are_rolled_up(tmp_path: Path) -> None:
    with History.open(tmp_path, "1m", background=False) as store:
        for number, rows in enumerate(BATCHES):
            store.add_batch("stream", number, fill(rows))
            store.add_many([key for key, _ in rows], at=[at for _, at in rows])
        store.compact(now=START + 10**6)
        expected = {key: 2 * n for key, n in truth(BATCHES).items()}
        assert counts(store) == expected
        assert not store.verify().problems
    with History.open(tmp_path, mode="r") as store:
        assert counts(store) == expected


def test_an_empty_batch_only_moves_the_number(tmp_path: Path) -> None:
    with History.open(tmp_path, "1m", background=False) as store:
        assert store.add_batch("stream", 0, lambda _: None)
        assert not store.add_batch("stream", 0, fill(BATCHES[0]))
        assert store.total().upper == 0


def test_parts_of_a_batch_may_be_filled_elsewhere(tmp_path: Path) -> None:
    with History.open(tmp_path, "1m", background=False) as store:
        recipe = BufferRecipe.of(store)
        dumps = []
        for rows in BATCHES:
            part = recipe.make()
            fill(rows)(part)
            dumps.append(dump(part))
        store.add_batch("stream", 0, lambda buffer: replay_all(buffer, dumps))
        assert counts(store) == truth(BATCHES)


def test_a_fill_that_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    def broken(buffer: HistoryBuffer) -> None:
        fill(BATCHES[0])(buffer)
        raise ZeroDivisionError

    with History.open(tmp_path, "1m", background=False) as store:
        with pytest.raises(ZeroDivisionError):
            store.add_batch("stream", 0, broken)
        assert store.total().upper == 0
        assert store.add_batch("stream", 0, fill(BATCHES[0]))
        assert counts(store) == truth(BATCHES[:1])


def test_what_cannot_be_a_batch_is_refused(tmp_path: Path) -> None:
    with History.open(tmp_path / "a", "1m", background=False) as store:
        for source, number, name in (("", 0, "source"), ("s", -1, "number"), ("s", True, "number")):
            with pytest.raises(ParameterError) as caught:
                store.add_batch(source, number, fill(BATCHES[0]))
            assert caught.value.name == name
    with (
        History.open(tmp_path / "b", arrivals=10, background=False) as store,
        pytest.raises(IncompatibleError, match="arrivals"),
    ):
        store.add_batch("s", 0, fill(BATCHES[0]))
    with (
        History.open(tmp_path / "a", mode="r") as store,
        pytest.raises(BloomtideError, match="reading"),
    ):
        store.add_batch("s", 0, fill(BATCHES[0]))


def test_a_power_cut_at_any_write_counts_each_batch_once(tmp_path: Path) -> None:
    def send(path: Path, disk: FailingDisk) -> None:
        store = History.open(
            path, "1m", error_rate=1e-6, sync="always", background=False, disk=disk
        )
        with store:
            for number, rows in enumerate(BATCHES[:3]):
                store.add_batch("stream", number, fill(rows))

    whole = FailingDisk()
    send(tmp_path / "whole", whole)
    assert whole.steps > 15
    for step in range(whole.steps):
        path, disk = tmp_path / str(step), FailingDisk(step)
        with pytest.raises(PowerCut):
            send(path, disk)
        disk.lose_power()
        send(path, FailingDisk())
        with History.open(path, mode="r") as store:
            assert counts(store) == truth(BATCHES[:3])
