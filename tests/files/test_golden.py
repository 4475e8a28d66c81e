"""Golden files: written once, they load for ever and say what they always said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import bloomtide
from bloomtide import HotList
from tests.golden.make_golden import ANSWERS, FOLDER, MAKERS, answers_of, path_of, spell
from tests.history import without_history

EXPECTED: dict[str, dict[str, Any]] = json.loads(ANSWERS.read_text(encoding="utf-8"))


def test_every_variant_has_its_file_and_its_answers() -> None:
    assert set(EXPECTED) == set(MAKERS) == {path.stem for path in FOLDER.glob("*.bloom")}
    assert all(path.stat().st_size <= 6000 for path in FOLDER.glob("*.bloom")), "keep them small"


@pytest.mark.parametrize("name", EXPECTED)
def test_a_golden_file_loads_and_answers_as_written(name: str) -> None:
    loaded = bloomtide.load(path_of(name))
    loaded.validate()
    assert answers_of(loaded) == EXPECTED[name]
    if "empty" not in name:
        assert len(EXPECTED[name]["numbers"]) == 7
        assert len(EXPECTED[name]["absent"]) >= 12, "the file must tell absent keys too"


@pytest.mark.parametrize("name", EXPECTED)
def test_saving_again_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    stored = path_of(name).read_bytes()
    loaded = bloomtide.load(path_of(name))
    loaded.save(tmp_path / "again.bloom")
    assert (tmp_path / "again.bloom").read_bytes() == stored
    assert loaded.to_bytes() == stored
    assert bloomtide.from_bytes(stored).to_bytes() == stored
    assert type(loaded).load(path_of(name)) == loaded
    assert type(loaded).from_bytes(stored) == loaded


@pytest.mark.parametrize("name", MAKERS)
def test_making_the_file_again_gives_the_same_bytes(name: str) -> None:
    assert MAKERS[name]().to_bytes() == path_of(name).read_bytes()


@pytest.mark.parametrize("name", MAKERS)
def test_a_loaded_filter_goes_on_as_the_one_that_was_saved(name: str) -> None:
    """Also what is not visible in answers (layers' room, flags) must have been stored."""
    fresh: Any = MAKERS[name]()
    loaded: Any = bloomtide.from_bytes(path_of(name).read_bytes())
    more = [spell(fresh, f"more {i}") for i in range(40)]
    # A list that decays would ask its clock, and answers nothing.
    words = {"at": 1_700_800_000} if isinstance(fresh, HotList) else {}
    one, other = fresh.add_many(more, **words), loaded.add_many(more, **words)
    assert one is other is None or one.tolist() == other.tolist()
    assert fresh.to_bytes() == loaded.to_bytes()
    assert without_history(fresh.stats()) == without_history(loaded.stats())


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview])
def test_from_bytes_takes_any_buffer(form: Any) -> None:
    stored = path_of("bloom-blocked").read_bytes()
    assert bloomtide.from_bytes(form(stored)).to_bytes() == stored
