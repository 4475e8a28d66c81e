"""Errors planted around the structures: a fault that is not found is a hole in the oracle."""

from __future__ import annotations

import pytest

from benchmarks.oracle.faults import Fault
from benchmarks.oracle.planted import FAULTS
from benchmarks.oracle.run import finds


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_found(fault: Fault) -> None:
    assert finds(fault) is not None


def test_there_are_faults_of_every_structure_under_names_of_their_own() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 40
