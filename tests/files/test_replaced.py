"""Replacing a file that others have mapped, and what killed saves leave beside it."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

import bloomtide
from bloomtide import (
    BloomFilter,
    CountingBloomFilter,
    HotFilter,
    RecentFilter,
    TimeDecayingBloomFilter,
)
from bloomtide._core import replace_file
from bloomtide.errors import LockedError, StorageError
from tests.files.another_process import Worker, run
from tests.waiting import until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shared.bloom"


def _names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.parent.iterdir())


def _refused(act: Callable[[], object], path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(LockedError) as caught:
        act()
    assert caught.value.path == str(path)
    assert isinstance(caught.value, OSError)
    assert str(path) in str(caught.value)
    assert "close it" in caught.value.hint
    assert path.read_bytes() == before
    assert _names(path) == [path.name], "nothing is left beside it"


# --- A file that is open for writing --------------------------------------------------------------


def _hot_filter() -> HotFilter:
    return TimeDecayingBloomFilter(100, 0.01, half_life="1h").with_hot_list(3)  # type: ignore[no-any-return]


def test_a_file_that_is_open_for_writing_is_not_replaced(path: Path) -> None:
    other = BloomFilter(1000, 0.01)
    other.add("other")
    with BloomFilter.open(path, 1000, 0.01, mode="c") as shared:
        for number, act in enumerate(
            (
                lambda: other.save(path),
                lambda: shared.save(path),
                lambda: shared.copy().save(path),
                lambda: CountingBloomFilter(10, 0.1).save(path),
                lambda: _hot_filter().save(path),
                lambda: replace_file(path, b"anything"),
            )
        ):
            shared.add(number)
            shared.flush()
            _refused(act, path)
            assert number in BloomFilter.open(path), "what was flushed is under the name"
            assert isinstance(run(other.save, path), LockedError), "nor by another process"
    loaded = BloomFilter.load(path)
    assert loaded.contains_many(range(6)).all()
    assert "other" not in loaded
    other.save(path)
    assert BloomFilter.load(path) == other


def _write_until_told(pipe: Connection, path: Path) -> None:
    with BloomFilter.open(path, 1000, 0.01, mode="c") as shared:
        shared.add("theirs")
        shared.flush()
        pipe.send("flushed")
        pipe.recv()


def test_a_file_that_another_process_writes_is_not_replaced(path: Path) -> None:
    other = BloomFilter(1000, 0.01)
    with Worker(_write_until_told, path) as writer:
        assert writer.hear() == "flushed"
        _refused(lambda: other.save(path), path)
        writer.tell("close")
    assert "theirs" in BloomFilter.load(path)
    other.save(path)
    assert "theirs" not in BloomFilter.load(path)


def test_a_link_to_a_file_that_is_open_for_writing_is_not_replaced(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to(path.name)
    with BloomFilter.open(path, 1000, 0.01, mode="c") as shared:
        with pytest.raises(LockedError):
            BloomFilter(10, 0.1).save(link)
        shared.add("a")
    assert "a" in BloomFilter.load(link)


def test_what_a_killed_writer_left_may_be_replaced(path: Path) -> None:
    writer = Worker(_write_until_told, path)
    assert writer.hear() == "flushed"
    writer.process.kill()
    writer.process.join()
    with pytest.raises(bloomtide.errors.UnsealedError):
        bloomtide.load(path)
    BloomFilter(10, 0.1).save(path)
    assert bloomtide.load(path).capacity == 10


def test_readers_keep_the_file_that_they_opened(path: Path) -> None:
    old, new = BloomFilter(1000, 0.01), BloomFilter(1000, 0.01)
    old.add("old")
    new.add("new")
    old.save(path)
    with BloomFilter.open(path) as reader:
        new.save(path)
        assert "old" in reader
        assert "new" not in reader
        assert "new" in BloomFilter.open(path)


def _open_flush_and_look(pipe: Connection, path: Path) -> None:
    """What was flushed is under the name for as long as the file is open."""
    lost = number = 0
    while not pipe.poll(0.003):  # closed so long, so that some saves come between
        number = (number + 1) % 500
        with BloomFilter.open(path, 1000, 0.01, mode="c") as shared:
            shared.add(number)
            shared.flush()
            lost += number not in BloomFilter.open(path)
            shared.flush()
            lost += number not in BloomFilter.open(path)
    pipe.send(lost)


def test_saves_beside_writers_that_come_and_go_lose_nothing_that_was_flushed(path: Path) -> None:
    other = BloomFilter(1000, 0.01)
    outcomes = {"saved": 0, "refused": 0}

    def both_came() -> bool:
        try:
            other.save(path)
            outcomes["saved"] += 1
        except LockedError:
            outcomes["refused"] += 1
        return min(outcomes.values()) >= 30

    with Worker(_open_flush_and_look, path) as writer:
        until(both_came)
        assert writer.ask("enough") == 0


def _save_often(pipe: Connection, path: Path) -> None:
    other = BloomFilter(1000, 0.01)
    other.add(os.getpid())
    for _ in range(100):
        other.save(path)
    pipe.send(os.getpid())


def test_processes_that_save_one_path_at_once_all_succeed(path: Path) -> None:
    workers = [Worker(_save_often, path) for _ in range(3)]
    pids = []
    for worker in workers:
        with worker:
            pids.append(worker.hear())
    loaded = BloomFilter.load(path)
    assert sum(pid in loaded for pid in pids) == 1
    assert _names(path) == [path.name]


# --- Leftovers ------------------------------------------------------------------------------------

LARGE = 400_000_000
"""Bits: some fifty megabytes, which take a moment to write."""


def _save_large(pipe: Connection, path: Path) -> None:
    made = BloomFilter(bits=LARGE, hashes=3)
    pipe.send("ready")
    pipe.recv()
    made.save(path)
    pipe.send("saved")


def _unfinished(path: Path) -> Path | None:
    found = list(path.parent.glob(f".{path.name}.*.unfinished"))
    return found[0] if found else None


def _stopped_in_the_middle(path: Path) -> Worker:
    """A process that is stopped while it saves."""
    for _ in range(20):
        worker = Worker(_save_large, path)
        assert worker.hear() == "ready"
        worker.tell("go")
        until(lambda: _unfinished(path))
        assert worker.process.pid is not None
        os.kill(worker.process.pid, signal.SIGSTOP)
        if _unfinished(path) and not worker.ready():
            return worker
        os.kill(worker.process.pid, signal.SIGCONT)
        with worker:
            assert worker.hear() == "saved"
    raise AssertionError("every save was done before it was stopped")


def _killed(worker: Worker) -> None:
    worker.process.kill()
    worker.process.join()


@pytest.mark.parametrize(
    "act",
    [
        lambda path: BloomFilter(20, 0.1).save(path),
        lambda path: BloomFilter.open(path, mode="r+").close(),
        lambda path: BloomFilter.open(path, 10, 0.1, mode="c").close(),
        lambda path: replace_file(path, BloomFilter(20, 0.1).to_bytes()),
    ],
    ids=["save", "open", "create", "replace"],
)
def test_what_a_killed_save_left_is_removed_by_the_next_one(
    act: Callable[[Path], object], path: Path
) -> None:
    old = BloomFilter(10, 0.1)
    old.add("old")
    old.save(path)
    _killed(_stopped_in_the_middle(path))
    assert _unfinished(path)
    assert BloomFilter.load(path) == old
    act(path)
    assert _names(path) == [path.name]


def test_a_killed_first_save_leaves_no_file_and_the_next_one_cleans_up(path: Path) -> None:
    _killed(_stopped_in_the_middle(path))
    assert not path.exists()
    with pytest.raises(StorageError):
        bloomtide.load(path)
    BloomFilter.open(path, 10, 0.1, mode="c").close()
    assert _names(path) == [path.name]


def test_what_a_living_process_is_writing_is_left_alone(path: Path) -> None:
    worker = _stopped_in_the_middle(path)
    unfinished = _unfinished(path)
    assert unfinished is not None
    BloomFilter(10, 0.1).save(path)
    BloomFilter.open(path, mode="r+").close()
    assert _names(path) == sorted([unfinished.name, path.name])
    assert worker.process.pid is not None
    os.kill(worker.process.pid, signal.SIGCONT)
    with worker:
        assert worker.hear() == "saved"
    assert bloomtide.load(path).bits == LARGE  # type: ignore[union-attr]
    assert _names(path) == [path.name]


def test_files_that_only_look_like_leftovers_stay(path: Path) -> None:
    """A directory, a link, a file with a second name and names that are no save's."""
    folder = path.parent
    (folder / ".shared.bloom.0.unfinished").mkdir()
    (folder / "victim").write_bytes(b"kept")
    (folder / ".shared.bloom.1.unfinished").symlink_to("victim")
    (folder / "other").write_bytes(b"kept too")
    (folder / ".shared.bloom.2.unfinished").hardlink_to(folder / "other")
    for name in (".shared.bloom.x.unfinished", ".other.bloom.0.unfinished", "shared.bloom.tmp"):
        (folder / name).write_bytes(b"x")
    before = _names(path)
    made = BloomFilter(10, 0.1)
    made.save(path)
    BloomFilter.open(path, mode="r+").close()
    assert BloomFilter.load(path) == made
    assert _names(path) == sorted([*before, path.name])
    assert (folder / "victim").read_bytes() == b"kept"
    assert (folder / "other").read_bytes() == b"kept too"


