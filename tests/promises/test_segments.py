"""The files of a history's segments."""

from __future__ import annotations

import random
from pathlib import Path

from bloomtide import History

START = 1_700_000_000


def test_no_file_of_a_segment_changes_after_it_was_written(tmp_path: Path) -> None:
    rng = random.Random(8)
    now = [START]
    store = History.open(
        tmp_path / "store", window="1m", retention="1m for 1d, 1h for 10d, 1d for 10y",
        clock=lambda: now[0], background=False, sync="no",
    )  # fmt: skip
    written: dict[Path, bytes] = {}
    seen = 0
    for _ in range(60):
        for _ in range(50):
            store.add(rng.randrange(200), at=now[0] - rng.choice((0, 0, 60, 7200, 200_000)))
        rng.choice((store.seal, store.compact, store.flush))()
        now[0] += rng.choice((60, 3600, 86_400))
        files = {path: path.read_bytes() for path in tmp_path.rglob("*.segment")}
        seen += len(files.keys() & written.keys())
        for path, content in files.items():
            assert written.setdefault(path, content) == content
    store.close()
    assert seen > 100
    for path in tmp_path.rglob("*.segment"):
        assert written.setdefault(path, path.read_bytes()) == path.read_bytes()
