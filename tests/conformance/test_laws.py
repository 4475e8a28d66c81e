"""Every law on every structure: `pytest -k "counting and batch"` picks by either name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.law import Law
from tests.conformance.laws import LAWS
from tests.conformance.registry import STRUCTURES, Structure, Subject

SLOW = {
    # Half a minute: seven partitions of so many counters move often. Others take a second or two.
    ("psbf-classic-7-plain", "a_very_large_batch_is_the_same_with_any_number_of_threads"),
}
CASES = [
    pytest.param(
        structure,
        law,
        id=f"{structure.name}:{law.name}",
        marks=[pytest.mark.slow] if (structure.name, law.name) in SLOW else [],
    )
    for structure in STRUCTURES
    for law in LAWS
    if law.covers(structure)
]


@pytest.mark.parametrize(("structure", "law"), CASES)
def test_law(structure: Structure, law: Law, tmp_path: Path) -> None:
    with Subject(structure, tmp_path) as subject:
        law.check(subject)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_every_law_covers_some_structure(law: Law) -> None:
    assert any(law.covers(structure) for structure in STRUCTURES)


def test_what_is_called_slow_exists() -> None:
    assert {(structure.name, law.name) for structure in STRUCTURES for law in LAWS} >= SLOW
