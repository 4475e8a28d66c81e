"""Mistakes planted in guards: one that is not found is a hole in the machine."""

from __future__ import annotations

import pytest

from benchmarks.guard_histories.ground import Ground
from benchmarks.guard_histories.planted import FAULTS, Fault, mistaken
from benchmarks.guard_histories.run import finds, play

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
CASES = [pytest.param(fault.database, fault, id=fault.name) for fault in FAULTS]


@pytest.mark.parametrize(("ground", "fault"), CASES, indirect=["ground"])
def test_a_planted_fault_is_found(ground: Ground, fault: Fault) -> None:
    assert finds(fault, ground) is not None


def test_there_are_more_than_twenty_faults_under_names_of_their_own() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) > 20


@pytest.mark.parametrize("ground", ["sqlite"], indirect=True)
def test_a_failure_is_told_with_its_seed_its_schema_and_the_fewest_statements(
    ground: Ground,
) -> None:
    summary = play("sqlite", range(60), ground, mistaken("misses UPDATE"), simple=True)
    report = min(summary.reports, key=len)
    assert "seed" in report
    assert "CREATE TABLE" in report
    assert "UPDATE" in report
    assert "WRONG" in report.splitlines()[-1]
