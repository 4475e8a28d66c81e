"""Another process with a guard of its own on the same shared filter, which may be killed.

It is forked from a server that has imported everything, so it costs some hundredths of a second.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
from pathlib import Path

from benchmarks.guard_histories.ground import Ground, open_engine
from benchmarks.guard_histories.play import Play, quiet
from benchmarks.guard_histories.schema import Mapping
from benchmarks.guard_histories.steps import History, Step

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["benchmarks.guard_histories.draw"])
SECONDS = 20


class Beside(Play):
    """The same tables, engine and options in another process."""

    def __init__(self, history: History, ground: Ground, place: str) -> None:
        super().__init__(history, ground)
        self.engine = open_engine(history.schema, place)
        self.judge = open_engine(history.schema, place)
        self.mapping = Mapping(history.schema, self.judge)
        self.pair = False


def work(
    history: History, ground: Ground, place: str, folder: Path, steps: tuple[Step, ...], end: str
) -> None:
    """What the other process does: writes, and commits or dies."""
    logging.disable(logging.CRITICAL)
    ground.shared_at = folder
    with quiet():
        play = Beside(history, ground, place)
        play.make_guard()
        play.guard.build()
        for step in steps:
            play.do(step)
        if end == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        slot = play.slot("c")
        if end == "rollback":
            slot.rollback()
        else:
            slot.commit()
        if end == "killed after":
            os.kill(os.getpid(), signal.SIGKILL)
        play.guard.close()


def run(play: Play, steps: tuple[Step, ...], end: str) -> None:
    """Starts the process and waits for its end, as its build waits for open transactions."""
    if any(slot.busy for slot in play.slots.values()):
        return
    words = (play.history, play.ground.copy(), play.ground.place, play.shared_at, steps, end)
    process = CONTEXT.Process(target=work, args=words)
    process.start()
    process.join(SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
        raise TimeoutError("the other process did not end")
