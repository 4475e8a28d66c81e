"""How far a source was read is in the store from the same moment as its events."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from bloomtide import History
from bloomtide.errors import ParameterError, StorageError
from tests.durable.faults import FailingDisk, PowerCut
from tests.history_store.test_batches import BATCHES as ALL
from tests.history_store.test_batches import START, counts, fill, truth

BATCHES = ALL[:3]


def read_on(path: Path, disk: FailingDisk) -> None:
    """Goes on behind the position, as `history ingest` does; commits now and then."""
    with History.open(
        path, "1m", error_rate=1e-6, keep=lambda: None, background=False, disk=disk
    ) as store:
        for number in range(store.positions.get("log", 0), len(BATCHES)):
            # Ten hours apart, so that segments are sealed in between.
            rows = [(key, at + 36_000 * number) for key, at in BATCHES[number]]
            store.feed(fill(rows), source="log", position=number + 1)
            if number % 2:
                store.checkpoint()
        store.checkpoint()
        store.compact()


def require_all(path: Path) -> None:
    with History.open(path, mode="r") as store:
        assert counts(store) == truth(BATCHES)
        assert store.positions == {"log": len(BATCHES)}


def test_a_power_cut_at_any_write_leaves_events_and_position_in_step(tmp_path: Path) -> None:
    whole = FailingDisk()
    read_on(tmp_path / "whole", whole)
    require_all(tmp_path / "whole")
    for step in range(whole.steps):
        path, disk = tmp_path / str(step), FailingDisk(step)
        with pytest.raises(PowerCut):
            read_on(path, disk)
        disk.lose_power(keep_names=step % 2 == 0)
        read_on(path, FailingDisk())
        require_all(path)


def test_a_checkpoint_that_seals_commits_all_that_is_complete_as_segments(tmp_path: Path) -> None:
    with History.open(tmp_path / "store", "1m", keep=lambda: None, background=False) as store:
        store.feed(fill([("a", START), ("b", START + 3600)]), source="log", position=7)
        store.checkpoint(seal=True)
        assert [(each.events, each.state) for each in store.segments()] == [
            (1, "sealed"), (1, "open"),
        ]  # fmt: skip
        store.feed(lambda _: None, source="log", position=8)
        store.checkpoint(seal=True)  # nothing more is complete
    with History.open(tmp_path / "store", mode="r") as store:
        assert store.positions == {"log": 8}
        assert [store.count(key).upper for key in ("a", "b")] == [1, 1]


def test_a_full_disk_leaves_events_and_position_in_step(tmp_path: Path) -> None:
    whole = FailingDisk()
    read_on(tmp_path / "whole", whole)
    for step in range(3, whole.steps, 7):
        path, disk = tmp_path / str(step), FailingDisk(step, full=True)
        with suppress(StorageError):  # sealing that nobody waited for is noted only
            read_on(path, disk)
        read_on(path, FailingDisk())
        require_all(path)


def test_a_store_that_keeps_its_own_journal_takes_no_positions(tmp_path: Path) -> None:
    with History.open(tmp_path, "1m", background=False) as store:
        with pytest.raises(ParameterError, match="keep"):
            store.feed(fill(BATCHES[0]), source="log", position=1)
        assert store.total().upper == 0


def test_many_sources_have_their_own_positions_of_any_form(tmp_path: Path) -> None:
    told = {"a": {"offset": 5, "marks": [1, 2]}, "b": [3, "x"], "c": 7}
    with History.open(tmp_path, "1m", keep=lambda: None, background=False) as store:
        for source, position in told.items():
            store.feed(lambda _: None, source=source, position=position)
        store.checkpoint()
        store.feed(lambda buffer: buffer.add("k", 1, START * 10**6), source="a", position=0)
        assert store.positions == told | {"a": 0}
    with History.open(tmp_path, "1m", background=False) as store:
        assert store.positions == told
        assert store.add_batch("stream", 3, fill(BATCHES[0]))
    with History.open(tmp_path, mode="r") as store:
        assert store.positions == told | {"stream": 3}
