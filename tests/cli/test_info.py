"""`bloomtide info`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import bloomtide
from bloomtide import BloomFilter
from tests.cli.command import filter_of, refused, run


@pytest.mark.parametrize("kind", ["bloom", "scalable", "counting"])
def test_json_is_the_stats_and_the_parameters(tmp_path: Path, kind: str) -> None:
    file = filter_of(tmp_path, map(str, range(1500)), "--kind", kind)
    told = json.loads(run("info", file, "--json").stdout)
    loaded = bloomtide.load(file)
    assert told["kind"] == kind
    assert told["state"] == "sealed"
    assert told["file_bytes"] == file.stat().st_size
    assert told["stats"] == json.loads(json.dumps(loaded.stats().as_dict()))
    assert told["parameters"]["seed"] == loaded.seed
    assert len(told["stats"]["layers"]) == (2 if kind == "scalable" else 0)


def test_the_table_shows_parameters_and_state(tmp_path: Path) -> None:
    file = filter_of(tmp_path, map(str, range(1500)), "--kind", "scalable")
    shown = run("info", file).stdout
    for words in ("scalable", "tightening", "items", "about 1,5", "error now", "layers"):
        assert words in shown


@pytest.mark.parametrize("layout", ["blocked", "classic"])
def test_the_layout_of_counters_is_shown(tmp_path: Path, layout: str) -> None:
    run("new", tmp_path / "f", "--items", "10", "--kind", "counting", "--layout", layout)
    assert (
        json.loads(run("info", tmp_path / "f", "--json").stdout)["parameters"]["layout"] == layout
    )
    shown = run("info", tmp_path / "f").stdout
    assert ["layout", layout] in [line.split() for line in shown.splitlines()]


def test_a_full_filter_is_still_strict_json(tmp_path: Path) -> None:
    full = BloomFilter(bits=64, hashes=2)
    full.add_many([str(number) for number in range(10_000)])
    full.save(tmp_path / "f")
    told = json.loads(run("info", tmp_path / "f", "--json").stdout, parse_constant=pytest.fail)
    assert told["stats"]["fill"] == 1.0
    assert told["stats"]["items"] is None
    assert "infinite" in run("info", tmp_path / "f").stdout


def test_a_live_file_is_shown_as_live(tmp_path: Path) -> None:
    file = tmp_path / "f"
    with BloomFilter.open(file, 1000, 0.01, mode="c") as shared:
        shared.add("a")
        assert json.loads(run("info", file, "--json").stdout)["state"] == "live"
        assert "live" in run("info", file).stdout
    assert json.loads(run("info", file, "--json").stdout)["state"] == "sealed"


def test_other_things_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"text\n" * 100)
    assert "text" in refused("info", tmp_path / "text")
    assert "No such file" in refused("info", tmp_path / "missing")
    assert "s a directory" in refused("info", tmp_path)
