"""A ledger gives back what was synced, once and in order, whatever happens to its disk."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomtide.durable.log import START
from bloomtide.errors import (
    ClosedError,
    JournalError,
    LockedError,
    ParameterError,
    SnapshotError,
    StorageError,
)
from bloomtide.store import Ledger, repair
from bloomtide.system import fork
from tests.durable.faults import FailingDisk

OVERHEAD = 20
"""Bytes of a record besides its payload."""
PAYLOADS = [b"first", b"", b"x" * 40, b"\0" * 9, b"last"]


class Owner:
    """Holds a list of payloads, by a ledger: the simplest state that shows order and doubling."""

    def __init__(self, path: Path, disk: FailingDisk | None = None) -> None:
        self.disk = disk or FailingDisk()
        self.ledger = Ledger.open(path, sync="always", disk=self.disk)
        self.held: list[bytes] = []
        if (snapshot := self.ledger.snapshot) is not None:
            lines = (snapshot / "state").read_text().splitlines()
            self.held = [bytes.fromhex(line) for line in lines]
        self.held += [payload for _, payload in self.ledger.replay()]

    def append(self, payload: bytes) -> None:
        self.ledger.append(payload)
        self.held.append(payload)

    def write(self, directory: Path) -> None:
        """Not brought to the disk here: that is the ledger's part."""
        path = directory / "state"
        handle = self.disk.create(path)
        self.disk.append(handle, path, "".join(f"{x.hex()}\n" for x in self.held).encode())
        os.close(handle)

    def rewrite(self) -> None:
        self.ledger.rewrite(self.write)

    def die(self) -> None:
        """As if the process were gone: nothing is written, the kernel takes the lock back."""
        self.ledger._lock.release()


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A directory with one journal of five records."""
    path = tmp_path / "small"
    with Ledger.open(path, disk=FailingDisk()) as ledger:
        for payload in PAYLOADS:
            ledger.append(payload)
    return path


def journal_in(path: Path) -> Path:
    [found] = path.glob("journal-????????????????????")
    return found


def payloads_in(path: Path) -> list[bytes]:
    with Ledger.open(path, disk=FailingDisk()) as ledger:
        found = list(ledger.replay())
        assert [number for number, _ in found] == list(range(1, len(found) + 1))
        assert ledger.sequence == len(found)
        return [payload for _, payload in found]


def ends() -> list[int]:
    """Where the records of the small journal end."""
    found, offset = [], START
    for payload in PAYLOADS:
        offset += OVERHEAD + len(payload)
        found.append(offset)
    return found


# --- what was synced is there, once and in order --------------------------------------------------


@given(
    work=st.lists(
        st.one_of(st.binary(max_size=60), st.sampled_from(["rewrite", "child", "reopen", "fail"])),
        max_size=25,
    )
)
def test_what_was_synced_is_replayed_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, work: list[bytes | str]
) -> None:
    path = tmp_path_factory.mktemp("ledger")
    owner, truth = Owner(path), []
    for step in work:
        if isinstance(step, bytes):
            owner.append(step)
            truth.append(step)
        elif step == "rewrite":
            owner.rewrite()
        elif step == "child":
            rewriting = owner.ledger.rewrite_in_child(owner.write)
            owner.append(b"while the child writes")
            truth.append(b"while the child writes")
            rewriting.wait()
        elif step == "fail":
            with pytest.raises(ZeroDivisionError):
                owner.ledger.rewrite(lambda _: 1 // 0)
        else:
            owner.ledger.close()
            owner = Owner(path)
        assert owner.held == truth
        assert owner.ledger.sequence == len(truth)
    owner.ledger.close()
    assert Owner(path).held == truth


def test_bytes_are_those_of_the_journals(tmp_path: Path) -> None:
    owner = Owner(tmp_path)
    for round_ in range(3):
        owner.append(b"payload")
        owner.append(b"x" * round_)
        assert owner.ledger.bytes == sum(f.stat().st_size for f in tmp_path.glob("journal-*"))
        owner.rewrite()
        assert owner.ledger.bytes == START


# --- damage ---------------------------------------------------------------------------------------


def test_a_tail_of_zeros_is_torn(small: Path) -> None:
    """Some file systems lengthen a file before they write what is in it."""
    journal = journal_in(small)
    journal.write_bytes(journal.read_bytes() + bytes(5000))
    with Ledger.open(small, disk=FailingDisk()) as ledger:
        assert ledger.cut == 5000
    assert payloads_in(small) == PAYLOADS


def test_a_record_that_comes_twice_is_refused(small: Path) -> None:
    journal = journal_in(small)
    data = journal.read_bytes()
    last = data[ends()[-2] :]
    journal.write_bytes(data + last)
    with pytest.raises(JournalError, match="not sound"):
        Ledger.open(small, disk=FailingDisk())


def test_missing_files_are_refused_by_name(small: Path) -> None:
    journal = journal_in(small)
    journal.rename(small / "elsewhere")
    with pytest.raises(JournalError, match="is missing"):
        Ledger.open(small, disk=FailingDisk())
    (small / "elsewhere").rename(journal)
    (small / "manifest").rename(small / "gone")
    with pytest.raises(JournalError, match="no manifest"):
        Ledger.open(small, disk=FailingDisk())
    assert journal.stat().st_size == ends()[-1]


def test_a_missing_snapshot_is_refused(tmp_path: Path) -> None:
    owner = Owner(tmp_path)
    owner.append(b"x")
    owner.rewrite()
    owner.ledger.close()
    assert owner.ledger.snapshot is not None
    shutil.rmtree(owner.ledger.snapshot)
    with pytest.raises(JournalError, match="is missing"):
        Ledger.open(tmp_path)


def test_a_manifest_changed_anywhere_is_refused(small: Path) -> None:
    manifest = small / "manifest"
    data = manifest.read_bytes()
    for offset in range(len(data)):
        manifest.write_bytes(data[:offset] + bytes([data[offset] ^ 1]) + data[offset + 1 :])
        with pytest.raises(SnapshotError, match="manifest") as caught:
            Ledger.open(small, disk=FailingDisk())
        assert "restore" in caught.value.hint


def test_repair_cuts_at_the_damage_and_keeps_what_it_cut(small: Path) -> None:
    journal = journal_in(small)
    data = journal.read_bytes()
    begins = [START, *ends()[:-1]]
    for record, begin in enumerate(begins[:-1]):
        journal.write_bytes(data[: begin + 3] + b"?" + data[begin + 4 :])
        report = repair(small)
        assert (report.sequence, report.offset) == (record, begin)
        assert report.bytes_cut == len(data) - begin
        [kept] = report.kept
        assert Path(kept).read_bytes() == data[begin : begin + 3] + b"?" + data[begin + 4 :]
        assert payloads_in(small) == PAYLOADS[:record]
        assert Path(kept).exists(), "opening removed what repair kept"
    # The start of the file itself: nothing of it is left, and it can be written again.
    journal.write_bytes(b"?" + data[1:])
    assert repair(small).sequence == 0
    assert payloads_in(small) == []
    assert repair(small).bytes_cut == 0


def test_repair_of_a_file_in_the_middle_also_cuts_those_behind_it(tmp_path: Path) -> None:
    owner = Owner(tmp_path)
    for number in range(2):
        owner.append(b"%d" % number)
        with pytest.raises(ZeroDivisionError):
            owner.ledger.rewrite(lambda _: 1 // 0)
    owner.append(b"2")
    owner.ledger.close()
    _, middle, last = sorted(tmp_path.glob("journal-*"))
    middle.write_bytes(middle.read_bytes()[:-1])
    with pytest.raises(JournalError, match="not sound"):
        Ledger.open(tmp_path)
    report = repair(tmp_path)
    assert report.sequence == 1
    assert [Path(kept).name for kept in report.kept] == [
        f"{middle.name}.cut-{START}",
        f"{last.name}.cut-0",
    ]
    assert Owner(tmp_path).held == [b"0"]


# --- failing --------------------------------------------------------------------------------------


def test_a_ledger_that_failed_makes_no_snapshot_and_all_can_be_read(tmp_path: Path) -> None:
    owner = Owner(tmp_path)
    owner.append(b"safe")
    owner.disk.full = True
    owner.disk.fail_in(1)
    with pytest.raises(JournalError, match="takes no more records"):
        owner.ledger.append(b"unsure")
    owner.disk.make_room()
    for refused in (owner.ledger.sync, owner.rewrite):
        with pytest.raises(JournalError, match="No space left") as caught:
            refused()
        assert caught.value.offset is None
    assert [payload for _, payload in owner.ledger.replay()] == [b"safe", b"unsure"]
    owner.ledger.close()


def test_a_second_writer_is_refused_with_the_process_id(tmp_path: Path) -> None:
    with Ledger.open(tmp_path), pytest.raises(LockedError) as caught:
        Ledger.open(tmp_path)
    assert caught.value.pid == os.getpid()
    with pytest.raises(LockedError), Ledger.open(tmp_path):
        repair(tmp_path)


def test_a_forked_process_changes_nothing(tmp_path: Path) -> None:
    with Ledger.open(tmp_path, sync="no", disk=FailingDisk()) as ledger:
        ledger.append(b"x")
        if (pid := fork()) == 0:
            code = 1
            try:
                ledger.append(b"y")
            except ClosedError:
                ledger.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0
        ledger.append(b"z")
        with pytest.raises(LockedError):
            Ledger.open(tmp_path)
    assert payloads_in(tmp_path) == [b"x", b"z"]


def test_a_closed_ledger_takes_nothing(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    ledger.close()
    ledger.close()
    with pytest.raises(ClosedError):
        ledger.append(b"x")
    with pytest.raises(ParameterError):
        Ledger.open(tmp_path, sync="sometimes")  # type: ignore[arg-type]


# --- the child ------------------------------------------------------------------------------------


def test_the_child_sees_the_moment_of_the_fork(tmp_path: Path) -> None:
    owner = Owner(tmp_path)
    owner.append(b"before")
    rewriting = owner.ledger.rewrite_in_child(owner.write)
    owner.append(b"after")
    with pytest.raises(StorageError, match="going on already"):
        owner.rewrite()
    rewriting.wait()
    assert rewriting.poll()
    assert owner.ledger.snapshot is not None
    assert (owner.ledger.snapshot / "state").read_text() == b"before".hex() + "\n"
    assert [payload for _, payload in owner.ledger.replay()] == [b"after"]


def test_the_child_holds_no_lock_and_no_socket_of_its_parent(tmp_path: Path) -> None:
    """Else a server that comes back after a kill would find its port and its directory taken."""
    owner = Owner(tmp_path)

    def look(_: Path) -> None:
        for number in range(3, 256):
            with contextlib.suppress(FileNotFoundError):
                name = str(Path(f"/proc/self/fd/{number}").readlink())
                assert "socket:" not in name, name
                assert not name.endswith("/lock"), name

    with socket.create_server(("127.0.0.1", 0)):
        owner.ledger.rewrite_in_child(look).wait()


def test_a_child_that_fails_tells_why_and_changes_nothing(tmp_path: Path) -> None:
    owner = Owner(tmp_path)
    owner.append(b"before")

    def fail(directory: Path) -> None:
        owner.write(directory)
        raise RuntimeError("no room for this")

    with pytest.raises(StorageError, match="no room for this"):
        owner.ledger.rewrite_in_child(fail).wait()
    assert not list(tmp_path.glob("snapshot-*"))
    owner.append(b"after")
    owner.ledger.close()
    assert Owner(tmp_path).held == [b"before", b"after"]


def test_a_child_that_is_killed_or_cancelled_leaves_nothing(tmp_path: Path) -> None:
    owner = Owner(tmp_path)
    owner.append(b"before")

    def die(directory: Path) -> None:
        owner.write(directory)
        os.kill(os.getpid(), signal.SIGKILL)

    def wait(directory: Path) -> None:
        owner.write(directory)
        signal.pause()

    with pytest.raises(StorageError, match="ended with"):
        owner.ledger.rewrite_in_child(die).wait()
    owner.ledger.rewrite_in_child(wait)
    owner.ledger.close()
    assert not list(tmp_path.glob("snapshot-*"))
    assert Owner(tmp_path).held == [b"before"]
