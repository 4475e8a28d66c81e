"""kill -9 in `bloomtide watch`, following or not, while its logs are rotated, compressed, copied
and cut off: every line counts exactly once in the end.

A few kills here; `make kills` (BLOOMTIDE_KILLS=100) is the long proof. One monitor and one set of
logs live through all of them, always read by the pattern.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from bloomtide import Monitor
from tests.killing import Killable
from tests.monitor.streams import START, log_line
from tests.rotation import Rotation
from tests.waiting import until

KILLS = int(os.environ.get("BLOOMTIDE_KILLS", "8"))
KEYS = 300


def hit(number: int, draw: random.Random) -> bytes:
    late = draw.randrange(10_800) if draw.random() < 0.1 else 0
    return log_line(f"/{number % KEYS}", START + 20 * number - late)


def require_exact(directory: Path, lines: list[bytes]) -> None:
    """The oracle: the lines themselves."""
    truth = Counter(line.split(b'"')[1].split()[1].decode() for line in lines)
    with Monitor.open(directory) as monitor:
        assert monitor.stats().events == len(lines)
        assert {key: monitor.count(key).value for key in truth} == truth
        assert monitor.history is not None
        assert {key: monitor.history.count(key).upper for key in truth} == truth


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.timeout(3600 if KILLS > 20 else 120)
def test_killed_again_and_again_every_line_counts_once(tmp_path: Path, follow: bool) -> None:
    (tmp_path / "logs").mkdir()
    rotation = Rotation(tmp_path / "logs", 7, hit)
    draw = random.Random(7)
    once = ("watch", "--no-server", "--data", tmp_path / "data", rotation.pattern)
    new = ("--items", "100k", "--error", "0.0001%")
    watch = (*once, "--follow") if follow else once
    kills = 0
    with Killable() as killable:
        assert killable.run(*once, *new) == 0
        while kills < KILLS:
            for _ in range(draw.randrange(4)):
                rotation.step()
            process = killable.start(*watch, kill_at=draw.randrange(draw.choice((5, 20, 60))))
            if follow:
                # It reads while this goes on, and is killed at last because there is always more.
                for _ in range(draw.randrange(6)):
                    rotation.step()
                until(partial(ended, process, rotation))
            code = killable.wait()
            assert code in ((-9,) if follow else (-9, 0, 1, 2)), code
            kills += code == -9
            if kills % 20 == 0 and code == -9:
                rotation.finish()
                assert killable.run(*once) in (0, 1)
                require_exact(tmp_path / "data" / "monitor", rotation.lines)
        rotation.finish()
        for _ in range(2):
            assert killable.run(*once) in (0, 1)
    require_exact(tmp_path / "data" / "monitor", rotation.lines)


def test_broken_positions_that_are_stored_after_the_events_are_found(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    rotation = Rotation(tmp_path / "logs", 7, hit)
    watch = ("watch", "--no-server", "--data", tmp_path / "data", rotation.pattern)
    with Killable() as killable:
        for step in range(100):
            rotation.append()
            killable.run(*watch, kill_at=step % 25, broken=True)
            killable.run(*watch)
            with Monitor.open(tmp_path / "data" / "monitor") as monitor:
                if monitor.stats().events != len(rotation.lines):
                    return
    pytest.fail("a hundred kills found nothing")


def ended(process: int, rotation: Rotation) -> bool:
    """Whether it was killed; if not, there is more to read."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    rotation.append()
    return False
