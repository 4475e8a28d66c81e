"""The command of the long run."""

from __future__ import annotations

import pytest

from benchmarks.guard_histories import run
from benchmarks.guard_histories.planted import FAULTS

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def test_the_command_tells_how_many_histories_were_refused_and_ready_and_found_faults(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "FAULTS", FAULTS[6:8])
    words = ["--histories", "2", "--database", "sqlite", "--seed", "5", "--jobs", "1"]
    assert run.main([*words, "--minutes", "1"]) == 0
    told = capsys.readouterr().out
    assert "| sqlite | 2 |" in told
    assert "while READY" in told
    assert "2 of 2 planted faults were found" in told


def test_a_history_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["--database", "sqlite", "--seed", "6", "--show"]) == 0
    assert "CREATE TABLE" in capsys.readouterr().out
