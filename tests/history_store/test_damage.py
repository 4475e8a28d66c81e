"""A reader names what it cannot read, as a writer does, and never answers less without a word."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from bloomtide.errors import BloomtideError, SnapshotError
from bloomtide.history import History
from tests.durable.faults import abandon
from tests.history_store.exact import HOUR, START


@pytest.fixture(params=["killed", "closed"])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """One sealed segment, and a hundred events in the journal: each a record of its own after a
    kill, all of a row together after a close."""
    path = tmp_path / "store"
    made = History.open(path, "1m", sync="always", background=False)
    made.add("sealed", at=START)
    made.seal()
    for number in range(100):
        made.add(f"key {number}", at=START + 2 * HOUR + number)
    if request.param == "killed":
        abandon(made)
    made.close()
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
    assert "journal-" in verified.stderr
    assert "missing: the beginning to the end" in verified.stderr
    assert "missing: 2026-01-01" in run("count", str(store), "-").stderr


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """Three segments of as many hours that differ in nothing but their keys and times."""
    path = tmp_path / "sealed"
    with History.open(path, "1m", background=False) as made:
        for hour in range(3):
            for number in range(50):
                made.add(f"key {hour} {number}", at=START + hour * HOUR + number)
            made.seal()
    return path


def files_of(path: Path, kind: str) -> list[Path]:
    """By time."""
    with History.open(path, mode="r") as reader:
        entries = list(reader._state.forest.entries.values())
    return [path / "segments" / str(getattr(entry, kind)) for entry in entries]


@pytest.mark.parametrize("mode", ["r", "w"])
def test_a_segment_in_the_place_of_another_one_is_named(sealed: Path, mode: str) -> None:
    first, second, _ = files_of(sealed, "file")
    first.write_bytes(second.read_bytes())
    with History.open(sealed, mode=mode, background=False) as store:
        assert list(store.count("key 0 7").missing) == [(START, START + HOUR)]
        assert store.contains("key 0 7")
        assert store.count("key 1 7").upper == 1
        [problem] = store.verify().problems
        assert first.name in problem
        assert "not the file that was registered" in problem


def test_verify_reads_the_exact_contents_too(sealed: Path) -> None:
    first, second, third = files_of(sealed, "items")
    first.write_bytes(second.read_bytes())
    flip(second, 0.5)
    third.unlink()
    with History.open(sealed, mode="r") as store:
        problems = store.verify().problems
    assert [any(file.name in told for told in problems) for file in (first, second, third)] == [
        True
    ] * 3
    with History.open(sealed, background=False) as writer:
        assert writer.compact(now=START + 100 * HOUR).rolled_up == 0
        assert writer.count("key 0 7").upper == 1


@pytest.mark.parametrize("mode", ["r", "w"])
@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM bloomtide_catalogue WHERE name = 'segment 2'",
        "DELETE FROM bloomtide_catalogue WHERE name = 'settings'",
        "DELETE FROM bloomtide_catalogue WHERE name = 'sum'",
        "UPDATE bloomtide_catalogue SET value = replace(value, '50', '49')",
        "UPDATE bloomtide_catalogue SET value = X'ff00' WHERE name = 'segment 1'",
        "INSERT INTO bloomtide_catalogue SELECT store, name || '2', value FROM bloomtide_catalogue",
    ],
)
def test_rows_of_the_catalogue_that_were_changed_are_noticed(
    sealed: Path, change: str, mode: str
) -> None:
    with closing(sqlite3.connect(sealed / "catalogue.sqlite")) as database, database:
        database.execute(change)
    with pytest.raises(SnapshotError, match="rows are not those that were written"):
        History.open(sealed, mode=mode)


@pytest.mark.parametrize("mode", ["r", "w"])
def test_an_older_copy_of_the_catalogue_is_refused(sealed: Path, mode: str) -> None:
    older = (sealed / "catalogue.sqlite").read_bytes()
    with History.open(sealed, background=False) as store:
        store.add_batch("stream", 1, lambda buffer: buffer.add("late", 1, START * 1_000_000))
    (sealed / "catalogue.sqlite").write_bytes(older)
    with pytest.raises(SnapshotError, match="older than the store"):
        History.open(sealed, mode=mode)
    with History.open(sealed, repair=True, background=False) as store:
        assert store.count("key 0 7").upper == 1


@pytest.mark.parametrize(
    ("lost", "read"),
    [("catalogue.sqlite", "has events but no catalogue"), ("store.json", "there is no store")],
)
def test_a_young_store_that_lost_a_file_is_not_made_anew(
    tmp_path: Path, lost: str, read: str
) -> None:
    path = tmp_path / "young"
    with History.open(path, "1m", background=False) as store:
        store.add("a", at=START)
    (path / lost).unlink()
    journal = journal_of(path).read_bytes()
    with pytest.raises(SnapshotError, match="has events but no"):
        History.open(path)
    with pytest.raises(BloomtideError, match=read):
        History.open(path, mode="r")
    assert journal_of(path).read_bytes() == journal


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """All events are in the journal of a store that was closed, in one record."""
    path = tmp_path / "closed"
    with History.open(path, "1m", background=False) as made:
        made.add_many([f"key {number}" for number in range(40)], at=START)
    return path


def test_a_reader_tells_of_every_byte_of_a_closed_journal(closed: Path) -> None:
    journal = journal_of(closed)
    sound = journal.read_bytes()
    for at in range(len(sound)):
        for data in (sound[:at] + bytes([sound[at] ^ 0x10]) + sound[at + 1 :], sound[:at]):
            journal.write_bytes(data)
            try:
                with History.open(closed, mode="r") as reader:
                    assert reader.count("key 7").missing
                    assert reader.verify().problems
            except BloomtideError:
                pass  # its kind or version, by name


def test_the_journal_of_another_store_is_not_read(closed: Path, tmp_path: Path) -> None:
    with History.open(tmp_path / "other", "1m", background=False) as made:
        made.add_many(["another"] * 40, at=START + HOUR)
    journal_of(closed).write_bytes(journal_of(tmp_path / "other").read_bytes())
    with History.open(closed, mode="r") as reader:
        assert reader.count("another").upper == 0
        assert reader.count("key 7").missing
    with pytest.raises(SnapshotError, match="another journal"):
        History.open(closed)


def test_a_journal_that_is_damaged_under_its_writer_is_made_anew_by_close(
    closed: Path,
) -> None:
    with History.open(closed, background=False) as store:
        store.add("more", at=START)
        journal_of(closed).write_bytes(b"")
        assert store.verify().problems
    with History.open(closed, mode="r") as reader:
        assert (reader.count("key 7").upper, reader.count("more").upper) == (1, 1)
        assert reader.verify().problems == ()
