"""The power goes, the process is killed, the disk is full, or bytes change: at every write, for
everything that keeps a log. `make kills` (BLOOMTIDE_KILLS=100) leaves out no write."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bloomtide.durable.log import START, scan
from bloomtide.durable.policy import SYNCS, Sync
from bloomtide.errors import BloomtideError, JournalError, SnapshotError, StorageError
from tests.durable.faults import FailingDisk, PowerCut
from tests.durable.users import EVENTS, FIRST_HOUR, USERS, User

CUTS = 1000 if int(os.environ.get("BLOOMTIDE_KILLS", "0")) >= 100 else 45
"""Writes of a life at most at which it is ended."""
ROTATIONS = {3: 0, 6: 1, 10: 2}
"""Before which event the log goes on in a new file."""

pytestmark = pytest.mark.timeout(900 if CUTS > 100 else 120)
of_all_users = pytest.mark.parametrize("user", USERS.values(), ids=USERS)


@pytest.fixture(autouse=True)
def no_sync_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes are counted here, so none may come from a thread."""
    monkeypatch.setattr("bloomtide.durable.log.INTERVAL", 3600)


def live(user: type[User], path: Path, disk: FailingDisk, sync: Sync) -> int:
    """A life up to the end of the disk: how many events were acknowledged."""
    acknowledged = 0
    living = None
    try:
        living = user(path, disk, sync)
        for number in range(EVENTS):
            if number in ROTATIONS:
                living.rotate(ROTATIONS[number])
            living.add(number)
            acknowledged += 1
    except (PowerCut, BloomtideError):
        pass
    if living is not None:
        living.kill()
    return acknowledged


def ends(user: type[User], path: Path, sync: Sync, *, full: bool = False) -> Iterator[FailingDisk]:
    """Disks that end at one write each, spread over a whole life."""
    whole = FailingDisk()
    assert live(user, path, whole, sync) == EVENTS
    assert whole.steps > 30
    for number in range(0, whole.steps, whole.steps // CUTS + 1):
        yield FailingDisk(number, full=full)


def reopened(user: type[User], path: Path) -> User:
    return user(path, FailingDisk(), "always")


@contextmanager
def killing(user: type[User], path: Path) -> Iterator[User]:
    """A user that is open for a while and then killed."""
    again = reopened(user, path)
    try:
        yield again
    finally:
        again.kill()


def require(user: type[User], path: Path, acknowledged: int) -> None:
    """What was acknowledged is held once, what was begun at most once, and it goes on."""
    with killing(user, path) as again:
        held = again.held()
        assert held in (list(range(acknowledged)), list(range(min(acknowledged + 1, EVENTS))))
        assert not list(path.rglob("*.tmp"))
        for number in range(len(held), EVENTS):
            again.add(number)
    with killing(user, path) as again:
        assert again.held() == list(range(EVENTS))


@of_all_users
@pytest.mark.parametrize("keep_names", [False, True])
def test_a_power_cut_at_any_write_loses_nothing_that_was_acknowledged(
    tmp_path: Path, user: type[User], keep_names: bool
) -> None:
    for number, disk in enumerate(ends(user, tmp_path / "whole", "always")):
        path = tmp_path / str(number)
        acknowledged = live(user, path, disk, "always")
        disk.lose_power(keep_names=keep_names)
        require(user, path, acknowledged)


@of_all_users
@pytest.mark.parametrize("sync", SYNCS)
def test_a_kill_at_any_write_loses_nothing_that_was_acknowledged(
    tmp_path: Path, user: type[User], sync: Sync
) -> None:
    for number, disk in enumerate(ends(user, tmp_path / "whole", sync)):
        path = tmp_path / str(number)
        require(user, path, live(user, path, disk, sync))


@of_all_users
def test_a_full_disk_at_any_write_loses_nothing_that_was_acknowledged(
    tmp_path: Path, user: type[User]
) -> None:
    for number, disk in enumerate(ends(user, tmp_path / "whole", "always", full=True)):
        path = tmp_path / str(number)
        require(user, path, live(user, path, disk, "always"))


@of_all_users
@pytest.mark.parametrize("step", [0, 1], ids=["the write fails", "the sync fails"])
def test_the_first_failure_is_the_last_word(tmp_path: Path, user: type[User], step: int) -> None:
    disk = FailingDisk(full=True)
    one = user(tmp_path, disk, "always")
    one.add(0)
    disk.fail_in(step)
    for _ in range(2):
        with pytest.raises(StorageError, match="No space left"):
            one.add(1)
        disk.make_room()
    assert one.held()[:1] == [0], "what is there can still be asked for"
    one.kill()
    with killing(user, tmp_path) as again:
        assert again.held() in ([0], [0, 1])


def written(user: type[User], path: Path) -> tuple[Path, int, list[int]]:
    """A journal of the first hour, how long it was before, and where its records end."""
    one = user(path, FailingDisk(), "no")
    # That of a monitor, which is nearer, and not the one of its history.
    journal = min(path.rglob("journal-*"), key=lambda found: len(found.parts))
    begun = journal.stat().st_size
    for number in FIRST_HOUR:
        one.add(number)
    one.kill()
    found = scan(journal, user.kind, journal.read_bytes())
    return journal, begun, [found.end for _ in found]


@of_all_users
def test_a_torn_tail_is_cut_wherever_it_tore(tmp_path: Path, user: type[User]) -> None:
    journal, begun, record_ends = written(user, tmp_path)
    data = journal.read_bytes()
    before = 0
    for length in [*range(begun, len(data), 23), len(data)]:
        journal.write_bytes(data[:length] + bytes(length % 3 * 50))
        with killing(user, tmp_path) as again:
            held = again.held()
            assert held == FIRST_HOUR[: len(held)]
            assert len(held) >= before, "more of the file has no less"
            before = len(held)
        assert journal.stat().st_size == max([begun, *(e for e in record_ends if e <= length)])
    assert before == len(FIRST_HOUR)


@of_all_users
def test_damage_in_the_middle_is_named_with_its_place(tmp_path: Path, user: type[User]) -> None:
    journal, _, record_ends = written(user, tmp_path)
    data = journal.read_bytes()
    for at in range(0, record_ends[-2], 11):
        journal.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        if user.skips_damage and at >= START:
            with killing(user, tmp_path) as again:
                assert len(again.held()) == len(FIRST_HOUR) - 1, "all but the record that was hit"
            continue
        with pytest.raises((JournalError, SnapshotError)) as caught:
            reopened(user, tmp_path)
        assert caught.value.fields["path"] == str(journal)
        assert caught.value.fields["offset"] == max(e for e in [0, START, *record_ends] if e <= at)
