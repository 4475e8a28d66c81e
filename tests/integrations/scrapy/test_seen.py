"""What was added is seen after any end; damage makes a page new, and never seen."""

from __future__ import annotations

import os
from hashlib import sha1
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bloomtide import BloomFilter
from bloomtide.durable.log import START
from bloomtide.errors import (
    IncompatibleError,
    JournalError,
    LockedError,
    NotASnapshotError,
    SnapshotError,
    StorageError,
)
from bloomtide.integrations.scrapy import seen as module
from bloomtide.integrations.scrapy.options import Options
from bloomtide.integrations.scrapy.seen import Seen
from tests.durable.faults import FailingDisk
from tests.durable.users import kill_ledger

MODES = {
    "plain": Options(capacity=1000),
    "exact": Options(capacity=1000, verify=True, error_rate=0.01),
    "revisit": Options(capacity=1000, revisit=3600.0),
    "revisit and exact": Options(capacity=1000, revisit=3600.0, verify=True),
}


def key(number: int) -> bytes:
    return sha1(b"%d" % number).digest()


def killed(seen: Seen) -> None:
    """Lets go of the files as the system does for a killed process: nothing is saved."""
    assert seen._ledger is not None
    kill_ledger(seen._ledger)
    if seen._exact is not None:
        seen._exact._database.rollback()
        seen._exact._database.close()


def filled(options: Options, path: Path, keys: range, **words: Any) -> Seen:
    seen = Seen(options, path, **words)
    for number in keys:
        assert key(number) not in seen
        assert seen.add(key(number))
    return seen


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("end", [killed, Seen.close])
def test_what_was_added_is_seen_after_any_end(tmp_path: Path, mode: str, end: Any) -> None:
    for first in (0, 300, 600):
        seen = filled(MODES[mode], tmp_path, range(first, first + 300))
        assert seen.replayed == (first if end is killed else 0)
        end(seen)
    seen = Seen(MODES[mode], tmp_path)
    assert all(key(number) in seen for number in range(900))
    assert not any(key(number) in seen for number in range(900, 1900))
    seen.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_long_log_becomes_a_snapshot(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LEAST_LOG", 4800)
    seen = filled(MODES[mode], tmp_path, range(1000))
    assert seen.snapshots >= 2
    assert seen._ledger is not None
    assert seen._ledger.bytes < 48_000
    killed(seen)
    seen = Seen(MODES[mode], tmp_path)
    assert seen.replayed < 1000
    assert all(key(number) in seen for number in range(1000))
    seen.close()


def journal_in(path: Path) -> Path:
    [found] = (path / "seen").glob("journal-*")
    return found


def test_a_damaged_record_is_skipped_and_its_page_is_new(tmp_path: Path) -> None:
    killed(filled(MODES["plain"], tmp_path, range(10)))
    journal = journal_in(tmp_path)
    data = bytearray(journal.read_bytes())
    data[START + 48 * 3 + 30] ^= 1  # in the fourth record
    journal.write_bytes(data)
    for _ in range(2):
        seen = Seen(MODES["plain"], tmp_path)
        assert seen.damaged_records == 1
        assert [number for number in range(10) if key(number) not in seen] == [3]
        killed(seen)
    seen = Seen(MODES["plain"], tmp_path)
    assert seen.add(key(3))
    seen.close()
    again = Seen(MODES["plain"], tmp_path)
    assert again.damaged_records == 0, "a snapshot takes the place of a damaged log"
    assert all(key(number) in again for number in range(10))
    again.close()


def test_zeros_behind_the_log_are_no_pages(tmp_path: Path) -> None:
    killed(filled(MODES["plain"], tmp_path, range(5)))
    with journal_in(tmp_path).open("ab") as file:
        file.write(bytes(320))
    seen = Seen(MODES["plain"], tmp_path)
    assert seen.damaged_records == 0, "a torn tail"
    assert bytes(20) not in seen
    assert seen.replayed == 5
    seen.close()


def test_a_foreign_log_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    killed(filled(MODES["plain"], tmp_path, range(5)))
    journal = journal_in(tmp_path)
    journal.write_bytes(b"http://example.org/\n" * 9)
    with pytest.raises(JournalError, match="journal-"):
        Seen(MODES["plain"], tmp_path)
    assert journal.read_bytes() == b"http://example.org/\n" * 9


def snapshot_in(path: Path) -> Path:
    [found] = (path / "seen").glob("snapshot-*")
    return found / "seen.bloom"


@pytest.mark.parametrize("mode", ["plain", "revisit", "revisit and exact"])
def test_a_damaged_snapshot_is_refused_with_what_to_do(tmp_path: Path, mode: str) -> None:
    filled(MODES[mode], tmp_path, range(100)).close()
    path = snapshot_in(tmp_path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(SnapshotError, match="remove"):
        Seen(MODES[mode], tmp_path)
    assert path.read_bytes() == data


def test_the_set_on_disk_makes_a_damaged_or_missing_snapshot_again(tmp_path: Path) -> None:
    filled(MODES["exact"], tmp_path, range(100)).close()
    for damage in (b"x", b"BLOOMTID", None):
        path = snapshot_in(tmp_path)
        path.unlink()
        if damage is not None:
            path.write_bytes(damage)
        seen = Seen(MODES["exact"], tmp_path)
        assert all(key(number) in seen for number in range(100))
        assert key(100) not in seen
        seen.close()


def test_a_damaged_set_is_refused(tmp_path: Path) -> None:
    filled(MODES["exact"], tmp_path, range(100)).close()
    (tmp_path / "exact.sqlite").write_bytes(b"not a database" * 500)
    with pytest.raises(SnapshotError, match=r"exact\.sqlite"):
        Seen(MODES["exact"], tmp_path)
    # Nothing stayed open: the crawl can go on when the file is back.
    (tmp_path / "exact.sqlite").unlink()
    Seen(MODES["exact"], tmp_path).close()


def test_with_the_set_on_disk_no_page_is_lost_however_bad_the_filter(tmp_path: Path) -> None:
    bad = Options(capacity=1000, error_rate=0.5, verify=True)
    seen = filled(bad, tmp_path, range(3000))  # `filled` asserts that each is new
    assert seen.rescued > 200
    assert all(key(number) in seen for number in range(3000))
    seen.close()


def test_without_the_set_a_bad_filter_loses_pages(tmp_path: Path) -> None:
    seen = Seen(Options(capacity=1000, error_rate=0.5), tmp_path)
    lost = 0
    for number in range(3000):
        lost += key(number) in seen
        seen.add(key(number))
    assert lost > 200
    seen.close()


@pytest.mark.parametrize("mode", ["revisit", "revisit and exact"])
def test_a_page_is_new_again_after_the_time_though_linked_meanwhile(
    tmp_path: Path, mode: str
) -> None:
    now = [1e9]
    fetched = []
    for minute in range(0, 300, 10):
        now[0] = 1e9 + minute * 60
        seen = Seen(MODES[mode], tmp_path, clock=lambda: now[0])
        if key(1) not in seen:
            fetched.append(minute)
            seen.add(key(1))
        killed(seen)
    assert len(fetched) >= 4
    assert all(60 <= later - sooner <= 80 for sooner, later in pairwise(fetched))


def test_without_a_job_directory_nothing_is_left_behind(tmp_path: Path) -> None:
    seen = Seen(MODES["exact"], None)
    assert seen.add(key(1))
    assert key(1) in seen
    temporary = seen._temporary
    assert temporary is not None
    seen.close()
    assert not Path(temporary.name).exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ("plain", "exact", "BLOOMTIDE_VERIFY"),
        ("exact", "plain", "BLOOMTIDE_VERIFY"),
        ("plain", "revisit", "BLOOMTIDE_REVISIT"),
    ],
)
def test_a_job_goes_on_as_it_was_begun(tmp_path: Path, before: str, after: str, name: str) -> None:
    filled(MODES[before], tmp_path, range(5)).close()
    with pytest.raises(IncompatibleError, match=name) as caught:
        Seen(MODES[after], tmp_path)
    assert caught.value.field == name
    (tmp_path / "job.json").write_text("[")
    with pytest.raises(SnapshotError, match=r"job\.json"):
        Seen(MODES[before], tmp_path)


