"""A directory of shards that is saved again: the old filter or the new one, whatever is killed."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bloomtide import BloomFilter
from bloomtide.distributed import ShardedFilter, directory, sharded
from bloomtide.durable.disk import Disk
from bloomtide.errors import LockedError, StorageError
from tests.files.another_process import Worker
from tests.waiting import until

SHARDS = 5
OLD, NEW = np.arange(2000), np.arange(10_000, 12_000)


def _filled(keys: Any) -> ShardedFilter:
    made = ShardedFilter.of(BloomFilter, 4000, 1e-6, shards=SHARDS)
    made.add_many(keys)
    return made


def _holds(path: Path) -> str:
    """Which of the two a directory is, of which every shard is read."""
    found = ShardedFilter.load(path)
    found.validate()
    old, new = found.contains_many(OLD), found.contains_many(NEW)
    if old.all() and not new.any():
        return "old"
    assert new.all(), "neither"
    assert not old.any(), "both"
    return "new"


def _names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


STEPS = ("save", "digest_of", "rename", "replace_file", "unlink")
"""What a save does: it ends the process before or after one of these, the so many-th time."""


def _die_at(path: Path, step: str, when: int, after: bool) -> None:
    calls = 0

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def act(*arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == when and not after:
                os._exit(9)
            answer = call(*arguments)
            if calls == when:
                os._exit(9)
            return answer

        return act

    made = _filled(NEW)
    holder: Any = Disk if step in {"rename", "unlink"} else directory
    name = "write_filter" if step == "save" else step
    if step == "save":
        holder = sharded
    setattr(holder, name, dying(getattr(holder, name)))
    made.save(path)


def _start_dying(pipe: Connection, *arguments: Any) -> None:
    _die_at(*arguments)
    pipe.send("saved")


def _killed(path: Path, step: str, when: int, after: bool) -> bool:
    worker = Worker(_start_dying, path, step, when, after)
    worker.process.join(30)
    return worker.process.exitcode == 9


@pytest.mark.parametrize("step", STEPS)
def test_a_save_that_is_killed_at_any_step_leaves_the_old_or_the_new(
    step: str, tmp_path: Path
) -> None:
    kills, outcomes = 0, set()
    for when in (1, 3, SHARDS, SHARDS + 1):
        for after in (False, True):
            path = tmp_path / f"{when}-{after}"
            _filled(OLD).save(path)
            kills += _killed(path, step, when, after)
            outcomes.add(_holds(path))
            _filled(NEW).save(path)
            assert _holds(path) == "new"
            assert len(_names(path)) == SHARDS + 2, "leftovers are gone, but for the lock"
    assert kills >= 2
    assert outcomes & ({"new"} if step == "unlink" else {"old"})


def test_a_first_save_that_is_killed_is_no_filter_and_the_next_one_is(tmp_path: Path) -> None:
    assert _killed(tmp_path / "new", "replace_file", 1, False)
    with pytest.raises(StorageError, match="no manifest"):
        ShardedFilter.load(tmp_path / "new")
    _filled(OLD).save(tmp_path / "new")
    assert _holds(tmp_path / "new") == "old"
    assert len(_names(tmp_path / "new")) == SHARDS + 2


def test_a_loaded_filter_is_saved_over_its_own_directory(tmp_path: Path) -> None:
    """Shards that nobody asked for are not even read."""
    _filled(OLD).save(tmp_path)
    loaded = ShardedFilter.load(tmp_path)
    loaded.add("one more")
    changed = loaded.shard_of("one more")
    before = {name for name in _names(tmp_path) if name.startswith("shard-")}
    loaded.save(tmp_path)
    after = {name for name in _names(tmp_path) if name.startswith("shard-")}
    assert list(loaded._filters) == [changed]
    assert len(before - after) == len(after - before) == 1
    for found in (loaded, ShardedFilter.load(tmp_path)):
        assert "one more" in found
        assert found.contains_many(OLD).all()


def test_who_loaded_before_a_save_is_told_to_load_again(tmp_path: Path) -> None:
    _filled(OLD).save(tmp_path)
    early = ShardedFilter.load(tmp_path)
    assert OLD[0] in early
    _filled(NEW).save(tmp_path)
    with pytest.raises(StorageError, match="saved again") as caught:
        early.contains_many(OLD)
    assert "load the directory again" in caught.value.hint
    with pytest.raises(StorageError, match="another build"):
        early.save(tmp_path)
    assert _holds(tmp_path) == "new"


def test_files_of_others_stay(tmp_path: Path) -> None:
    _filled(OLD).save(tmp_path)
    others = ["notes.txt", "shard-list.txt", "shard-00000.bloom", "seen.bloom", ".hidden"]
    for name in others:
        (tmp_path / name).write_text("kept")
    (tmp_path / f"shard-00000-{'0' * 32}.bloom").write_text("left by a save")
    _filled(NEW).save(tmp_path)
    assert set(others) <= set(_names(tmp_path))
    assert f"shard-00000-{'0' * 32}.bloom" not in _names(tmp_path)


def _hold(pipe: Connection, path: Path) -> None:
    with directory.saving(path):
        pipe.send("held")
        pipe.recv()


def test_two_saves_of_one_directory_at_once_are_refused_by_name(tmp_path: Path) -> None:
    _filled(OLD).save(tmp_path)
    with Worker(_hold, tmp_path) as worker:
        assert worker.hear() == "held"
        with pytest.raises(LockedError) as caught:
            _filled(NEW).save(tmp_path)
        assert caught.value.pid == worker.process.pid
        assert _holds(tmp_path) == "old"
        worker.tell("done")
    _filled(NEW).save(tmp_path)
    assert _holds(tmp_path) == "new"


def _save_for_ever(pipe: Connection, path: Path) -> None:
    old, new = _filled(OLD), _filled(NEW)
    pipe.send("ready")
    while True:
        new.save(path)
        old.save(path)


def test_kills_at_any_moment_leave_one_of_the_two(tmp_path: Path) -> None:
    _filled(OLD).save(tmp_path)
    for _ in range(8):
        before = _names(tmp_path)
        worker = Worker(_save_for_ever, tmp_path)
        assert worker.hear() == "ready"
        until(lambda before=before: _names(tmp_path) != before)  # type: ignore[misc]
        worker.process.kill()
        worker.process.join()
        assert _holds(tmp_path) in {"old", "new"}
    _filled(NEW).save(tmp_path)
    assert len(_names(tmp_path)) == SHARDS + 2


def _shards(path: Path) -> dict[str, int]:
    return {name: (path / name).stat().st_ino for name in _names(path) if "shard-" in name}


@pytest.mark.parametrize("step", ["save", "digest_of", "rename", "replace_file"])
@pytest.mark.parametrize("first", [False, True], ids=["again", "first"])
def test_a_save_that_fails_at_any_step_leaves_no_file_of_its_own(
    step: str, first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full: what was written must not fill it for the next save."""
    if not first:
        _filled(OLD).save(tmp_path)
    before = _shards(tmp_path)
    holder: Any = {"rename": Disk, "save": sharded}.get(step, directory)
    name = "write_filter" if step == "save" else step
    call, calls = getattr(holder, name), 0

    def failing(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == (1 if step == "replace_file" else SHARDS):
            raise StorageError("full", path="x", operation="write")
        return call(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(holder, name, failing)
        with pytest.raises(StorageError, match="full"):
            _filled(NEW).save(tmp_path)
    assert _shards(tmp_path) == before
    if not first:
        assert _holds(tmp_path) == "old"
    _filled(NEW).save(tmp_path)
    assert _holds(tmp_path) == "new"


def _save_with_little_space(pipe: Connection, path: Path) -> None:
    large = ShardedFilter.of(BloomFilter, 400_000, 1e-6, shards=SHARDS)
    shard = large.shard(0).to_bytes()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(shard) - 1, resource.RLIM_INFINITY))
    try:
        large.save(path)
    except StorageError as error:
        pipe.send(error.operation)


