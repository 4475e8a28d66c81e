"""Processes that share keys come, go, fork and die; none of it makes an answer wrong."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from bloomtide.guard.filter.keys import KeyFilter
from bloomtide.guard.stats import State
from tests.guard.neighbours import SUBJECT, Pair, says_absent
from tests.guard.processes import Process
from tests.guard.test_key_filter import ABSENT, KEYS, scan_of


def test_the_first_to_come_trusts_nothing_it_finds(attach: Callable[[], KeyFilter]) -> None:
    keys = attach()
    keys.rebuild(scan_of(KEYS))
    neighbour = attach()
    keys.detach()
    assert not neighbour.may_exist(ABSENT), "somebody is there still"
    assert neighbour.may_exist_many(KEYS).all()
    neighbour.detach()
    assert attach().may_exist(ABSENT), "nobody was"


def test_who_went_lets_everything_pass_and_disturbs_nobody(pair: Pair) -> None:
    transaction = pair[0].begin()
    transaction.write(["open"])
    pair[0].detach()
    assert pair[0].may_exist(ABSENT)
    pair[0].committing(transaction)
    transaction.end()
    pair[0].distrust("too late")
    pair[0].add_many(["nowhere"])
    assert not pair[1].may_exist(ABSENT)
    assert pair[1].rebuild(scan_of(KEYS))


def _die(pipe: Connection, directory: Path, where: str) -> None:
    keys = KeyFilter(1e-6, shared=directory, subject=SUBJECT)
    transaction = keys.begin()

    def tell() -> None:
        pipe.send("there")
        pipe.recv()

    if where == "attached":
        tell()
    elif where == "committing":
        transaction.write(["dying"])
        keys.committing(transaction)
        tell()
    elif where == "building":
        keys.rebuild(scan_of([], tell))
    elif where == "alone":
        keys.rebuild(scan_of(KEYS))
        tell()


@pytest.mark.parametrize("where", ["attached", "committing", "building"])
def test_a_process_that_is_killed_leaves_no_lock(pair: Pair, tmp_path: Path, where: str) -> None:
    worker = Process(_die, tmp_path / "guard", where)
    assert worker.hear() == "there"
    os.kill(worker.process.pid or 0, signal.SIGKILL)
    worker.process.join()
    for keys in pair:
        assert keys.may_exist_many(KEYS).all()
    assert pair[0].rebuild(scan_of(KEYS))
    assert says_absent(*pair) == [True, True]
    assert not pair[1].stats().rebuilding


def test_after_all_were_killed_nothing_is_trusted(
    tmp_path: Path, attach: Callable[[], KeyFilter]
) -> None:
    worker = Process(_die, tmp_path / "guard", "alone")
    assert worker.hear() == "there"
    neighbour = attach()
    assert not neighbour.may_exist(ABSENT)
    neighbour.detach()
    worker.process.kill()
    worker.process.join()
    keys = attach()
    assert keys.may_exist(ABSENT)
    assert keys.state is State.UNKNOWN


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_adds_and_sees_as_any_other_process(pair: Pair) -> None:
    _, neighbour = pair
    inside = neighbour.begin()
    inside.write(["parent's"])
    neighbour.committing(inside)
    to_parent, from_child = os.pipe()
    child = os.fork()
    if not child:
        passed = b"no"
        try:
            transaction = neighbour.begin()
            transaction.write(["child's"])
            neighbour.committing(transaction)
            transaction.end()
            if not neighbour.may_exist(ABSENT) and neighbour.may_exist("parent's"):
                passed = b"yes"
        finally:
            os.write(from_child, passed)
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(to_parent, 10) == b"yes"
    os.close(to_parent)
    os.close(from_child)
    assert neighbour.may_exist("child's")
    assert not neighbour.may_exist(ABSENT)
    inside.end()
    assert pair[0].rebuild(scan_of(KEYS)), "the child took no lock of its parent along"
