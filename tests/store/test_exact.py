"""`ExactSet` is a set: on disk, whole after a kill, and it refuses what is not its file."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bloomtide.errors import (
    BloomtideError,
    ClosedError,
    InvariantError,
    KeyTypeError,
    NotASnapshotError,
    ParameterError,
    SnapshotError,
    StorageError,
    VersionError,
)
from bloomtide.store import ExactSet

keys = st.binary(max_size=40)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(st.lists(keys, max_size=20), max_size=6), singles=st.lists(keys))
def test_it_answers_as_a_set_does(
    tmp_path: Path, batches: list[list[bytes]], singles: list[bytes]
) -> None:
    path = tmp_path / "set"
    path.unlink(missing_ok=True)
    model: set[bytes] = set()

    def new(key: bytes) -> bool:
        fresh = key not in model
        model.add(key)
        return fresh

    with ExactSet(path, batch=7) as exact:
        for batch in batches:
            assert exact.add_many(batch) == [new(key) for key in batch]
        for key in singles:
            assert exact.add(key) is new(key)
    with ExactSet(path) as exact:
        assert len(exact) == len(model)
        assert {key for key in exact if len(key) < 33} == {key for key in model if len(key) < 33}
        assert all(key in exact for key in model)
        assert b"absent" not in exact or b"absent" in model


def test_a_long_key_is_not_the_short_key_that_stands_for_it(tmp_path: Path) -> None:
    long = b"x" * 1000
    with ExactSet(tmp_path / "set") as exact:
        assert exact.add(long)
        assert not exact.add(long)
        assert exact.add(blake2b(long, digest_size=32).digest())
        assert exact.add(b"#" + blake2b(long, digest_size=32).digest())
        assert exact.add(long[:-1])
        assert len(exact) == 4


def test_a_batch_larger_than_a_statement_keeps_its_order(tmp_path: Path) -> None:
    rows = [b"%d" % (number % 3000) for number in range(5000)]
    with ExactSet(tmp_path / "set") as exact:
        assert exact.add_many(iter(rows)) == [True] * 3000 + [False] * 2000
        exact.validate()


@pytest.mark.parametrize(("flushed", "rest"), [(300, 50), (0, 99)])
def test_what_was_flushed_survives_a_kill(tmp_path: Path, flushed: int, rest: int) -> None:
    program = f"""
import os, signal
from bloomtide.store import ExactSet
exact = ExactSet({str(tmp_path / "set")!r}, batch=100)
exact.add_many(b"%d" % n for n in range({flushed}))
exact.flush()
exact.add_many(b"later %d" % n for n in range({rest}))
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    with ExactSet(tmp_path / "set") as exact:
        exact.validate()
        assert len(exact) == flushed
        assert all(b"%d" % number in exact for number in range(flushed))


def test_a_full_batch_is_committed_without_being_asked(tmp_path: Path) -> None:
    exact = ExactSet(tmp_path / "set", batch=10)
    for number in range(25):
        exact.add(b"%d" % number)
    with ExactSet(tmp_path / "set") as other:
        assert len(other) == 20
    exact.close()
    exact.close()
    with ExactSet(tmp_path / "set") as other:
        assert len(other) == 25


def test_a_closed_set_refuses_and_says_so(tmp_path: Path) -> None:
    exact = ExactSet(tmp_path / "set")
    exact.close()
    with pytest.raises(ClosedError):
        exact.add(b"a")
    with pytest.raises(ClosedError):
        _ = b"a" in exact
    with pytest.raises(ClosedError):
        len(exact)
    assert "closed" in repr(exact)


def test_only_bytes_are_keys_and_a_bad_one_adds_none(tmp_path: Path) -> None:
    with ExactSet(tmp_path / "set") as exact:
        with pytest.raises(KeyTypeError):
            exact.add("text")  # type: ignore[arg-type]
        with pytest.raises(KeyTypeError):
            exact.add_many([b"a", 7])  # type: ignore[list-item]
        assert len(exact) == 0
    with pytest.raises(ParameterError, match="`batch`"):
        ExactSet(tmp_path / "set", batch=0)
    with pytest.raises(ParameterError, match="`cache`"):
        ExactSet(tmp_path / "set", cache=1)


def test_a_foreign_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"one line\n" * 500)
    with pytest.raises(NotASnapshotError):
        ExactSet(text)
    assert text.read_bytes() == b"one line\n" * 500
    foreign = tmp_path / "foreign"
    with sqlite3.connect(foreign) as database:
        database.execute("CREATE TABLE keys (key BLOB)")
    database.close()
    before = foreign.read_bytes()
    with pytest.raises(NotASnapshotError):
        ExactSet(foreign)
    assert foreign.read_bytes() == before
    with pytest.raises(StorageError):
        ExactSet(tmp_path / "nowhere" / "set")


def test_a_newer_or_gutted_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "set"
    ExactSet(path).close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 2")
    database.close()
    with pytest.raises(VersionError):
        ExactSet(path)
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 1")
        database.execute("DROP TABLE keys")
    database.close()
    with pytest.raises(SnapshotError, match="damaged"):
        ExactSet(path)


def test_a_damaged_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "set"
    with ExactSet(path) as exact:
        exact.add_many(b"%020d" % number for number in range(5000))
    data = bytearray(path.read_bytes())
    data[4096:] = bytes(len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises((SnapshotError, InvariantError)), ExactSet(path) as exact:
        exact.validate()
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(BloomtideError), ExactSet(path) as exact:
        exact.validate()


def test_what_was_discarded_is_new_again_and_what_was_flushed_is_not(tmp_path: Path) -> None:
    with ExactSet(tmp_path / "set") as kept:
        kept.add(b"a")
        kept.flush()
        assert kept.add_many([b"a", b"b"]) == [False, True]
        kept.discard()
        assert kept.add_many([b"a", b"b"]) == [False, True]
    with ExactSet(tmp_path / "set") as kept:
        assert (b"a" in kept, b"b" in kept, b"c" in kept) == (True, True, False)