def test_two_crawls_cannot_use_one_job_directory(tmp_path: Path) -> None:
    first = Seen(MODES["plain"], tmp_path)
    with pytest.raises(LockedError) as caught:
        Seen(MODES["plain"], tmp_path)
    assert caught.value.pid == os.getpid()
    first.close()
    Seen(MODES["plain"], tmp_path).close()


def test_two_crawls_share_a_filter(tmp_path: Path) -> None:
    options = Options(capacity=1000, shared=tmp_path / "shared.bloom")
    one, other = Seen(options, None), Seen(options, tmp_path / "job")
    assert one.add(key(1))
    assert key(1) in other
    assert not other.add(key(1)), "the other was faster"
    one.close()
    other.add(key(2))
    other.close()
    again = Seen(options, None)
    assert key(1) in again
    assert key(2) in again
    again.close()


def test_a_shared_file_has_the_size_it_was_made_with(tmp_path: Path) -> None:
    path = tmp_path / "shared.bloom"
    BloomFilter(5000, 0.01).save(path)
    Seen(Options(shared=path), None).close()  # nothing was stated
    Seen(Options(shared=path, capacity=5000, stated=frozenset({"capacity"})), None).close()
    with pytest.raises(IncompatibleError, match="BLOOMTIDE_CAPACITY") as caught:
        Seen(Options(shared=path, capacity=6000, stated=frozenset({"capacity"})), None)
    assert caught.value.field == "BLOOMTIDE_CAPACITY"
    path.write_bytes(b"something else")
    with pytest.raises(NotASnapshotError):
        Seen(Options(shared=path), None)
    assert path.read_bytes() == b"something else"


@pytest.mark.parametrize("mode", ["plain", "exact"])
def test_a_page_that_the_disk_refuses_is_not_seen(tmp_path: Path, mode: str) -> None:
    disk = FailingDisk(full=True)
    seen = Seen(MODES[mode], tmp_path, disk=disk)
    disk.fail_in(0)
    for _ in range(2):
        with pytest.raises(StorageError, match="No space left"):
            seen.add(key(1))
        disk.make_room()
    assert key(1) not in seen
    killed(seen)
    seen = Seen(MODES[mode], tmp_path)
    assert key(1) not in seen
    assert seen.add(key(1))
    seen.close()
