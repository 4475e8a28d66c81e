"""A process as on a system that is not POSIX: `python -m tests.platforms.elsewhere ...`.

`-c CODE` runs a program, `hold FILE` holds a file's lock until stdin ends, and everything else is
given to the command `bloomtide`. On Windows nothing is hidden: it is the real thing.
"""

from __future__ import annotations

import importlib.abc
import os
import select
import selectors
import signal
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty")
MISSING: dict[Any, tuple[str, ...]] = {
    os: (
        "fork", "forkpty", "register_at_fork", "fdatasync", "pread", "pwrite", "sysconf", "mkfifo",
        "getuid", "geteuid", "sched_getaffinity", "O_DIRECTORY", "O_CLOEXEC", "O_NONBLOCK",
        "WNOHANG",
    ),
    signal: ("SIGHUP", "SIGKILL", "SIGPIPE", "SIGUSR1", "SIGUSR2", "SIGALRM"),
    select: ("poll", "epoll"),
    selectors: ("PollSelector", "EpollSelector"),
}  # fmt: skip
"""What Windows does not have."""


class Hidden(importlib.abc.MetaPathFinder):
    """Finds none of the modules that only POSIX systems have."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuses them; others are looked for as ever."""
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def hide() -> None:
    """Takes all that is POSIX from this process, before bloomtide is imported."""
    if os.name == "nt":
        return
    # Modules of Python itself that import what is hidden, since they believe in `sys.platform`.
    import asyncio  # noqa: F401
    import fcntl
    import multiprocessing.pool  # noqa: F401
    import subprocess  # noqa: F401

    def locking(file: int, mode: int, size: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, size)

    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Hidden())
    for module, names in MISSING.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    from bloomtide import system

    # Not in `sys.modules`: Python itself would take this for Windows.
    system.msvcrt = SimpleNamespace(locking=locking, LK_NBLCK=2)


def hold(file: str) -> None:
    """Holds the lock of a file until stdin ends."""
    from bloomtide.cli.files import lock_alone

    lock = lock_alone(Path(file))
    assert lock is not None
    with lock:
        print("held", flush=True)  # noqa: T201 - read by the test
        sys.stdin.read()


if __name__ == "__main__":
    hide()
    match sys.argv[1:]:
        case ["-c", code]:
            exec(code)
        case ["hold", file]:
            hold(file)
        case _:
            from bloomtide.cli.main import main

            main()
