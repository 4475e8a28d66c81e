"""`bloomtide merge`."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import pytest

import bloomtide
from bloomtide import BloomFilter, CountingBloomFilter
from tests.cli.command import filter_of, refused, run


@pytest.mark.parametrize("kind", ["bloom", "counting"])
def test_the_merged_filter_is_the_filter_of_all_keys(tmp_path: Path, kind: str) -> None:
    parts = [["a", "b"], ["b", "c"], ["d"]]
    files = [
        filter_of(tmp_path, keys, "--kind", kind, name=f"{number}")
        for number, keys in enumerate(parts)
    ]
    before = [file.read_bytes() for file in files]
    run("merge", tmp_path / "out", *files)
    whole = filter_of(tmp_path, chain.from_iterable(parts), "--kind", kind, name="whole")
    assert (tmp_path / "out").read_bytes() == whole.read_bytes()
    assert [file.read_bytes() for file in files] == before


def test_counts_are_added_up(tmp_path: Path) -> None:
    a = filter_of(tmp_path, ["k"] * 3, "--kind", "counting", name="a")
    b = filter_of(tmp_path, ["k"] * 4, "--kind", "counting", name="b")
    run("merge", tmp_path / "out", a, b)
    assert CountingBloomFilter.load(tmp_path / "out").count("k") == 7


def test_json_describes_the_merged_filter(tmp_path: Path) -> None:
    a, b = (filter_of(tmp_path, [name], name=name) for name in "ab")
    told = json.loads(run("merge", tmp_path / "out", a, b, "--json").stdout)
    merged = bloomtide.load(tmp_path / "out")
    assert told["stats"] == json.loads(json.dumps(merged.stats().as_dict()))


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (["--seed", "7"], "seed"),
        (["--layout", "blocked", "--error", "1%"], "layout"),
        (["--kind", "counting"], "kind"),
    ],
)
def test_filters_made_differently_are_refused_by_field(
    tmp_path: Path, options: list[str], field: str
) -> None:
    a = filter_of(tmp_path, ["a"], name="a")
    b = filter_of(tmp_path, ["b"], *options, name="b")
    stderr = refused("merge", tmp_path / "out", a, b)
    assert field in stderr
    assert str(b) in stderr
    assert not (tmp_path / "out").exists()


def test_the_output_is_replaced_only_by_force_and_may_be_an_input(tmp_path: Path) -> None:
    a, b = (filter_of(tmp_path, [name], name=name) for name in "ab")
    before = a.read_bytes()
    assert "exists" in refused("merge", a, a, b)
    assert a.read_bytes() == before
    run("merge", a, a, b, "--force")
    assert all(key in BloomFilter.load(a) for key in "ab")


def test_a_failed_merge_leaves_the_old_output(tmp_path: Path) -> None:
    a = filter_of(tmp_path, ["a"], name="a")
    out = filter_of(tmp_path, ["old"], name="out")
    before = out.read_bytes()
    assert "missing" in refused("merge", out, a, tmp_path / "missing", "--force")
    assert out.read_bytes() == before


def test_scalable_filters_and_single_files_are_refused(tmp_path: Path) -> None:
    a, b = (filter_of(tmp_path, [name], "--kind", "scalable", name=name) for name in "ab")
    assert "scalable" in refused("merge", tmp_path / "out", a, b)
    assert "one filter" in refused("merge", tmp_path / "out", a)
    assert "FILE" in refused("merge", tmp_path / "out")
