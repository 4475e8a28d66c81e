"""While the state is READY, a "no" is never wrong: some hundreds of random histories."""

from __future__ import annotations

import pytest

from benchmarks.guard_histories import run
from benchmarks.guard_histories.draw import draw_history
from benchmarks.guard_histories.ground import Ground
from benchmarks.guard_histories.model import StandIn

# SQLAlchemy's identity map asserts in a destructor after some rollbacks behind its back.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
HISTORIES = {"sqlite": 400, "postgresql": 120}


def database_of(request: pytest.FixtureRequest) -> str:
    return str(request.node.callspec.params["ground"])


def test_no_history_makes_the_guard_call_a_committed_key_absent(
    ground: Ground, request: pytest.FixtureRequest
) -> None:
    database = database_of(request)
    summary = run.play(database, range(HISTORIES[database]), ground)
    assert summary.reports == []
    assert summary.broken == {}
    assert summary.ready > summary.checks / 2  # else it proves nothing


def test_a_guard_that_reads_everything_passes(
    ground: Ground, request: pytest.FixtureRequest
) -> None:
    database = database_of(request)
    summary = run.play(database, range(60), ground, StandIn, simple=True)
    assert summary.reports == []
    assert summary.ready > summary.checks / 2


def test_the_same_seed_gives_the_same_history() -> None:
    assert [draw_history(seed, "sqlite") for seed in range(20)] == [
        draw_history(seed, "sqlite") for seed in range(20)
    ]
