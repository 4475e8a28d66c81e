"""A reader names what it cannot read, as a writer does, and never answers less without a word."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bloomtide.errors import SnapshotError
from bloomtide.history import History
from tests.history_store.exact import HOUR, START


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A hundred events in the journal, each a record of its own, and one sealed segment."""
    path = tmp_path / "store"
    with History.open(path, "1m", sync="always", background=False) as made:
        made.add("sealed", at=START)
        made.seal()
        for number in range(100):
            made.add(f"key {number}", at=START + 2 * HOUR + number)
    return path


def journal_of(path: Path) -> Path:
    [found] = path.glob("journal-*")
    return found


def flip(path: Path, at: float) -> None:
    """Changes one bit at this share of the file."""
    data = bytearray(path.read_bytes())
    data[int(at * len(data))] ^= 0x10
    path.write_bytes(data)


def require_told(store: Path) -> None:
    """Every answer of a reader says that it lacks something, and so does `verify`."""
    with History.open(store, mode="r") as reader:
        answer = reader.count("key 50", START, START + 5 * HOUR)
        assert list(answer.missing) == [(START, START + 5 * HOUR)]
        assert list(reader.total().missing) == [(float("-inf"), float("inf"))]
        assert reader.top().missing
        assert reader.series("sealed").missing
        assert all(reader.contains(f"key {number}") for number in range(100))
        assert reader.contains("never seen", START + HOUR, START + 2 * HOUR)
        assert reader.count("sealed").upper == 1, "the rest is still answered"
        [damaged] = reader.stats().damaged
        assert "journal-" in damaged
        report = reader.verify()
        assert report.problems == (damaged,)
        assert report.missing
    with pytest.raises(SnapshotError) as caught:
        History.open(store)
    assert caught.value.message == damaged


@pytest.mark.parametrize("at", [0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_reader_tells_of_a_byte_that_was_changed_in_the_journal(store: Path, at: float) -> None:
    flip(journal_of(store), at)
    require_told(store)


def test_a_reader_tells_of_a_journal_that_is_missing(store: Path) -> None:
    journal_of(store).unlink()
    require_told(store)


def test_the_command_tells_of_damage_in_the_journal(store: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "bloomtide", "history", *words]
        return subprocess.run(
            command, input="key 50\n", capture_output=True, text=True, check=False
        )

    assert run("verify", str(store)).returncode == 0
    flip(journal_of(store), 0.5)
    verified = run("verify", str(store))
    assert verified.returncode == 2
    assert "is damaged at byte" in verified.stderr
    assert "missing: the beginning to the end" in verified.stderr
    assert "missing: 2026-01-01" in run("count", str(store), "-").stderr
