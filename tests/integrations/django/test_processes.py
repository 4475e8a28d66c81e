"""Several processes share one guard: what one of them commits all others know, killed or not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from django.db import connections

from bloomtide.errors import IncompatibleError
from bloomtide.guard.stats import State
from bloomtide.integrations.django import ModelGuard
from tests.integrations.django.shop.models import Basket, BasketArchive

ROOT = Path(__file__).resolve().parents[3]
ABSENT = 1_000_000


@pytest.fixture
def guard(using: str, tmp_path: Path) -> Iterator[ModelGuard]:
    Basket.objects.using(using).bulk_create(Basket(customer=i) for i in range(50))
    shared = tmp_path / "shared"
    # Room for what fast writers write: to them a filter that is too full is an error.
    with ModelGuard(
        Basket, "customer", using=using, shared=shared, build=False, capacity=100_000
    ) as guard:
        assert guard.build()
        yield guard


@contextmanager
def writing(guard: ModelGuard, shared: Path, first: int) -> Iterator[IO[str]]:
    """A process that writes as fast as it can, until it is killed."""
    place = connections.settings[guard.using]
    module = "tests.integrations.django.another_process"
    command = [sys.executable, "-W", "error", "-m", module, guard.using]
    given = [str(place["NAME"]), str(place["HOST"]), str(shared), str(first)]
    with subprocess.Popen(
        [*command, *given], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            yield process.stdout
        finally:
            process.kill()


def test_what_other_processes_commit_is_known_at_once_and_after_they_were_killed(
    guard: ModelGuard, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    with writing(guard, shared, 1000) as one, writing(guard, shared, 200_000) as other:
        for number in range(30):
            for process in (one, other):
                line = process.readline()
                assert line, "the other process has failed"
                assert guard.may_exist(int(line))
            if number % 10 == 5:
                assert guard.build()
    for _ in range(2):
        written = set(Basket.objects.using(guard.using).values_list("customer", flat=True))
        assert len(written) >= 50 + 60
        assert [customer for customer in written if not guard.may_exist(customer)] == []
        assert guard.build()
    assert guard.state is State.READY
    assert not guard.may_exist(ABSENT)


def test_what_one_process_cannot_see_all_distrust(guard: ModelGuard, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    with ModelGuard(Basket, "customer", using=guard.using, shared=shared, build=False) as elsewhere:
        assert elsewhere.build()
        assert not elsewhere.may_exist(ABSENT)
        guard.distrust("psql")
        assert elsewhere.may_exist(ABSENT)
        assert guard.build()
        assert not elsewhere.may_exist(ABSENT)


def test_the_directory_of_another_table_or_error_rate_is_refused(
    guard: ModelGuard, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    with pytest.raises(IncompatibleError):
        ModelGuard(BasketArchive, "customer", using=guard.using, shared=shared)
    with pytest.raises(IncompatibleError):
        ModelGuard(Basket, "customer", 0.001, using=guard.using, shared=shared)
