"""Every structure beside its exact model, over some thousands of operations."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.oracle import run
from benchmarks.oracle.planted import FAULTS
from benchmarks.oracle.streams import generated, generated_urls
from benchmarks.oracle.trial import Trial
from benchmarks.oracle.urls import UrlTrial


@pytest.mark.parametrize("kind", run.TRIALS, ids=lambda kind: kind.structure)
def test_every_promise_of_a_structure_holds(kind: type[Trial]) -> None:
    stream = generated_urls(1, 6000) if kind is UrlTrial else generated(1, 6000)
    done, checks, broken = run.work(kind, 12_000, stream, 0, life=3000)
    assert broken == []
    assert done >= 12_000
    assert sum(checks.values()) > 50


def test_the_command_tells_operations_checks_and_broken_promises(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "FAULTS", FAULTS[:2])
    words = ["--operations", "2000", "--only", "LogCounter", "--data", str(tmp_path / "none")]
    assert run.main([*words, "--jobs", "1"]) == 0
    told = capsys.readouterr().out
    assert "| LogCounter | 2," in told
    assert "2 of 2 planted faults were found" in told
