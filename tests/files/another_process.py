"""Runs a function in a fresh Python process: the honest way to test limits, rights and crashes.

A process can lower its own limits or rights for good, and can be killed; the test's own cannot.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any

# Fork would copy the test's threads' locks and its open filters; spawn starts clean.
SPAWN = multiprocessing.get_context("spawn")
PATIENCE = 20.0


class Worker:
    """A process running `task(connection, *arguments)`; `hear`, `tell` and `ask` talk to it."""

    context: BaseContext = SPAWN

    def __init__(self, task: Callable[..., None], *arguments: Any) -> None:
        self._pipe, theirs = self.context.Pipe()
        # A daemon dies with the tests, so that a failed test leaves nothing running behind it.
        arguments = (theirs, *arguments)
        make: Any = self.context.Process  # type: ignore[attr-defined]
        self.process: BaseProcess = make(target=task, args=arguments, daemon=True)
        self.process.start()
        theirs.close()

    def hear(self) -> Any:
        """What the worker sent next; a worker that died or hangs fails the test."""
        if not self._pipe.poll(PATIENCE):
            raise TimeoutError("the other process said nothing")
        return self._pipe.recv()

    def ready(self) -> bool:
        """Whether `hear` has something to hear."""
        return self._pipe.poll(0)

    def tell(self, message: object) -> None:
        self._pipe.send(message)

    def ask(self, message: object) -> Any:
        self.tell(message)
        return self.hear()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exc: object) -> None:
        self._pipe.close()
        if exc[0] is not None:
            self.process.kill()
        self.process.join(PATIENCE)
        assert self.process.exitcode is not None, "the other process hangs"
        if exc[0] is None:
            assert self.process.exitcode == 0


def _report(pipe: Connection, task: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        answer = task(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is, the test judges it
        answer = error
    pipe.send(answer)


def run(task: Callable[..., Any], *arguments: Any) -> Any:
    """What `task(*arguments)` returned, or the exception it raised, in another process."""
    with Worker(_report, task, arguments) as worker:
        return worker.hear()
