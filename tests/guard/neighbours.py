"""Two processes that share keys.

Two that are attached to one directory meet only through its files and locks, so two in one process
are neighbours as two processes are, and each order of events can be written down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bloomtide.guard.filter.keys import KeyFilter
from tests.guard.test_key_filter import ABSENT, KEYS, scan_of

SUBJECT = {"table": "basket", "columns": ["customer"]}
Pair = tuple[KeyFilter, KeyFilter]


@pytest.fixture
def attach(tmp_path: Path) -> Iterator[Callable[[], KeyFilter]]:
    there: list[KeyFilter] = []

    def attach() -> KeyFilter:
        there.append(KeyFilter(1e-6, shared=tmp_path / "guard", subject=SUBJECT))
        return there[-1]

    yield attach
    for keys in there:
        if not keys.detached:
            keys.detach()


@pytest.fixture
def pair(attach: Callable[[], KeyFilter]) -> Pair:
    builder, neighbour = attach(), attach()
    assert builder.rebuild(scan_of(KEYS), expected=len(KEYS))
    return builder, neighbour


@pytest.fixture(params=["the builder itself", "a neighbour"])
def writer_and_builder(request: pytest.FixtureRequest, pair: Pair) -> Pair:
    """Who writes may be who builds, or another process."""
    return (pair[0], pair[0]) if request.param == "the builder itself" else (pair[1], pair[0])


def says_absent(*processes: KeyFilter) -> list[bool]:
    return [not keys.may_exist(ABSENT) for keys in processes]
