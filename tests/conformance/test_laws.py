"""Every law on every structure: `pytest -k "counting and batch"` picks by either name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.law import Law
from tests.conformance.laws import LAWS
from tests.conformance.registry import STRUCTURES, Structure, Subject


def known(structure: Structure, law: Law) -> list[pytest.MarkDecorator]:
    """What falls short of a law and is to be mended; the test says when it was."""
    parameters = structure.parameters
    spectral = structure.name.startswith(("sbf", "psbf"))
    recurring = "recurring_minimum" in structure.traits
    last_is_short = structure.name == "psbf-blocked-auto-plain"
    reasons = {
        "a_new_filter_takes_the_memory_that_its_plan_says": (
            spectral and (recurring or last_is_short),
            "the plan forgets the second filter, and that the last partition is shorter",
        ),
        "repr_names_the_class_and_its_parameters": (
            bool({"total", "on_full"} & parameters.keys()),
            "repr shows neither `total` nor `on_full`",
        ),
        "a_filter_shows_the_parameters_it_was_made_with": (
            "on_full" in parameters,
            "`on_full`, `slack`, `shrink` and `counter_bits` are no properties",
        ),
    }
    short, reason = reasons.get(law.name, (False, ""))
    return [pytest.mark.xfail(strict=True, reason=reason)] if short else []


CASES = [
    pytest.param(structure, law, id=f"{structure.name}:{law.name}", marks=known(structure, law))
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
