"""What the operating system refuses: one StorageError with its errno, and no file changed."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import bloomtide
from bloomtide import BloomFilter, CountingBloomFilter, ScalableBloomFilter
from bloomtide.errors import ParameterError, SnapshotError, StorageError
from tests.bad_input.refusal import refused
from tests.files.another_process import run

KINDS: list[Any] = [BloomFilter, ScalableBloomFilter, CountingBloomFilter]
NOBODY = 65534


def _refused(act: Callable[[], object], path: Path, *numbers: int) -> StorageError:
    with pytest.raises(StorageError) as caught:
        act()
    _judge(caught.value, path, *numbers)
    return caught.value


def _judge(error: object, path: Path | str, *numbers: int) -> None:
    assert isinstance(error, StorageError), repr(error)
    assert isinstance(error, OSError)
    assert error.errno in numbers, repr(error)
    assert error.path == str(path)
    assert error.operation
    assert error.hint
    assert str(path) in str(error)


def _names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


# --- Reading ----------------------------------------------------------------------------------


def test_a_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "missing.bloom"
    for load in (bloomtide.load, *[kind.load for kind in KINDS], BloomFilter.open):
        _refused(partial(load, path), path, errno.ENOENT)
    _refused(lambda: BloomFilter.open(path, mode="r+"), path, errno.ENOENT)
    assert _names(tmp_path) == []


def test_a_directory(tmp_path: Path) -> None:
    for load in (bloomtide.load, BloomFilter.load, BloomFilter.open):
        _refused(partial(load, tmp_path), tmp_path, errno.EISDIR)
    made = BloomFilter(10, 0.1)
    _refused(lambda: made.save(tmp_path), tmp_path, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY)
    _refused(lambda: BloomFilter.open(tmp_path, 10, 0.1, mode="c"), tmp_path, errno.EISDIR)
    assert _names(tmp_path) == []
    assert _names(tmp_path.parent).count(tmp_path.name) == 1
    assert not [name for name in _names(tmp_path.parent) if tmp_path.name in name[1:]]


def test_a_path_through_a_file_or_into_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    made = BloomFilter(10, 0.1)
    for path, number in [
        (tmp_path / "file" / "x.bloom", errno.ENOTDIR),
        (tmp_path / "nowhere" / "x.bloom", errno.ENOENT),
    ]:
        _refused(partial(made.save, path), path, number)
        _refused(partial(bloomtide.load, path), path, number)
        _refused(partial(BloomFilter.open, path, 10, 0.1, mode="c"), path, number)
    assert _names(tmp_path) == ["file"]


@pytest.mark.parametrize("path", ["", "nul\0byte", "x" * 5000])
def test_names_no_file_can_have(path: str) -> None:
    made = BloomFilter(10, 0.1)
    for act in (bloomtide.load, made.save, BloomFilter.open):
        with pytest.raises((StorageError, ValueError)):
            act(path)


@pytest.mark.parametrize("path", [None, 5, 1.5, b"bytes.bloom"])
def test_what_is_no_path_is_refused_by_name(path: Any) -> None:
    made = BloomFilter(10, 0.1)
    for act in (bloomtide.load, made.save, BloomFilter.open):
        refused(ParameterError, act, path, name="path")


def test_a_device_that_never_ends_is_not_read() -> None:
    with pytest.raises((StorageError, SnapshotError)):
        bloomtide.load("/dev/zero")


# --- Rights -----------------------------------------------------------------------------------


def _as_nobody(folder: Path, act: Callable[..., Any], *arguments: Any) -> Any:
    """Root passes every permission check, so root becomes nobody first (for good).

    Before that it steps into the folder, whose parents are closed to others.
    """
    os.chdir(folder)
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    return act(*arguments)


def _save(path: str) -> None:
    BloomFilter(10, 0.1).save(path)


def _create(path: str) -> None:
    BloomFilter.open(path, 10, 0.1, mode="c")


def _reopen(path: str) -> None:
    BloomFilter.open(path, mode="r+")


def test_no_permission(tmp_path: Path) -> None:
    stored = tmp_path / "stored.bloom"
    BloomFilter(10, 0.1).save(stored)
    before = stored.read_bytes()
    stored.chmod(0o000)
    tmp_path.chmod(0o555)
    try:
        for act, name in [
            (bloomtide.load, "stored.bloom"),
            (BloomFilter.open, "stored.bloom"),
            (_reopen, "stored.bloom"),
            (_save, "stored.bloom"),
            (_save, "fresh.bloom"),
            (_create, "fresh.bloom"),
        ]:
            _judge(run(_as_nobody, tmp_path, act, name), name, errno.EACCES)
    finally:
        tmp_path.chmod(0o755)
        stored.chmod(0o644)
    assert stored.read_bytes() == before
    assert _names(tmp_path) == ["stored.bloom"]


# --- Room -------------------------------------------------------------------------------------

LIMIT = 16_384


def _with_small_files(act: Callable[..., Any], *arguments: Any) -> Any:
    """No file of this process may grow beyond LIMIT: writes fail half-way, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))
    return act(*arguments)


