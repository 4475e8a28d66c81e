"""kill -9 in `bloomtide history ingest`, at any step of sealing, committing and compacting, while
logs are rotated, compressed, copied and cut off: every line counts exactly once in the end.

A handful of kills here; `make kills` (BLOOMTIDE_KILLS=200) is the long proof. One store and one set
of logs live through all of them.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bloomtide.history import History
from bloomtide.stream import MONTHS
from tests.killing import Killable
from tests.rotation import START, Rotation

KILLS = int(os.environ.get("BLOOMTIDE_KILLS", "12"))
KEYS = 300


def hit(number: int, draw: random.Random) -> bytes:
    """A minute and a half behind the one before; one in ten is late, by up to three hours."""
    late = draw.randrange(10_800) if draw.random() < 0.1 else 0
    at = datetime.fromtimestamp(START + 90 * number - late, UTC)
    stamp = f"{at:%d}/{MONTHS[at.month - 1]}/{at:%Y:%H:%M:%S} +0000"
    return f'::1 - - [{stamp}] "GET /{number % KEYS} HTTP/1.1" 200 5 "-" "test"\n'.encode()


def require_exact(store: Path, lines: list[bytes]) -> None:
    """The oracle: the lines themselves."""
    truth = Counter(line.split(b'"')[1].split()[1] for line in lines)
    with History.open(store, background=False) as history:
        counted = dict(zip(truth, history.count_many(list(truth)).tolist(), strict=True))
        assert counted == truth
        assert history.total().upper == history.stats().events == len(lines)
        assert history.verify().problems == ()


def test_broken_positions_that_are_committed_after_the_events_are_found(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    rotation = Rotation(tmp_path / "logs", 5, hit)
    ingest = ("history", "ingest", tmp_path / "store", rotation.pattern)
    with Killable() as killable:
        for step in range(100):
            rotation.append()
            killable.run(*ingest, kill_at=step % 25, broken=True)
            killable.run(*ingest)
            with History.open(tmp_path / "store", background=False) as history:
                if history.total().upper != len(rotation.lines):
                    return
    pytest.fail("a hundred kills found nothing")


@pytest.mark.timeout(3600 if KILLS > 100 else 120)
def test_killed_again_and_again_every_line_counts_once(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    rotation = Rotation(tmp_path / "logs", 5, hit)
    draw = random.Random(5)
    ingest = ("history", "ingest", tmp_path / "store", "--error", "0.0001%", rotation.pattern)
    kills = runs = 0
    with Killable() as killable:
        while kills < KILLS:
            for _ in range(draw.randrange(5)):
                rotation.step()
            code = killable.run(*ingest, kill_at=draw.randrange(draw.choice((10, 40, 160))))
            assert code in (-9, 0, 1, 2), code  # a packed file that is not whole is an error
            kills += code == -9
            runs += 1
            if kills % 20 == 0 and code == -9:
                rotation.finish()
                assert killable.run(*ingest) in (0, 1)
                require_exact(tmp_path / "store", rotation.lines)
        rotation.finish()
        assert killable.run(*ingest) in (0, 1)
        assert killable.run(*ingest) == 0
    require_exact(tmp_path / "store", rotation.lines)
    assert kills >= runs // 4, "most runs ended before they could be killed"