def test_a_save_takes_over_rights_and_leaves_none_of_those_of_a_leftover(path: Path) -> None:
    leftover = path.with_name(f".{path.name}.0.unfinished")
    leftover.write_bytes(b"half of something")
    leftover.chmod(0o600)
    made: Any = BloomFilter(10, 0.1)
    made.save(path)
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask
    path.chmod(0o640)
    made.save(path)
    assert path.stat().st_mode & 0o777 == 0o640
    assert _names(path) == [path.name]


# --- Links, and what is no file -------------------------------------------------------------------


def _save_bloom(path: Path) -> None:
    BloomFilter(10, 0.1).save(path)


def _save_recent(path: Path) -> None:
    RecentFilter(10, 0.1).save(path)


def _create(path: Path) -> None:
    BloomFilter.open(path, 10, 0.1, mode="c").close()


MAKERS = pytest.mark.parametrize(
    "make", [_save_bloom, _save_recent, _create], ids=["save", "recent", "create"]
)


@MAKERS
@pytest.mark.parametrize("absolute", [False, True])
def test_a_link_is_written_through_also_when_its_target_is_not_there_yet(
    make: Callable[[Path], None], absolute: bool, path: Path
) -> None:
    folder = path.parent / "folder"
    folder.mkdir()
    target = folder / "target"
    first, second = path.with_name("first"), folder / "second"
    first.symlink_to(second if absolute else "folder/second")
    second.symlink_to(target if absolute else "target")
    for _ in range(2):
        make(first)
        assert first.is_symlink()
        assert second.is_symlink()
        assert target.is_file()
        assert not target.is_symlink()
    assert sorted(entry.name for entry in folder.iterdir()) == ["second", "target"]
    assert _names(path) == ["first", "folder"]


@MAKERS
def test_links_that_lead_in_a_circle_are_refused(make: Callable[[Path], None], path: Path) -> None:
    path.symlink_to("other")
    path.with_name("other").symlink_to(path.name)
    with pytest.raises(StorageError) as caught:
        make(path)
    assert caught.value.path == str(path)
    assert path.is_symlink()


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("make", [_save_bloom, _save_recent], ids=["save", "recent"])
def test_what_is_no_file_is_not_replaced(
    make: Callable[[Path], None], linked: bool, path: Path
) -> None:
    pipe, address, folder = (path.with_name(name) for name in ("pipe", "address", "folder"))
    os.mkfifo(pipe)
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address))
        for special, kind in ((pipe, "named pipe"), (address, "socket"), (folder, "directory")):
            target = special
            if linked:
                target = path.with_name("link")
                target.unlink(missing_ok=True)
                target.symlink_to(special.name)
            before, names = special.stat(), _names(path)
            with pytest.raises(StorageError, match=kind) as caught:
                make(target)
            assert caught.value.path == str(target)
            assert str(target) in str(caught.value)
            assert caught.value.hint
            assert os.path.samestat(special.stat(), before), "it is the one that was there"
            assert special.stat().st_mode == before.st_mode
            assert _names(path) == names