def test_a_save_that_the_system_refuses_leaves_the_directory_as_it_was(tmp_path: Path) -> None:
    _filled(OLD).save(tmp_path)
    before = _names(tmp_path)
    with Worker(_save_with_little_space, tmp_path) as worker:
        assert worker.hear() == "write"
    assert _names(tmp_path) == before
    assert _holds(tmp_path) == "old"


def test_a_save_that_writes_what_is_there_already_and_fails_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal shards have equal names: those belong to the filter that is there."""
    _filled(OLD).save(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(directory, "replace_file", _refuse)
        with pytest.raises(StorageError, match="full"):
            _filled(OLD).save(tmp_path)
    assert _holds(tmp_path) == "old"


def _refuse(*_: Any) -> None:
    raise StorageError("full", path="x", operation="write")


def test_what_a_killed_save_left_goes_before_the_next_one_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _filled(OLD).save(tmp_path)
    before = _shards(tmp_path)
    assert _killed(tmp_path, "rename", SHARDS, False)
    assert len(_shards(tmp_path)) == 2 * SHARDS
    seen = []
    write = directory.write_filter

    def looking(*arguments: Any) -> Any:
        seen.append(_shards(tmp_path))
        return write(*arguments)

    monkeypatch.setattr(sharded, "write_filter", looking)
    _filled(NEW).save(tmp_path)
    assert seen[0] == before, "leftovers are gone, what the manifest names is there"
    assert _holds(tmp_path) == "new"


def test_a_manifest_that_cannot_be_read_may_name_anything(tmp_path: Path) -> None:
    _filled(OLD).save(tmp_path)
    before, manifest = _shards(tmp_path), (tmp_path / directory.MANIFEST).read_bytes()
    (tmp_path / directory.MANIFEST).write_bytes(manifest[:-9])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(directory, "replace_file", _refuse)
        with pytest.raises(StorageError, match="full"):
            _filled(NEW).save(tmp_path)
    assert _shards(tmp_path) == before
    (tmp_path / directory.MANIFEST).write_bytes(manifest)
    assert _holds(tmp_path) == "old"
