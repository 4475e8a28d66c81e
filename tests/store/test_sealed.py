"""`SealedSet`: whose set it is, and whether its file is as it was closed."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from bloomtide._core import crc32c
from bloomtide.errors import IncompatibleError, SnapshotError
from bloomtide.store import ExactSet
from bloomtide.store.sealed import SealedSet

OWNER = 0x424C4D58_00000007


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A sealed set of five hundred keys."""
    made = tmp_path / "set"
    SealedSet.make(made, OWNER)
    with SealedSet(made, OWNER) as kept:
        kept.add_many(b"%020d" % number for number in range(500))
    return made


def row(path: Path) -> tuple[int, int, int | None, int]:
    database = sqlite3.connect(path)
    found: tuple[int, int, int | None, int] = database.execute("SELECT * FROM seal").fetchone()
    database.close()
    return found


def test_it_is_an_exact_set_that_goes_on_and_is_sealed_again(path: Path) -> None:
    with SealedSet(path, OWNER) as kept:
        assert kept.add_many([b"%020d" % 7, b"new"]) == [False, True]
    with SealedSet(path, OWNER) as kept:
        assert len(kept) == 501
        assert b"new" in kept
    assert sorted(path.parent.iterdir()) == [path]


def test_the_seal_is_what_the_page_of_the_formats_says(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[24:28], data[92:100] = bytes(4), bytes(8)
    size = int.from_bytes(data[16:18], "big")
    database = sqlite3.connect(path)
    named = "SELECT rootpage FROM sqlite_master WHERE name = 'seal'"
    [page] = database.execute(named).fetchone()
    database.close()
    del data[(page - 1) * size : page * size]
    checksum = crc32c(data)
    assert row(path) == (OWNER, 500, checksum, crc32c(b"%d 500 %d" % (OWNER, checksum)))


def test_a_run_that_adds_nothing_leaves_the_file_as_it_is(path: Path) -> None:
    before = path.read_bytes()
    with SealedSet(path, OWNER) as kept:
        assert kept.add_many([b"%020d" % 7]) == [False]
    assert path.read_bytes() == before


def test_another_owner_and_a_key_of_another_program_are_refused(path: Path) -> None:
    with pytest.raises(IncompatibleError, match="another owner"):
        SealedSet(path, OWNER + 1)
    with ExactSet(path) as other:
        other.add(b"strange")
    with pytest.raises(SnapshotError, match="another program changed it"):
        SealedSet(path, OWNER)


def test_the_seal_is_broken_by_the_commit_that_adds_keys(path: Path) -> None:
    kept = SealedSet(path, OWNER)
    kept.add(b"new")
    assert row(path)[2] is not None
    kept.flush()
    assert row(path) == (OWNER, 501, None, crc32c(b"%d 501 -" % OWNER))
    kept.close()
    assert row(path)[2] is not None


def test_a_reader_that_holds_up_the_journal_makes_no_set_a_damaged_one(path: Path) -> None:
    reader = sqlite3.connect(path)
    assert reader.execute("SELECT count(*) FROM keys").fetchone() == (500,)
    with SealedSet(path, OWNER) as kept:
        kept.add(b"new")
    assert row(path)[2] is None
    reader.close()
    with SealedSet(path, OWNER) as kept:
        assert len(kept) == 501
        kept.add(b"another")
    assert row(path)[2] is not None
