"""Every kind of damage to every kind of file, met by readers and writers: nothing is hidden.

Some hundred trials here; `make damage` (BLOOMTIDE_TRIALS=12000) is the long proof.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bloomtide.history import catalogue, forest, opening, state, view
from tests.history_store.damage import KINDS, Stores, Trial, run_all, trials

TRIALS = int(os.environ.get("BLOOMTIDE_TRIALS", "160"))
PARTS = 4


@pytest.fixture(scope="module", params=[False, True], ids=["closed", "killed"])
def stores(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Stores:
    return Stores.make(tmp_path_factory.mktemp("stores"), killed=request.param)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS // 2))
def test_damage_of_any_kind_to_any_file_is_never_answered_with_a_smaller_number(
    stores: Stores, tmp_path: Path, part: int
) -> None:
    number = TRIALS // PARTS
    outcomes, hidden = run_all(stores, tmp_path / "store", trials(part * 1_000_003), number)
    assert hidden == []
    told = {kind for kind, outcome in outcomes if outcome != "right"}
    assert number < 1000 or told >= set(KINDS) - {"items", "lock", "note", "temporary"}


def _skip(*_: Any) -> None:
    """In place of a check."""


class Same(dict[str, Any]):
    """Equal to everything."""

    def __getitem__(self, _: str) -> Any:
        return self

    def __eq__(self, _: object) -> bool:
        return True

    def __ne__(self, _: object) -> bool:
        return False

    __hash__ = None


def _say_nothing_is_lost(*arguments: Any) -> Any:
    buffer, length, _ = _READ(*arguments)
    return buffer, length, None


_READ = opening.read_journal
Plant = tuple[list[tuple[Any, str, Any]], Callable[[Trial], bool]]
FAULTS: dict[str, Plant] = {
    "segments are not compared": (
        [(forest, "require_same", _skip), (state, "require_same", _skip)],
        lambda trial: trial.kind == "segment" and trial.damage in {"sibling", "swap", "other"},
    ),
    "items are not compared": (
        [(state, "require_same_items", _skip)], lambda trial: trial.kind == "items",
    ),
    "rows are not summed up": (
        [(catalogue, "_total", lambda _: "the same")],
        lambda trial: trial.kind == "catalogue" and trial.damage in {"flip", "zero"},
    ),
    "the note is not read": (
        [(opening, "read_note", lambda *_: 0)],
        lambda trial: (trial.kind, trial.damage) == ("catalogue", "older"),
    ),
    "the journal is not compared": (
        [(opening, "begun_as", lambda _: Same())],
        lambda trial: trial.kind == "journal" and trial.damage in {"cut", "other"},
    ),
    "a damaged journal is read as a sound one": (
        [(opening, "read_journal", _say_nothing_is_lost)],
        lambda trial: trial.kind == "journal",
    ),
    "a store that lost its catalogue is made anew": (
        [(opening, "_require_new", _skip), (opening, "read_note", lambda *_: 0)],
        lambda trial: (trial.kind, trial.damage) == ("catalogue", "delete"),
    ),
    "missing times are not told": (
        [(view.View, "_missing", lambda *_: ())], lambda trial: trial.kind == "segment",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_broken_a_check_that_is_left_out_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    patches, only = FAULTS[fault]
    if fault == "rows are not summed up":
        monkeypatch.setattr(catalogue, "_total", lambda _: "the same")
    stores = Stores.make(tmp_path, killed=False)
    for place, name, instead in patches:
        monkeypatch.setattr(place, name, instead)
    _, hidden = run_all(stores, tmp_path / "trial", trials(0, only=only), 200, hidden=1)
    assert hidden
