"""A mapped file that another program cuts short: a named error, and the process goes on."""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bloomtide import BloomFilter, Dedup
from bloomtide._core import HistoryBuffer, HistorySegment
from bloomtide.errors import BloomtideError, TruncatedError
from tests.files.another_process import Worker, run

KEYS = np.arange(300_000)
SIZE = 370_000
"""The file has some more bytes, which are many pages."""

VERBS: dict[str, Callable[[BloomFilter, Path], object]] = {
    "in": lambda shared, _: [key in shared for key in range(2000)],
    "add": lambda shared, _: [shared.add(key) for key in range(-1000, 0)],
    "contains_many": lambda shared, _: shared.contains_many(KEYS),
    "contains_many of a list": lambda shared, _: shared.contains_many(KEYS.tolist()),
    "contains_many by threads": lambda shared, _: shared.contains_many(KEYS, threads=2),
    "add_many": lambda shared, _: shared.add_many(-KEYS),
    "add_many by threads": lambda shared, _: shared.add_many(-KEYS, threads=2),
    "stats": lambda shared, _: shared.stats(),
    "estimated_items": lambda shared, _: shared.estimated_items(),
    "validate": lambda shared, _: shared.validate(),
    "copy": lambda shared, _: shared.copy(),
    "to_bytes": lambda shared, _: shared.to_bytes(),
    "save": lambda shared, folder: shared.save(folder / "saved.bloom"),
    "==": lambda shared, _: shared == BloomFilter(300_000, 0.01),
    "merge": lambda shared, _: shared.merge(BloomFilter(300_000, 0.01)),
    "merge into another": lambda shared, _: BloomFilter(300_000, 0.01).merge(shared),
    "|": lambda shared, _: shared | BloomFilter(300_000, 0.01),
    "&": lambda shared, _: BloomFilter(300_000, 0.01) & shared,
    "clear": lambda shared, _: shared.clear(),
    "flush": lambda shared, _: shared.flush(),
    "dedup": lambda shared, _: Dedup(shared).feed(b"".join(b"%d\n" % n for n in range(9000))),
    "close": lambda shared, _: shared.close(),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "shared.bloom"
    made = BloomFilter(300_000, 0.01)
    made.add_many(KEYS)
    made.save(path)
    return path


def _try_after_cut(path: Path, verb: str, cut: int) -> Any:
    """In a process of its own, which would die: the error. Another filter still works."""
    shared = BloomFilter.open(path, mode="r+")
    os.truncate(path, cut)
    try:
        answer = VERBS[verb](shared, path.parent)
    except BloomtideError as error:
        untouched = BloomFilter(1000, 0.01)
        untouched.add("a")
        assert "a" in untouched
        return error
    return f"answered {answer!r}"


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("cut", [0, 300_000])
def test_every_verb_raises_after_a_cut_and_the_process_lives(
    verb: str, cut: int, path: Path
) -> None:
    before = sorted(entry.name for entry in path.parent.iterdir())
    error = run(_try_after_cut, path, verb, cut)
    assert type(error) is TruncatedError, error
    assert error.path == str(path)
    assert (error.got, error.hint != "") == (cut, True)
    assert error.expected > SIZE
    assert sorted(entry.name for entry in path.parent.iterdir()) == before, "nothing is saved"


def _ask_after_cuts(path: Path, mode: Any) -> list[str]:
    """Every length a file can be cut to, near its end, at pages and at its begin."""
    content = path.read_bytes()
    found = []
    cuts = [*range(len(content) - 70, len(content)), 1, 63, 64, 191, 192, 193, 4095, 4096, 8192]
    for cut in cuts:
        path.write_bytes(content)
        shared = BloomFilter.open(path, mode=mode)
        assert 5 in shared
        os.truncate(path, cut)
        try:
            shared.contains_many(KEYS)
            found.append(f"{cut}: answered")
        except TruncatedError:
            pass
        path.unlink()  # the next one is another file
    return found


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_a_cut_of_any_length_is_noticed(mode: str, path: Path) -> None:
    """Within the last page there is no fault: the system puts zeros where the file was."""
    assert run(_ask_after_cuts, path, mode) == []


def _grown_again(path: Path) -> Any:
    shared = BloomFilter.open(path)
    size = path.stat().st_size
    os.truncate(path, 0)
    os.truncate(path, size)
    try:
        return 5 in shared
    except TruncatedError as error:
        return error


def test_a_file_that_was_cut_and_grew_again_is_noticed(path: Path) -> None:
    error = run(_grown_again, path)
    assert isinstance(error, TruncatedError), error
    assert "overwritten" in str(error)


def _ask_until_cut(pipe: Connection, path: Path) -> None:
    """Asks for keys that are all there, until the first error."""
    shared = BloomFilter.open(path, mode="r+")
    denied = rounds = 0
    pipe.send("ready")
    try:
        while True:
            denied += int((~shared.contains_many(KEYS, threads=2)).sum())
            denied += sum(key not in shared for key in range(0, 300_000, 1000))
            rounds += 1
            if rounds == 3:
                pipe.send("asked")
    except TruncatedError:
        pipe.send(denied)


@pytest.mark.parametrize("cut", [0, 4096, 300_000])
def test_a_cut_by_another_process_in_the_middle_of_questions_denies_no_key(
    cut: int, path: Path
) -> None:
    with Worker(_ask_until_cut, path) as worker:
        assert worker.hear() == "ready"
        assert worker.hear() == "asked"
        os.truncate(path, cut)
        assert worker.hear() == 0


def _intersect(path: Path) -> Any:
    memory = BloomFilter(300_000, 0.01)
    memory.add_many(KEYS)
    before = memory.to_bytes()
    with BloomFilter.open(path) as shared:
        os.truncate(path, 8192)
        for act in (memory.merge, memory.__iand__, memory.__ior__):
            with pytest.raises(TruncatedError):
                act(shared)
    return memory.to_bytes() == before


def test_a_filter_in_memory_takes_nothing_from_a_cut_one(path: Path) -> None:
    assert run(_intersect, path) is True


def _close_and_open_again(path: Path) -> Any:
    content = path.read_bytes()
    cut = BloomFilter.open(path, mode="r+")
    os.truncate(path, 0)
    with pytest.raises(TruncatedError):
        cut.close()
    cut.close()
    path.write_bytes(content)  # restored from a backup, in place
    with BloomFilter.open(path, mode="r+") as shared:
        shared.add("new")
        return bool(shared.contains_many(KEYS).all())


def test_a_cut_file_gives_its_lock_back_and_may_be_restored(path: Path) -> None:
    assert run(_close_and_open_again, path) is True
    assert "new" in BloomFilter.load(path)


# --- Segments of a history ------------------------------------------------------------------------


def _ask_segment(path: Path) -> list[str]:
    found = []
    content = path.read_bytes()
    verbs: list[Callable[[HistorySegment], object]] = [
        lambda segment: segment.contains("/1"),
        lambda segment: segment.count("/1"),
        lambda segment: segment.count_many([f"/{n}" for n in range(5000)]),
        lambda segment: segment.rows_of("/1"),
        lambda segment: segment.names(),
        lambda segment: segment.validate(),
    ]
    for number, verb in enumerate(verbs):
        for cut in (0, 4096, len(content) // 2, len(content) - 1):
            path.write_bytes(content)
            segment = HistorySegment.open(path)
            segment.validate()  # all blocks were checked before
            os.truncate(path, cut)
            try:
                found.append(f"verb {number}, cut to {cut}: {verb(segment)!r:.40}")
            except TruncatedError as error:
                if error.path != str(path):
                    found.append(f"the error names {error.path}")
            path.unlink()
    return found


def test_a_segment_of_a_history_that_is_cut_raises(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    buffer = HistoryBuffer(window=60_000_000, rows=4)
    buffer.add_many([f"/{n % 5000}" for n in range(50_000)], at=1_700_000_000)
    made = buffer.seal(buffer.segments()[0].index, error_rate=0.01)
    path.write_bytes(made.segment)
    assert run(_ask_segment, path) == []


# --- Other faults ---------------------------------------------------------------------------------

FOREIGN = """
import mmap, os, sys
from bloomtide import BloomFilter
shared = BloomFilter.open(sys.argv[1])
with open(sys.argv[2], "wb+") as file:
    file.truncate(8192)
    page = mmap.mmap(file.fileno(), 8192)
    os.truncate(sys.argv[2], 0)
    page[5000]
"""


@pytest.mark.parametrize("dumps", [False, True])
def test_faults_in_maps_of_others_end_the_process_as_before(
    dumps: bool, path: Path, tmp_path: Path
) -> None:
    """And `faulthandler` tells where."""
    options = ["-X", "faulthandler"] if dumps else []
    done = subprocess.run(
        [sys.executable, *options, "-c", FOREIGN, str(path), str(tmp_path / "foreign")],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == -signal.SIGBUS, done
    assert ("Bus error" in done.stderr) == dumps


def _with_faulthandler(path: Path) -> Any:
    faulthandler.enable()
    return _try_after_cut(path, "contains_many", 0)


def test_a_handler_that_was_there_before_does_not_get_our_faults(path: Path) -> None:
    assert isinstance(run(_with_faulthandler, path), TruncatedError)


def _killed_by_hand(pipe: Connection, path: Path) -> None:
    shared = BloomFilter.open(path)
    pipe.send("ready")
    while True:
        assert 5 in shared


def test_the_signal_sent_by_hand_still_ends_the_process(path: Path) -> None:
    worker = Worker(_killed_by_hand, path)
    assert worker.hear() == "ready"
    assert worker.process.pid is not None
    os.kill(worker.process.pid, signal.SIGBUS)
    worker.process.join(20)
    assert worker.process.exitcode == -signal.SIGBUS
