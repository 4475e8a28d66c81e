"""A power cut, or a full disk, at every single write: nothing acknowledged is lost, nothing counts
twice, the store opens, and no file is left over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bloomtide.errors import BloomtideError
from bloomtide.history import History
from tests.history_store.exact import DAY, HOUR, START, SURE, ExactHistory
from tests.history_store.faults import FailingDisk, PowerCut

Step = Callable[[History], object]


class Work:
    """Some hours of a store's life, and what of it was acknowledged."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.exact = ExactHistory()
        self.unsure: tuple[str, float] | None = None
        """An event that was begun and neither acknowledged nor refused."""

    def steps(self) -> Iterator[Step]:
        """What is done to the store, one call each."""
        # Two hours, an event of the first one that comes late, and the day behind them.
        times = [0, 100, HOUR, HOUR + 50, 2 * HOUR, 70, 2 * HOUR + 1, DAY, DAY + HOUR, 30]
        for number, at in enumerate(times):
            yield self._adding(f"key {number % 3}", START + at)
        yield lambda store: store.compact(now=START + DAY + HOUR)
        yield self._adding("key 1", START + 10)
        yield lambda store: store.seal()
        yield lambda store: store.compact(now=START + 3 * DAY)
        yield self._adding("key 2", START + 2 * DAY)

    def _adding(self, key: str, at: float) -> Step:
        def step(store: History) -> None:
            self.unsure = (key, at)
            store.add(key, at=at)
            self.exact.add(key, at)
            self.unsure = None

        return step


def open_store(path: Path, disk: FailingDisk | None = None) -> History:
    return History.open(
        path,
        "1m",
        error_rate=SURE,
        sync="always",
        background=False,
        clock=lambda: START + 400 * DAY,
        disk=disk or FailingDisk(),
    )


def live(path: Path, disk: FailingDisk, work: Work) -> None:
    """All of the work, until the disk fails."""
    with open_store(path, disk) as store:
        for step in work.steps():
            step(store)


def require_sound(store: History, work: Work) -> None:
    """Every acknowledged event counts once, in its own hour; the unsure one at most once."""
    for hour in (0, 1, 2, 24, 25, 48):
        start, end = START + hour * HOUR, START + (hour + 1) * HOUR
        for key in ("key 0", "key 1", "key 2"):
            truth = work.exact.count(key, start, end)
            found = store.count(key, start, end)
            allowed = {truth}
            if work.unsure and work.unsure[0] == key and start <= work.unsure[1] < end:
                allowed.add(truth + 1)
            assert found.upper in allowed, (hour, key)
            assert store.count(key, start, end, rollups=False).upper == found.upper
    assert store.verify().problems == ()


def count_steps(path: Path) -> int:
    disk = FailingDisk()
    work = Work()
    live(path, disk, work)
    assert work.unsure is None
    return disk.steps


def count_steps_before_close(path: Path) -> int:
    """Of a disk that may become full: it always has room to remove a file."""
    disk = FailingDisk(full=True)
    with open_store(path, disk) as store:
        for step in Work().steps():
            step(store)
        return disk.steps


def test_a_power_cut_at_any_write_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    total = count_steps(tmp_path / "whole")
    assert total > 100
    for number in range(total):
        path = tmp_path / str(number)
        disk, work = FailingDisk(number), Work()
        with pytest.raises(PowerCut):
            live(path, disk, work)
        disk.lose_power()
        with open_store(path) as store:
            require_sound(store, work)
            named = {report.file for report in store.segments()}
            lying = {file.name for file in (path / "segments").glob("*.segment")}
            assert lying == named - {None}
            assert len(list(path.glob("journal-*"))) == 1
            assert not list(path.rglob("*.tmp"))
            if number % 4 == 0:  # it goes on as if nothing had been
                before = store.count("key 0").upper
                store.add("key 0", at=START + 5 * DAY)
                store.compact(now=START + 9 * DAY)
                assert store.count("key 0").upper == before + 1


def test_a_full_disk_at_any_write_leaves_the_store_readable_and_loses_nothing(
    tmp_path: Path,
) -> None:
    before_close = count_steps_before_close(tmp_path / "whole")
    assert before_close > 100
    for number in range(0, before_close, 3):
        path = tmp_path / str(number)
        disk, work = FailingDisk(number, full=True), Work()
        refused = None
        try:
            store = open_store(path, disk)
        except BloomtideError as error:
            refused = error
        else:
            for step in work.steps():
                try:
                    step(store)
                except BloomtideError as error:
                    refused = error
                    break
            require_readable(store, work)
            disk.make_room()
            store.close()
        assert refused is not None, f"write {number} failed and nobody was told"
        assert "No space left" in refused.message
        with open_store(path) as store:
            require_sound(store, work)


def require_readable(store: History, work: Work) -> None:
    for key in ("key 0", "key 1", "key 2"):
        assert store.count(key).upper >= work.exact.count(key)


def test_the_failing_disk_does_fail(tmp_path: Path) -> None:
    """Else the tests above would prove nothing."""
    disk = FailingDisk(3)
    with pytest.raises(PowerCut):
        live(tmp_path, disk, Work())
    with pytest.raises(PowerCut):
        disk.write_file(tmp_path / "more", b"after the end")
