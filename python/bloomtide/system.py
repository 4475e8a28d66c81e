"""What differs between operating systems. No other module imports `fcntl`, `resource` or `msvcrt`,
or calls `os.fork`.

Linux and macOS have all of it. Elsewhere there is a stand-in where one is safe, and `require_posix`
refuses the rest in one sentence: the server, stores that are written, guards and filters shared by
processes. A system counts as POSIX if Python has `fcntl` there.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from bloomtide.errors import UnsupportedError

fcntl: Any
resource: Any
msvcrt: Any
try:
    import fcntl
    import resource
except ImportError:
    fcntl = resource = None
try:
    import msvcrt
except ImportError:
    msvcrt = None

POSIX = fcntl is not None


def require_posix(what: str, *, lacks: str = "flock") -> None:
    """Refuses `what` where the system cannot do it; `lacks` is the call that it needs."""
    if not POSIX:
        raise UnsupportedError(
            f"{what} needs Linux or macOS: this system has no {lacks}",
            hint="run it there; on Windows, in WSL or a container",
            verb=what, policy="platform",
        )  # fmt: skip


# --- locks --------------------------------------------------------------------------------------


def lock(file: int | BinaryIO, *, shared: bool = False) -> None:
    """Waits for the `flock` of an open file. The system releases it when the process ends."""
    fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


def try_lock(file: int | BinaryIO, *, shared: bool = False) -> bool:
    """Takes the `flock` of an open file, unless another process has it."""
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(file: int | BinaryIO) -> None:
    """Gives the `flock` back."""
    fcntl.flock(file, fcntl.LOCK_UN)


class LockBeside:
    """The lock of a name, on a file of its own beside it: `.NAME.lock`, removed with the lock.

    For a file that is not there yet. On Windows also for one that is about to be replaced, since
    Windows does not replace a file that another handle has open. It refuses to delete an open file
    too: whoever closes last removes the lock's file.
    """

    def __init__(self, file: Path) -> None:
        self._path = file.with_name(f".{file.name}.lock")
        self._opened: BinaryIO | None = None

    def try_take(self) -> bool:
        """Takes the lock, unless another process has it."""
        if not POSIX and msvcrt is None:
            return True  # a system with neither kind of lock: two commands at once are not safe
        try:
            opened = self._path.open("ab")
        except PermissionError:
            if POSIX:
                raise
            return False  # being deleted by the process that had it
        try:
            if not self._locked(opened):
                opened.close()
                return False
        except OSError:
            opened.close()
            raise
        self._opened = opened
        return True

    def _locked(self, opened: BinaryIO) -> bool:
        if not POSIX:
            try:
                msvcrt.locking(opened.fileno(), msvcrt.LK_NBLCK, 1)
            except OSError:
                return False
            return True
        if not try_lock(opened):
            return False
        # Whoever had the lock before has removed the file; then ours has no name.
        try:
            return os.path.samestat(os.fstat(opened.fileno()), self._path.stat())
        except FileNotFoundError:
            return False

    def __enter__(self) -> LockBeside:
        return self

    def __exit__(self, *_: object) -> None:
        if self._opened is None:
            return
        if POSIX:  # before it is released: the next one must not lock a file that loses its name
            self._path.unlink(missing_ok=True)
        self._opened.close()  # and with it the lock
        self._opened = None
        if not POSIX:
            with suppress(PermissionError):  # another process waits for it, and removes it in turn
                self._path.unlink(missing_ok=True)


# --- files --------------------------------------------------------------------------------------


def sync(file: int) -> None:
    """What was written is on the disk when this returns."""
    if hasattr(fcntl, "F_FULLFSYNC"):  # macOS, whose fsync stops at the drive's cache
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    elif hasattr(os, "fdatasync"):
        os.fdatasync(file)
    else:
        os.fsync(file)


def sync_directory(path: str | os.PathLike[str]) -> None:
    """Names in a directory are on the disk when this returns. Only POSIX lets one be opened."""
    if POSIX:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def has_input(file: int, seconds: float) -> bool:
    """Whether a pipe or terminal can be read without waiting, after at most so many seconds.

    Windows cannot tell: there the answer is yes, and the read waits.
    """
    return not POSIX or bool(select.select([file], [], [], seconds)[0])


# --- processes ----------------------------------------------------------------------------------


def fork() -> int:
    """As `os.fork`."""
    require_posix("a copy of the process", lacks="fork")
    return os.fork()


def after_fork_in_child(call: Callable[[], None]) -> None:
    """Has `call` called in every forked child; nothing to do where no process forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)


def raise_file_limit(wanted: int) -> int:
    """Asks for so many open files, and returns how many of them the process may have now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= wanted or soft == resource.RLIM_INFINITY:
        return wanted
    best = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (best, hard))
    return int(best)


def processor_seconds(*, children: bool = False) -> tuple[float, float]:
    """Processor time of this process, or of its ended children: in user code, in the system."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF)
    return used.ru_utime, used.ru_stime


def memory() -> int:
    """Bytes that this process may use: the machine's, or less if its control group says so."""
    pages = os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else -1
    machine = pages * os.sysconf("SC_PAGESIZE") if pages > 0 else 4 << 30
    return min([machine, *group_limits(Path("/"))])


def group_limits(root: Path) -> Iterator[int]:
    """The limits of memory of this process's control groups and those above, of both versions."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        top = root / "sys/fs/cgroup" / controllers
        name = "memory.limit_in_bytes" if controllers else "memory.max"
        group = top / path.lstrip("/")
        # In a container the path is one of the host, and the limit stands at the top.
        for place in (group, *group.parents):
            with suppress(OSError, ValueError):
                yield int((place / name).read_text())
            if place == top:
                break


def peak_bytes() -> int:
    """The most memory this process ever had."""
    peak = int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return peak if hasattr(fcntl, "F_FULLFSYNC") else peak << 10  # macOS counts bytes, Linux KiB


def resident_bytes() -> int:
    """Memory of the process now; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - as short as it gets
            return int(file.read().split()[1]) * int(resource.getpagesize())
    except OSError:
        return 0
