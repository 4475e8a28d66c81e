"""Writers, readers and builders all at once: no committed key is called absent, by anybody."""

from __future__ import annotations

import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from sqlalchemy import select

from bloomtide import DatabaseGuard
from tests.guard.databases import BASKET, Database
from tests.guard.load import NEVER, Load, connect
from tests.guard.processes import Process

PROCESSES = 4


def judge(load: Load) -> None:
    assert load.errors == []
    assert load.wrong == []
    assert load.avoided > 0, "the guard never said anything"


@pytest.mark.parametrize("shared", [False, True])
def test_eight_threads_never_hear_a_wrong_absent(
    basket: Database, tmp_path: Path, shared: bool
) -> None:
    engine = connect(basket.url)
    directory = tmp_path / "guard" if shared else None
    with DatabaseGuard(engine, BASKET.c.customer, 1e-4, shared=directory) as guard:
        guard.build()
        load = Load(guard, 0)
        load.start(writers=4, readers=3, builders=1)
        load.finish()
        judge(load)
        assert guard.stats().rebuilds > 1, "there were rebuilds under load"
        guard.build()
        assert not guard.may_exist(NEVER)
        load.look_at_all()
        judge(load)
    engine.dispose()


def test_strangers_at_work_are_known_after_catching_up_whatever_is_rebuilt_meanwhile(
    basket: Database,
) -> None:
    engine, theirs = connect(basket.url), connect(basket.url)
    with (
        DatabaseGuard(engine, BASKET.c.customer, 1e-4, outbox="20ms") as guard,
        DatabaseGuard(theirs, BASKET.c.customer, 1e-4) as unused,
    ):
        guard.build()
        load = Load(unused, 0)
        load.start(writers=3)
        rounds = 0
        while load.is_writing() or rounds < 3:
            with theirs.connect() as connection:
                keys = connection.execute(select(BASKET.c.customer)).scalars().all()
            guard.catch_up()
            assert [key for key in keys if not guard.may_exist(key)] == []
            rounds += 1
            if rounds % 3 == 0:
                guard.build()
        load.finish()
        assert load.errors == []
        guard.build()
        assert not guard.may_exist(NEVER)
    engine.dispose()
    theirs.dispose()


def _work(pipe: Connection, url: str, directory: Path, writer: int) -> None:
    """One web process: threads that write and read, and one that builds."""
    engine = connect(url)
    guard = DatabaseGuard(engine, BASKET.c.customer, 1e-4, shared=directory)
    guard.build()
    load = Load(guard, writer)
    pipe.send("ready")
    pipe.recv()
    load.start(writers=1, readers=1, builders=1 if writer % 2 == 0 else 0)
    pipe.send("working")
    load.finish()
    pipe.send((load.wrong, load.errors, load.avoided))
    pipe.recv()
    guard.close()


def test_four_processes_never_hear_a_wrong_absent_though_one_is_killed_and_comes_again(
    basket: Database, tmp_path: Path
) -> None:
    # Once here, since SQLite changes to WAL without waiting for others who change to it too.
    engine = connect(basket.url)
    engine.connect().close()
    engine.dispose()
    arguments = (basket.url, tmp_path / "guard")
    workers = [Process(_work, *arguments, number) for number in range(PROCESSES)]
    for worker in workers:
        assert worker.hear() == "ready"
    for worker in workers:
        worker.tell("go")
    for worker in workers:
        assert worker.hear() == "working"
    victim = workers.pop(0)  # one that builds
    os.kill(victim.process.pid or 0, signal.SIGKILL)
    victim.process.join()
    workers.append(Process(_work, *arguments, PROCESSES))
    assert workers[-1].hear() == "ready", "whatever lock the victim had"
    workers[-1].tell("go")
    assert workers[-1].hear() == "working"
    avoided = 0
    for worker in workers:
        wrong, errors, silent = worker.hear()
        assert (wrong, errors) == ([], [])
        avoided += silent
    assert avoided > 0, "the guards never said anything"
    # A process that only looks finds the filter that the others have built.
    with DatabaseGuard(
        connect(basket.url), BASKET.c.customer, 1e-4, shared=tmp_path / "guard"
    ) as guard:
        guard.build()
        load = Load(guard, PROCESSES + 1)
        load.look_at_all()
        assert load.wrong == []
        guard.engine.dispose()
    for worker in workers:
        with worker:
            worker.tell("end")


def test_after_all_processes_were_killed_the_next_one_builds_before_it_answers(
    basket: Database, tmp_path: Path
) -> None:
    worker = Process(_work, basket.url, tmp_path / "guard", 0)
    assert worker.hear() == "ready"
    worker.tell("go")
    assert worker.hear() == "working"
    os.kill(worker.process.pid or 0, signal.SIGKILL)
    worker.process.join()
    engine = connect(basket.url)
    with DatabaseGuard(engine, BASKET.c.customer, 1e-4, shared=tmp_path / "guard") as guard:
        basket.insert([77])  # while nobody was looking
        assert guard.may_exist(NEVER)
        guard.build()
        assert guard.may_exist(77)
        assert not guard.may_exist(NEVER)
        load = Load(guard, 1)
        load.look_at_all()
        assert load.wrong == []
    engine.dispose()
