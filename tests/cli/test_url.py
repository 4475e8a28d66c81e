"""Every command on a filter of URLs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bloomtide import UrlFilter
from tests.cli.command import refused, run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "seen.bloom"
    run("new", made, "--items", "1k", "--kind", "url")
    run("add", made, stdin=b"http://a.example/x\nhttps://A.example:443/x\nhttp://b.example\n")
    return made


def test_a_new_filter_has_what_was_asked_for(tmp_path: Path) -> None:
    run("new", tmp_path / "f", "--items", "1k", "--error", "0.1%", "--kind", "url", "--seed", "7",
        "--max-layers", "4", "--layer-sizes", "10,1k")  # fmt: skip
    wanted = UrlFilter(1000, 0.001, 4, layer_sizes=[10, 1000], seed=7)
    assert (tmp_path / "f").read_bytes() == wanted.to_bytes()
    run("new", tmp_path / "g", "--items", "1k", "--kind", "url", "--layer-sizes", "uniform")
    assert (tmp_path / "g").read_bytes() == UrlFilter(1000, layer_sizes="uniform").to_bytes()


def test_lines_are_urls_in_any_spelling(file: Path) -> None:
    told = json.loads(run("add", file, "--json", stdin=b"http://A.example/./x\n").stdout)
    assert told == {"read": 1, "added": 0, "present": 1}
    assert run("check", file, stdin=b"https://b.example/\nhttp://c.example/\n").stdout == (
        "https://b.example/\n"
    )
    seen = UrlFilter.load(file)
    assert seen.seen_host("a.example")
    assert not seen.seen_host("c.example")


def test_a_line_that_is_no_url_is_named_and_the_file_stays(file: Path) -> None:
    before = file.read_bytes()
    keys = b"http://new.example/\n\nhttp://d.example/\n"
    for command in ("add", "check"):
        said = refused(command, file, stdin=keys)
        assert "line 2: `url` must be a URL" in said
    assert file.read_bytes() == before


def test_info_shows_the_layers_by_depth(file: Path) -> None:
    shown = run("info", file).stdout
    assert "layers, by depth" in shown
    assert "salted_xor" in shown
    told = json.loads(run("info", file, "--json").stdout)
    assert told["kind"] == "url"
    assert told["parameters"]["layer_sizes"] == "uniform"
    assert [layer["depth"] for layer in told["stats"]["layers"]] == [1, 2]
    run("validate", file)


def test_filters_of_urls_merge(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.bloom"
    run("new", other, "--items", "1k", "--kind", "url")
    run("add", other, stdin=b"http://c.example/1/2/3\n")
    run("merge", tmp_path / "both", file, other)
    both = UrlFilter.load(tmp_path / "both")
    assert both.contains_many(["http://a.example/x", "http://c.example/1/2/3"]).all()
    differs = tmp_path / "differs.bloom"
    run("new", differs, "--items", "1k", "--kind", "url", "--max-layers", "4")
    assert "max_layers" in refused("merge", tmp_path / "no", file, differs)


def test_plan_counts_every_layer() -> None:
    plan = json.loads(run("plan", "--items", "1M", "--kind", "url", "--json").stdout)["plan"]
    assert (plan["kind"], plan["max_layers"], len(plan["layers"])) == ("url", 8, 8)
    assert plan["bytes"] > 3 * plan["layers"][0]["bytes"]
    assert "layers" in run("plan", "--items", "1M", "--kind", "url").stdout


def test_options_of_other_kinds_are_refused(tmp_path: Path) -> None:
    said = refused("new", tmp_path / "f", "--items", "1k", "--max-layers", "4")
    assert "it goes with --kind url" in said
    said = refused("new", tmp_path / "f", "--items", "1k", "--kind", "url", "--layer-sizes", "x")
    assert "not a number" in said
    said = refused("new", tmp_path / "f", "--items", "1k", "--kind", "url", "--max-layers", "65")
    assert "`max_layers` must be between 1 and 64" in said
