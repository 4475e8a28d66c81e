"""kill -9 under load, at random points: the store always opens, and no event that was acknowledged
is lost, whatever `sync` is: each was written when `add` returned.

A handful of kills here; `make kills` (BLOOMTIDE_KILLS=200) is the long proof. One store is killed
again and again, so what earlier kills left behind is there in all later ones.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from bloomtide.history import History
from tests.history_store.writer import START, STEP

ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("BLOOMTIDE_KILLS", "3"))


def write_until_killed(path: Path, sync: str, first: int, events: int) -> list[int]:
    """Kills the writer after so many acknowledged events, and answers those it told of."""
    command = [sys.executable, "-m", "tests.history_store.writer", str(path), sync]
    places = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places)}
    with subprocess.Popen(
        [*command, str(first)], stdout=subprocess.PIPE, cwd=ROOT, env=environment, text=True
    ) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(events)]
        process.kill()
        told += process.stdout.readlines()
    return [int(line) for line in told if line.endswith("\n")]


def require_events(store: History, numbers: range | list[int]) -> None:
    """Each of these events is there, in its own minute."""
    missing = [
        number
        for number in numbers
        if not store.contains(f"key {number % 7}", minute(number), minute(number) + 60)
    ]
    assert missing == []


def minute(number: int) -> int:
    at = START + number * STEP
    return at - at % 60


@pytest.mark.parametrize("sync", ["always", "everysec", "no"])
def test_a_kill_loses_no_event_that_was_acknowledged(tmp_path: Path, sync: str) -> None:
    draw = random.Random(7)
    path = tmp_path / "store"
    acknowledged: list[int] = []
    first = 0
    for _ in range(KILLS):
        acknowledged += write_until_killed(path, sync, first, draw.randint(1, 600))
        # One more event may be in that was not told of: its number is not used again.
        first = acknowledged[-1] + 2
        with History.open(path, background=False) as store:
            require_events(store, acknowledged[-1000:])
            total = store.total().upper
            assert len(acknowledged) <= total <= len(acknowledged) + KILLS
            assert store.verify().problems == ()
    with History.open(path, background=False) as store:
        require_events(store, acknowledged)


@pytest.mark.skipif(KILLS < 100, reason="a part of `make kills`")
def test_what_a_kill_left_behind_is_collected(tmp_path: Path) -> None:
    path = tmp_path / "store"
    draw = random.Random(9)
    first = 0
    for _ in range(KILLS):
        first = write_until_killed(path, "no", first, draw.randint(1, 3000))[-1] + 2
    with History.open(path, background=False) as store:
        named = {report.file for report in store.segments()} - {None}
        assert {file.name for file in (path / "segments").glob("*.segment")} == named
