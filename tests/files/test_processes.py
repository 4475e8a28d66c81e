"""One shared file, several processes: nothing lost, seen at once, and kill -9 forgives."""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

import bloomtide
from bloomtide import BloomFilter, errors
from tests.files.another_process import Worker

WRITERS = 4
EACH = 60_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shared.bloom"


def _add_range(pipe: Connection, path: Path, writer: int) -> None:
    """Adds every WRITERS-th integer, so that the writers meet in every word."""
    keys = np.arange(writer, WRITERS * EACH, WRITERS)
    with BloomFilter.open(path, WRITERS * EACH, 0.01, mode="c") as shared:
        pipe.send("ready")
        pipe.recv()
        for part in np.array_split(keys, 30):
            for key in part[:200].tolist():
                shared.add(key)
            shared.add_many(part)
        pipe.send("done")


def test_four_writers_at_once_lose_nothing(path: Path) -> None:
    workers = [Worker(_add_range, path, writer) for writer in range(WRITERS)]
    for worker in workers:
        assert worker.hear() == "ready"
    for worker in workers:
        worker.tell("go")
    for worker in workers:
        with worker:
            assert worker.hear() == "done"
    loaded = BloomFilter.load(path)
    expected = BloomFilter(WRITERS * EACH, 0.01)
    expected.add_many(np.arange(WRITERS * EACH))
    assert loaded.contains_many(np.arange(WRITERS * EACH)).all()
    assert loaded == expected, "bit for bit the filter one writer would have made"


def _answer_queries(pipe: Connection, path: Path) -> None:
    with BloomFilter.open(path) as shared:
        pipe.send("ready")
        while (key := pipe.recv()) is not None:
            pipe.send(key in shared)


def test_a_reader_sees_an_add_at_once(path: Path) -> None:
    with (
        BloomFilter.open(path, 1000, 1e-4, mode="c") as shared,
        Worker(_answer_queries, path) as reader,
    ):
        assert reader.hear() == "ready"
        for key in range(200):
            assert reader.ask(key) is False
            shared.add(key)
            assert reader.ask(key) is True
        reader.tell(None)


def _flush_then_go_on(pipe: Connection, path: Path, flushed: int) -> None:
    shared = BloomFilter.open(path, 100_000, 0.01, mode="c")
    shared.add_many(range(flushed))
    shared.flush()
    pipe.send("flushed")
    key = flushed
    while True:
        shared.add(key)
        key += 1


def test_a_killed_writer_keeps_what_it_flushed(path: Path) -> None:
    flushed = range(20_000)
    worker = Worker(_flush_then_go_on, path, len(flushed))
    assert worker.hear() == "flushed"
    worker.process.kill()
    worker.process.join()
    with pytest.raises(errors.UnsealedError) as caught:
        bloomtide.load(path)
    assert "r+" in caught.value.hint
    with BloomFilter.open(path) as reader:
        assert reader.contains_many(flushed).all()
    with BloomFilter.open(path, mode="r+") as writer:
        assert writer.contains_many(flushed).all()
        writer.validate()
        writer.add("after the crash")
    loaded = BloomFilter.load(path)
    assert loaded.contains_many(flushed).all()
    assert "after the crash" in loaded


def test_a_killed_writer_beside_a_living_one(path: Path) -> None:
    """The survivor is the last writer, and seals what both added."""
    with BloomFilter.open(path, 100_000, 0.01, mode="c") as survivor:
        worker = Worker(_flush_then_go_on, path, 1000)
        assert worker.hear() == "flushed"
        worker.process.kill()
        worker.process.join()
        survivor.add("survivor")
    loaded = BloomFilter.load(path)
    assert loaded.contains_many(range(1000)).all()
    assert "survivor" in loaded


def _open_and_close(pipe: Connection, path: Path, writer: int) -> None:
    pipe.send("ready")
    pipe.recv()
    for visit in range(150):
        with BloomFilter.open(path, 10_000, 0.001, mode="c") as shared:
            shared.add(f"{writer} {visit}")
    pipe.send("done")


def test_coming_and_going_at_once_loses_nothing_and_ends_sealed(path: Path) -> None:
    """Each visit may be the last writer, so sealing and opening meet all the time."""
    workers = [Worker(_open_and_close, path, writer) for writer in range(3)]
    for worker in workers:
        assert worker.hear() == "ready"
    for worker in workers:
        worker.tell("go")
    for worker in workers:
        with worker:
            assert worker.hear() == "done"
    loaded = BloomFilter.load(path)
    assert loaded.contains_many([f"{w} {visit}" for w in range(3) for visit in range(150)]).all()


ROUNDS = 40


def _create_in_rounds(pipe: Connection, folder: Path, writer: int, sizes: Sequence[int]) -> None:
    """In each round create one file at the same moment as the others; say what happened."""
    for number in range(ROUNDS):
        pipe.send("ready")
        pipe.recv()
        try:
            path = folder / f"{number}.bloom"
            with BloomFilter.open(path, sizes[writer], 0.01, mode="c") as shared:
                shared.add(f"writer {writer}")
            pipe.send("made")
        except errors.IncompatibleError:
            pipe.send("refused")


def _race(folder: Path, sizes: Sequence[int]) -> list[list[str]]:
    workers = [Worker(_create_in_rounds, folder, i, sizes) for i in range(len(sizes))]
    outcomes = []
    for _ in range(ROUNDS):
        for worker in workers:
            assert worker.hear() == "ready"
        for worker in workers:
            worker.tell("go")
        outcomes.append([worker.hear() for worker in workers])
    for worker in workers:
        with worker:
            pass
    return outcomes


def test_creating_the_same_file_at_once_gives_one_file(tmp_path: Path) -> None:
    outcomes = _race(tmp_path, [500, 500, 500])
    assert outcomes == [["made"] * 3] * ROUNDS
    for number in range(ROUNDS):
        loaded = BloomFilter.load(tmp_path / f"{number}.bloom")
        assert loaded.contains_many([f"writer {i}" for i in range(3)]).all()
    assert len(list(tmp_path.iterdir())) == ROUNDS, "no temporary file is left"


def test_creating_with_other_sizes_at_once_has_one_winner(tmp_path: Path) -> None:
    for number, outcome in enumerate(_race(tmp_path, [500, 5000])):
        assert sorted(outcome) == ["made", "refused"]
        winner = outcome.index("made")
        loaded = BloomFilter.load(tmp_path / f"{number}.bloom")
        assert loaded.capacity == [500, 5000][winner]
        assert f"writer {winner}" in loaded
