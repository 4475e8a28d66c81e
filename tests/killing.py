"""Commands of `bloomtide` that are killed at a chosen step: `python -m tests.killing`.

One process imports everything and forks a child for each command, so that a kill costs no start.
A step is one operation on the store's files, or one piece of a log; the child gets SIGKILL before
it, or in the middle of a write. Reads a command a line as JSON, and answers with the exit status.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[1]
STEPS = ("append", "rename", "unlink", "commit", "reopen", "create")
"""Operations of a `Disk` that change something; syncs do nothing to a killed process."""


class Killable:
    """Runs commands one after another, in a process beside this one."""

    def __enter__(self) -> Self:
        places = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.killing"], text=True, cwd=ROOT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(places)},
        )  # fmt: skip
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def run(self, *arguments: str | Path, kill_at: int | None = None, broken: bool = False) -> int:
        """The exit code; negative if it was killed. `broken` stores positions after events."""
        self.start(*arguments, kill_at=kill_at, broken=broken)
        return self.wait()

    def start(
        self, *arguments: str | Path, kill_at: int | None = None, broken: bool = False
    ) -> int:
        """The same without waiting; answers the number of the process."""
        assert self._process.stdin is not None
        words = [str(each) for each in arguments]
        command = {"arguments": words, "kill_at": kill_at, "broken": broken}
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def wait(self) -> int:
        """How it ended."""
        return self._answer()

    def _answer(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


def kill_at(step: int) -> None:
    """Kills this process at that step from now on."""
    from bloomtide.cli.log_counts import LogCounts
    from bloomtide.durable.disk import Disk

    left = step

    def before(then: Any, torn: bool) -> Any:
        def work(self: Any, *words: Any, **more: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                if torn:
                    handle, path, data = words
                    then(self, handle, path, data[: len(data) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return then(self, *words, **more)

        return work

    for name in STEPS:
        setattr(Disk, name, before(getattr(Disk, name), name == "append"))
    LogCounts.take = before(LogCounts.take, torn=False)  # type: ignore[method-assign]


def break_positions() -> None:
    """The mistake that must be found: events and their position are not stored in one step."""
    from bloomtide.history.state import State
    from bloomtide.monitor import LogFeed

    register, feed = State.register, LogFeed.feed

    def registers_twice(self: State, *, positions: Any = None, **words: Any) -> None:
        register(self, **words)
        if positions:
            register(self, positions=positions)

    def feeds_twice(self: LogFeed, data: bytes, position: Any = None) -> int:
        new = feed(self, data)
        self.settle()
        feed(self, b"", position)
        return new

    State.register = registers_twice  # type: ignore[method-assign]
    LogFeed.feed = feeds_twice  # type: ignore[assignment,method-assign]


def main() -> None:
    from bloomtide.cli import log_files
    from bloomtide.cli.app import app
    from bloomtide.cli.history import ingest
    from bloomtide.cli.watch import command, logs, source
    from bloomtide.durable.disk import Disk
    from bloomtide.history import database
    from bloomtide.monitor import Monitor

    del ingest, command, source, Monitor  # imported, so that children need not
    log_files.CHUNK = 1500
    logs.PAUSE = 0.005
    Disk.sync = Disk.sync_directory = lambda *_: None  # type: ignore[assignment,method-assign]
    database.SYNCHRONOUS = "OFF"
    for line in sys.stdin:
        wanted = json.loads(line)
        child = os.fork()
        if not child:
            os.close(0)
            if wanted["broken"]:
                break_positions()
            if wanted["kill_at"] is not None:
                kill_at(wanted["kill_at"])
            try:
                app(wanted["arguments"])
            finally:
                os._exit(0 if sys.exc_info()[0] is None else _code())
        answer(child)
        _, status = os.waitpid(child, 0)
        answer(os.waitstatus_to_exitcode(status))


def answer(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _code() -> int:
    error = sys.exc_info()[1]
    return error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else 99


if __name__ == "__main__":
    main()
