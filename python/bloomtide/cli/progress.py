"""A progress bar on stderr for long work on a terminal; nothing at all anywhere else."""

from __future__ import annotations

import contextlib
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

Advance: TypeAlias = Callable[[int], None]

LONG = 8 << 20
"""Bytes of keys below which the work is over before a bar could be read."""


@contextlib.contextmanager
def reading(
    sources: Sequence[str], *, prints_lines: bool = False, what: str = "keys"
) -> Iterator[Advance]:
    """Show how much of the files was read; yields the function that counts bytes."""
    total = _total_bytes(sources)
    typed = "-" in sources and _is_terminal(sys.stdin)
    crowded = prints_lines and _is_terminal(sys.stdout)
    wanted = not typed and not crowded and (total is None or total >= LONG)
    with _bar(f"reading {what}", total, wanted=wanted) as advance:
        yield advance


@contextlib.contextmanager
def files(paths: Sequence[str], verb: str) -> Iterator[Advance]:
    """Show the work on whole filter files; advance by each file's size."""
    total = _total_bytes(paths)
    with _bar(verb, total, wanted=total is not None and total >= LONG) as advance:
        yield advance


@contextlib.contextmanager
def _bar(verb: str, total: int | None, *, wanted: bool) -> Iterator[Advance]:
    if not (wanted and _is_terminal(sys.stderr)):
        yield lambda count: None
        return
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    from bloomtide.cli.console import stderr_console

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    # transient: the finished command leaves its message behind, not the bar.
    with Progress(*columns, console=stderr_console(), transient=True) as progress:
        task = progress.add_task(verb, total=total)
        yield lambda count: progress.advance(task, count)


def _total_bytes(paths: Sequence[str]) -> int | None:
    """Size of all files together; None when one of them is a stream or cannot be asked."""
    total = 0
    for path in paths:
        try:
            status = Path(path).stat()
        except OSError:
            return None
        if path == "-" or not stat.S_ISREG(status.st_mode):
            return None
        total += status.st_size
    return total


def _is_terminal(stream: object) -> bool:
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty())
