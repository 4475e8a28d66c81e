"""The restart benchmark: what it builds is what a server finds again."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("bloomtide._core", reason="bloomtide is not built")

from benchmarks import restart
from bloomtide._core import Keyspace
from bloomtide.server.durability import FILE


@pytest.mark.parametrize("name", restart.KINDS)
def test_every_kind_is_filled_and_found_in_the_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restart, "_PROBE", 1000)
    used, length = restart.build([restart.KINDS[name]], 200_000, 2, tmp_path / "data")
    # A hot list grows by doubling, so its size is met only roughly.
    assert 100_000 < used < 1_000_000
    files = list((tmp_path / "data").rglob(FILE))
    assert [file.stat().st_size for file in files] == [length]
    found = Keyspace()
    found.load(files[0])
    assert found.stats()["keys"] == 2
    assert all(each["items"] > 0 for each in found.structures() if each["kind"] != "top_k")


def test_a_server_answers_on_what_was_built(tmp_path: Path) -> None:
    restart.build([restart.KINDS["count"]], 100_000, 1, tmp_path / "data")
    assert 0.0 < restart.start(tmp_path / "data") < 60.0
