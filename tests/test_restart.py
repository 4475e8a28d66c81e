"""The restart benchmark: what it builds is what a server finds again."""

from __future__ import annotations

import time
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


def test_a_start_is_timed_until_the_server_answers_on_what_was_built(tmp_path: Path) -> None:
    restart.build([restart.KINDS["count"]], 100_000, 3, tmp_path / "data")
    began = time.perf_counter()
    seconds, keys = restart.start(tmp_path / "data")
    took = time.perf_counter() - began
    assert keys == 3
    # What it does not count is the kill; what it counts includes a start of Python.
    assert 0.0 < seconds < took
    assert restart.start(tmp_path / "data")[1] == 3, "the kill lost nothing"


def test_a_directory_that_cannot_be_read_is_no_time(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    restart.build([restart.KINDS["count"]], 100_000, 1, tmp_path / "data")
    [file] = (tmp_path / "data").rglob(FILE)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(SystemExit, match="did not start"):
        restart.start(tmp_path / "data")
    assert str(file) in capfd.readouterr().err
