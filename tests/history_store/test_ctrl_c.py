"""Ctrl-C ends a change of a history at any step; what was acknowledged is there once afterwards."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from bloomtide._core import HistoryBuffer
from bloomtide.durable.disk import Disk
from bloomtide.errors import ParameterError, StorageError
from bloomtide.history import History
from bloomtide.history.state import State

T = 1_700_006_400
HOUR = 3600
OPERATIONS = ("create", "append", "sync", "rename", "sync_directory", "unlink", "commit")


class InterruptedDisk(Disk):
    """Ctrl-C arrives once, right after one of its operations."""

    def __init__(self, at: int | None) -> None:
        self.steps = 0
        self._at = at


def _interrupted(name: str) -> Callable[..., Any]:
    def operation(self: InterruptedDisk, *arguments: Any) -> Any:
        answer = getattr(Disk, name)(self, *arguments)
        self.steps += 1
        if self.steps - 1 == self._at:
            raise KeyboardInterrupt
        return answer

    return operation


for _name in OPERATIONS:
    setattr(InterruptedDisk, _name, _interrupted(_name))


class Story:
    """Events of thirty hours, and what is known of them."""

    def __init__(self) -> None:
        self.tried = 0
        self.acknowledged = 0

    def tell(self, history: History) -> None:
        for hour in range(30):
            for _ in range(3):
                self.tried += 1
                history.add(f"page {hour}", at=T + hour * HOUR)
                self.acknowledged += 1
            if hour % 10 == 9:
                history.seal()
        history.compact()


def run(path: Path, at: int | None) -> tuple[Story, int]:
    """The story, ended by ctrl-C at one step. A program may go on, and closes its store."""
    story, disk = Story(), InterruptedDisk(at)
    history = History.open(
        path, "1m", background=False, disk=disk, sync="always", clock=lambda: T + 48 * HOUR
    )
    try:
        story.tell(history)
    except KeyboardInterrupt:
        with suppress(StorageError):
            history.compact()
    history.close()
    return story, disk.steps


def look(path: Path, story: Story) -> None:
    with History.open(path, background=False, clock=lambda: T + 48 * HOUR) as history:
        history.compact()
        total = history.total()
        assert story.acknowledged <= total.upper <= story.tried
        assert total.missing == ()
        counts = [history.count(f"page {hour}").upper for hour in range(30)]
        assert sum(counts) == total.upper
        assert max(counts) <= 3


def first_step(path: Path) -> int:
    """The first one that is not a part of `open`, where nothing can be wrong yet."""
    disk = InterruptedDisk(None)
    History.open(path, "1m", background=False, disk=disk, sync="always").close()
    return disk.steps


def test_ctrl_c_at_any_step_loses_nothing_and_counts_nothing_twice(tmp_path: Path) -> None:
    _, steps = run(tmp_path / "whole", None)
    for at in range(first_step(tmp_path / "empty"), steps):
        story, _ = run(tmp_path / str(at), at)
        look(tmp_path / str(at), story)


def test_broken_a_store_that_goes_on_after_ctrl_c_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def nothing(self: State) -> Any:
        yield

    monkeypatch.setattr(State, "changing", nothing)
    with pytest.raises(AssertionError):
        test_ctrl_c_at_any_step_loses_nothing_and_counts_nothing_twice(tmp_path)


def test_what_was_fed_before_an_error_counts_and_stays(tmp_path: Path) -> None:
    def half(buffer: HistoryBuffer) -> None:
        buffer.add("a", 1, T * 1_000_000)
        raise KeyError("source")

    with History.open(tmp_path, "1m", background=False) as history, pytest.raises(KeyError):
        history.feed(half)
    with History.open(tmp_path, background=False) as again:
        assert again.count("a").upper == 1


def test_a_mark_needs_someone_who_keeps_what_is_fed(tmp_path: Path) -> None:
    with (
        History.open(tmp_path, "1m", background=False) as history,
        pytest.raises(ParameterError, match="mark"),
    ):
        history.feed(lambda _: None, mark=1)


def test_a_store_that_is_refused_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="retention"):
        History.open(tmp_path / "store", "1m", retention="1s for 1h")
    assert not (tmp_path / "store" / "store.json").exists()


def test_a_store_that_was_cut_short_says_so(tmp_path: Path) -> None:
    disk = InterruptedDisk(None)
    history = History.open(tmp_path, "1m", background=False, disk=disk)
    history.add("a", at=T)
    disk._at = disk.steps + 3
    with pytest.raises(KeyboardInterrupt):
        history.seal()
    with pytest.raises(StorageError, match="cut short by KeyboardInterrupt") as refused:
        history.add("b", at=T)
    assert "open it again" in str(refused.value.hint)
    assert history.count("a").upper >= 1
    history.close()
    with History.open(tmp_path, background=False) as again:
        assert again.count("a").upper == 1
