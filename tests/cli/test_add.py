"""`bloomtide add`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

import bloomtide
from bloomtide import BloomFilter, CountingBloomFilter, system
from bloomtide.cli import files
from tests.cli.command import filter_of, refused, run


def test_counts_are_a_message_and_not_data(tmp_path: Path) -> None:
    file = filter_of(tmp_path, ["a", "b"])
    result = run("add", file, stdin=b"b\nc\nc\n")
    assert result.stderr == "1 new, 2 already there\n"
    assert result.stdout == ""


def test_json_counts_go_to_stdout(tmp_path: Path) -> None:
    file = filter_of(tmp_path, ["a", "b"])
    result = run("add", file, "--json", stdin=b"b\nc\nc\n")
    assert json.loads(result.stdout) == {"read": 3, "added": 1, "present": 2}
    assert result.stderr == ""


def test_new_lines_are_printed_once_in_their_order(tmp_path: Path) -> None:
    file = filter_of(tmp_path, ["a"])
    result = run("add", file, "--new", stdin=b"c\na\r\nb\nc\n\xff\n")
    assert result.stdout_bytes == b"c\nb\n\xff\n"


def test_keys_come_from_options_files_and_stdin(tmp_path: Path) -> None:
    file = filter_of(tmp_path, [])
    (tmp_path / "keys").write_text("from-file\n")
    run("add", file, tmp_path / "keys", "-", "--key", "one", "--key", "two", stdin=b"from-stdin\n")
    loaded = BloomFilter.load(file)
    assert all(key in loaded for key in ("one", "two", "from-file", "from-stdin"))


def test_with_given_keys_stdin_is_left_alone(tmp_path: Path) -> None:
    file = filter_of(tmp_path, [])
    run("add", file, "--key", "one", stdin=b"from-stdin\n")
    assert "one" in BloomFilter.load(file)
    assert "from-stdin" not in BloomFilter.load(file)


def test_the_file_equals_adding_in_python(tmp_path: Path) -> None:
    keys = [f"https://example.com/{number}" for number in range(900)]
    file = filter_of(tmp_path, keys, "--kind", "counting")
    wanted = CountingBloomFilter(1000, 1e-9)
    wanted.add_many(keys)
    assert bloomtide.load(file).to_bytes() == wanted.to_bytes()


def test_a_shared_file_that_is_open_elsewhere_takes_keys_at_once(tmp_path: Path) -> None:
    file = tmp_path / "f.bloom"
    with BloomFilter.open(file, 1000, 1e-9, mode="c") as shared:
        shared.add("mine")
        run("add", file, "--key", "yours")
        assert "yours" in shared
        assert "mine" in run("check", file, "--key", "mine").stdout
    assert all(key in BloomFilter.load(file) for key in ("mine", "yours"))


def test_a_shared_add_is_in_place_and_leaves_a_sealed_file(tmp_path: Path) -> None:
    file = filter_of(tmp_path, ["a"])
    inode = file.stat().st_ino
    run("add", file, "--shared", "--key", "b")
    assert file.stat().st_ino == inode
    assert all(key in BloomFilter.load(file) for key in "ab")


def test_a_shared_add_needs_a_bloom_filter(tmp_path: Path) -> None:
    file = filter_of(tmp_path, ["a"], "--kind", "counting")
    before = file.read_bytes()
    assert "counting" in refused("add", file, "--shared", "--key", "b")
    assert file.read_bytes() == before


def test_a_link_to_a_filter_stays_a_link(tmp_path: Path) -> None:
    file = filter_of(tmp_path, ["a"])
    link = tmp_path / "link"
    link.symlink_to(file)
    run("add", link, "--key", "b")
    assert link.is_symlink()
    assert "b" in BloomFilter.load(file)


def test_the_lock_is_on_the_file_that_is_there_when_it_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    file = filter_of(tmp_path, ["a"])
    newer = filter_of(tmp_path, ["b"], name="newer")
    take = system.try_lock

    def replaced_meanwhile(opened: BinaryIO, *, shared: bool = False) -> bool:
        if newer.exists():
            newer.replace(file)
        return take(opened, shared=shared)

    monkeypatch.setattr(system, "try_lock", replaced_meanwhile)
    with files.filter_to_change(file) as filter:
        assert "b" in filter
        with file.open("rb") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_file_left_live_by_a_killed_writer_takes_keys(tmp_path: Path) -> None:
    file = tmp_path / "f"
    script = (
        "import os, sys, bloomtide\n"
        "f = bloomtide.BloomFilter.open(sys.argv[1], 1000, 1e-9, mode='c')\n"
        "f.add('a'); f.flush(); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", script, file], check=False)
    run("validate", file, code=2)
    run("add", file, "--key", "b")
    run("validate", file)
    assert all(key in BloomFilter.load(file) for key in "ab")


def test_a_snapshot_is_untouched_when_a_later_source_fails(tmp_path: Path) -> None:
    file = filter_of(tmp_path, ["a"])
    before = file.read_bytes()
    stderr = refused("add", file, "--key", "b", tmp_path / "missing")
    assert "missing: No such file or directory" in stderr
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_new_and_json_do_not_go_together(tmp_path: Path) -> None:
    file = filter_of(tmp_path, [])
    assert "--new and --json" in refused("add", file, "--new", "--json", stdin=b"a\n")


def test_a_filter_that_is_missing_or_something_else_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"text\n" * 1000)
    assert "No such file" in refused("add", tmp_path / "missing", "--key", "a")
    assert str(other) in refused("add", other, "--key", "a")
    assert "s a directory" in refused("add", tmp_path, "--key", "a")
    assert other.read_bytes() == b"text\n" * 1000