def _save_large(kind: Any, path: Path) -> None:
    large = kind(100_000, 0.01)
    large.add_many(range(1000))
    large.save(path)


def _create_large(path: Path) -> None:
    BloomFilter.open(path, 100_000, 0.01, mode="c")


@pytest.mark.parametrize("kind", KINDS)
def test_a_save_that_runs_out_of_room_leaves_the_old_file(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "kept.bloom"
    kind(10, 0.1).save(path)
    before = path.read_bytes()
    _judge(run(_with_small_files, _save_large, kind, path), path, errno.EFBIG, errno.ENOSPC)
    assert path.read_bytes() == before
    assert _names(tmp_path) == ["kept.bloom"]


def test_a_shared_file_that_does_not_fit_is_not_created(tmp_path: Path) -> None:
    path = tmp_path / "shared.bloom"
    _judge(run(_with_small_files, _create_large, path), path, errno.EFBIG, errno.ENOSPC)
    assert _names(tmp_path) == []


FULL_DISK = """
import errno, sys
from pathlib import Path
from bloomtide import BloomFilter
from bloomtide.errors import StorageError
folder = Path(sys.argv[1])
path = folder / "kept.bloom"
BloomFilter(10, 0.1).save(path)
before = path.read_bytes()
large = BloomFilter(1_000_000, 0.01)
for act in (
    lambda: large.save(path),
    lambda: BloomFilter.open(folder / "new.bloom", 1_000_000, 0.01, mode="c"),
):
    try:
        act()
    except StorageError as error:
        assert error.errno == errno.ENOSPC, repr(error)
        assert error.hint
    else:
        raise AssertionError("a full disk went unnoticed")
    assert path.read_bytes() == before
    assert [entry.name for entry in folder.iterdir()] == ["kept.bloom"]
"""


def test_a_full_disk(tmp_path: Path) -> None:
    """A real file system of 256 KiB. A mapped file must own its room before anything is written:
    a hole that cannot be filled later kills the process."""
    unshare = shutil.which("unshare")
    mount = f"mount -t tmpfs -o size=256k tmpfs {tmp_path}"
    probe = [str(unshare), "--mount", "--map-root-user", "sh", "-c", mount]
    if unshare is None or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount a small file system")
    command = f'{mount} && exec "$0" -c "$1" {tmp_path}'
    done = subprocess.run(
        [unshare, "--mount", "--map-root-user", "sh", "-c", command, sys.executable, FULL_DISK],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


# --- Saving -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_save_replaces_the_whole_file_and_leaves_nothing_beside(
    kind: Any, tmp_path: Path
) -> None:
    path = tmp_path / "f.bloom"
    path.write_bytes(b"x" * 1_000_000)
    made = kind(100, 0.01)
    made.add("a")
    made.save(path)
    made.add("b")
    made.save(str(path))
    assert path.read_bytes() == made.to_bytes()
    assert kind.load(path) == made
    assert _names(tmp_path) == ["f.bloom"]


def test_a_reader_of_the_old_file_keeps_the_old_file(tmp_path: Path) -> None:
    """The new file replaces the name, never the bytes somebody has open."""
    path = tmp_path / "f.bloom"
    made = BloomFilter(100, 0.01)
    made.save(path)
    before = path.read_bytes()
    with path.open("rb") as reader:
        made.add("a")
        made.save(path)
        assert reader.read() == before
    assert path.read_bytes() != before
