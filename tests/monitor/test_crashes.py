"""Killed, or on a disk that is full: every acknowledged event counts exactly once.

A few kills here; `make kills` (BLOOMTIDE_KILLS=200) is the long proof. tests/durable ends a monitor
at each of its writes.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bloomtide import Monitor
from bloomtide.errors import (
    BloomtideError,
    IncompatibleError,
    JournalError,
    LockedError,
    StorageError,
)
from bloomtide.history import History
from bloomtide.store import repair
from tests.durable.faults import FailingDisk
from tests.history_store.conftest import quick_disk  # noqa: F401 - a fixture for all tests here
from tests.monitor.streams import START, columns, events
from tests.monitor.writer import SIZE

ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("BLOOMTIDE_KILLS", "2"))
SETTINGS: dict[str, Any] = {"capacity": 2000, "error_rate": 1e-7, "hot": 20}
BATCHES = [
    [
        (f"{key} of {number}", count, at + number * 2400)
        for key, count, at in events(20, seed=number)
    ]
    for number in range(6)
]
"""Forty minutes apart, so that hours are sealed in between; no two share a key."""


def clock() -> float:
    return START + 100_000


def open_monitor(path: Path, disk: FailingDisk | None = None, **settings: Any) -> Monitor:
    words = SETTINGS | {"sync": "always", "background": False} | settings
    return Monitor.open(path, disk=disk, clock=clock, **words)


def require_once(monitor: Monitor, acknowledged: list[int]) -> None:
    """These batches count once everywhere; the one behind them at most once, and everywhere."""
    counted = []
    for number, batch in enumerate(BATCHES):
        truth: dict[str, int] = {}
        for key, count, _ in batch:
            truth[key] = truth.get(key, 0) + count
        times = 1 if all(monitor.seen(key) for key in truth) else 0
        counted += [number] * times
        assert monitor.history is not None
        for key, count in truth.items():
            assert monitor.count(key).value == times * count, (number, key)
            assert monitor.history.count(key).upper == times * count, (number, key)
    assert counted in (acknowledged, [*acknowledged, len(acknowledged)])
    total = sum(count for number in counted for _, count, _ in BATCHES[number])
    assert monitor.stats().events == total
    assert monitor.history is not None
    assert monitor.history.total().upper == total


def test_a_full_disk_stops_the_monitor_and_not_its_answers(tmp_path: Path) -> None:
    disk = FailingDisk(full=True)
    monitor = open_monitor(tmp_path / "m", disk)
    monitor.add_many(*columns(BATCHES[0]))
    before = monitor.digest()
    disk.fail_in(0)
    for _ in range(2):
        with pytest.raises(JournalError, match="No space left"):
            monitor.add("more", at=START)
    assert monitor.failure is not None
    assert monitor.stats().failure == monitor.failure
    assert not monitor.seen("more")
    assert monitor.digest() == before
    disk.make_room()
    monitor.close()
    with open_monitor(tmp_path / "m") as again:
        require_once(again, [0])
        assert again.failure is None
        again.add("more", at=START)


def test_a_journal_that_has_grown_becomes_a_snapshot_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bloomtide.monitor.monitor._REWRITE", 600)
    disk = FailingDisk(full=True)
    monitor = open_monitor(tmp_path / "m", disk)
    for number, batch in enumerate(BATCHES[:4]):
        monitor.add_many(*columns(batch))
        assert monitor.stats().journal_bytes <= 600, number
    ledger = monitor._ledger
    assert ledger is not None
    assert ledger.snapshot_sequence > 0
    # One that fails stops nothing: the journal has everything.
    monkeypatch.setattr(ledger, "begin_rewrite", _refuse)
    for batch in BATCHES[4:]:
        monitor.add_many(*columns(batch))
    assert monitor.stats().journal_bytes > 600
    assert monitor.failure is None
    crash(monitor)
    with open_monitor(tmp_path / "m") as again:
        require_once(again, list(range(len(BATCHES))))


def _refuse() -> None:
    raise StorageError("no room", hint="make some", path="x", operation="write")


def write_until_killed(path: Path, first: int, batches: int) -> list[int]:
    """Kills the writer after so many acknowledged batches; those it told of."""
    places = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places)}
    command = [sys.executable, "-m", "tests.monitor.writer", str(path), str(first)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, cwd=ROOT, env=environment, text=True
    ) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(batches)]
        process.kill()
        told += process.stdout.readlines()
    return [int(line) for line in told if line.endswith("\n")]


def test_kill_9_and_restart_gives_every_acknowledged_event_exactly_once(tmp_path: Path) -> None:
    draw = random.Random(11)
    acknowledged: list[int] = []
    unsure: list[int] = []
    first = 0
    for _ in range(KILLS):
        acknowledged += write_until_killed(tmp_path / "m", first, draw.randint(1, 120))
        unsure.append(acknowledged[-1] + 1)
        first = acknowledged[-1] + 2
        with Monitor.open(tmp_path / "m", clock=lambda: START * 1.5) as monitor:
            assert monitor.history is not None
            for number in acknowledged[-100:]:
                key = f"batch {number}"
                assert monitor.count(key).value == SIZE
                assert monitor.history.count(key).upper == SIZE
            taken = [number for number in unsure if monitor.seen(f"batch {number}")]
            total = SIZE * (len(acknowledged) + len(taken))
            assert monitor.stats().events == monitor.history.total().upper == total
            digest = monitor.digest()
        with Monitor.open(tmp_path / "m", clock=lambda: START * 1.5) as monitor:
            assert monitor.digest() == digest


def test_what_a_source_has_told_is_tied_to_its_events(tmp_path: Path) -> None:
    monitor = open_monitor(tmp_path / "m")
    monitor.add_many(["a"], at=START, source="stream", position="1-0")
    monitor.add_many(["b"], at=START, source="other", position={"offset": 7})
    monitor.add_many(["c"], at=START, source="stream", position="2-0")
    crash(monitor)
    with open_monitor(tmp_path / "m") as again:
        assert again.positions == {"stream": "2-0", "other": {"offset": 7}}


def test_a_monitors_history_can_be_written_alone_and_loses_nothing(tmp_path: Path) -> None:
    with open_monitor(tmp_path / "m") as monitor:
        monitor.add("a", at=START)
    with History.open(tmp_path / "m" / "history", background=False) as alone:
        alone.add("b", at=START)
    monitor = open_monitor(tmp_path / "m")
    assert monitor.history is not None
    assert [monitor.history.count(key).upper for key in "ab"] == [1, 1]
    monitor.add("a", at=START)
    crash(monitor)
    with open_monitor(tmp_path / "m") as monitor:
        assert monitor.history is not None
        assert [monitor.history.count(key).upper for key in "ab"] == [2, 1]


def test_a_damaged_ledger_is_named_with_its_place_and_can_be_repaired(tmp_path: Path) -> None:
    path = tmp_path / "m"
    disk = FailingDisk()
    monitor = open_monitor(path, disk)
    for batch in BATCHES[:3]:
        monitor.add_many(*columns(batch))
    crash(monitor)
    journal = next(path.glob("journal-*"))
    data = bytearray(journal.read_bytes())
    data[len(data) // 2] ^= 1
    journal.write_bytes(bytes(data))
    with pytest.raises(JournalError) as caught:
        open_monitor(path)
    assert caught.value.path == str(journal)
    assert caught.value.offset is not None
    assert 0 < caught.value.offset <= len(data) // 2
    repair(path)
    with open_monitor(path) as again:
        assert again.stats().events < sum(count for b in BATCHES[:3] for _, count, _ in b)
        # The history had sealed hours of blocks that are gone; those that come now still count.
        again.add_many(["later"] * 7, at=START + 20_000)
        again.add_many(["last"] * 5, at=START + 20_000)
        assert again.history is not None
        assert again.history.count("later").upper == again.count("later").value == 7
    with open_monitor(path) as again:
        assert again.history is not None
        assert again.history.count("last").upper == again.count("last").value == 5


def crash(monitor: Monitor) -> None:
    """Gives locks and threads back without saving anything."""
    if monitor._measurer is not None:
        monitor._measurer.stop()
    assert monitor.history is not None
    assert monitor._ledger is not None
    monitor.history.close()
    monitor._ledger.close()


def test_one_process_has_a_monitor_and_its_settings_are_its_own(tmp_path: Path) -> None:
    with open_monitor(tmp_path / "m"), pytest.raises(LockedError, match=str(os.getpid())):
        open_monitor(tmp_path / "m")
    with pytest.raises(IncompatibleError, match="capacity=2000"):
        Monitor.open(tmp_path / "m", capacity=3000)
    with Monitor.open(tmp_path / "m") as again:
        assert again.settings.capacity == 2000
    with pytest.raises(BloomtideError, match="no setting `size`"):
        Monitor.open(tmp_path / "m", size=3)  # type: ignore[call-arg]
