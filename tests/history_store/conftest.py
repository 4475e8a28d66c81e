"""The tests here act power cuts (faults.py), so nothing has to wait for a real disk.

The processes of test_kill.py are others, and do wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bloomtide.durable.disk import Disk
from bloomtide.history import database


@pytest.fixture(autouse=True, scope="module")
def quick_disk() -> Iterator[None]:
    """SQLite and the store's files without waiting until they are on the disk."""
    patch = pytest.MonkeyPatch()
    patch.setattr(database, "SYNCHRONOUS", "OFF")
    patch.setattr(Disk, "sync", _do_nothing)
    patch.setattr(Disk, "sync_directory", _forget)
    yield
    patch.undo()


def _do_nothing(_disk: Disk, _handle: int, _path: Path) -> None:
    """In place of `Disk.sync`."""


def _forget(_disk: Disk, _path: Path) -> None:
    """In place of `Disk.sync_directory`."""
