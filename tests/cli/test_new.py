"""`bloomtide new`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Literal

import pytest

import bloomtide
from bloomtide import BloomFilter, CountingBloomFilter, ScalableBloomFilter
from tests.cli.command import refused, run


def test_a_new_filter_has_what_was_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "f.bloom"
    run("new", file, "--items", "5k", "--error", "0.1%", "--layout", "classic",
        "--seed", "7")  # fmt: skip
    made = BloomFilter.load(file)
    wanted = BloomFilter(5000, 0.001, layout="classic", seed=7)
    assert made.to_bytes() == wanted.to_bytes()


def test_sizes_can_be_given_instead_of_goals(tmp_path: Path) -> None:
    run("new", tmp_path / "f", "--bits", "8192", "--hashes", "5")
    made = BloomFilter.load(tmp_path / "f")
    assert (made.bits, made.hashes, made.capacity) == (8192, 5, None)


def test_a_counting_filter_can_be_made(tmp_path: Path) -> None:
    run("new", tmp_path / "f", "--items", "100", "--kind", "counting", "--counter-bits", "8",
        "--policy", "conservative")  # fmt: skip
    made = CountingBloomFilter.load(tmp_path / "f")
    assert (made.counter_bits, made.policy, made.capacity) == (8, "conservative", 100)
    assert made.layout == "blocked"


@pytest.mark.parametrize("layout", ["blocked", "classic"])
def test_the_layout_of_counters_can_be_chosen(
    tmp_path: Path, layout: Literal["blocked", "classic"]
) -> None:
    run("new", tmp_path / "goal", "--items", "100", "--kind", "counting", "--layout", layout)
    wanted = CountingBloomFilter(100, 0.01, layout=layout)
    assert (tmp_path / "goal").read_bytes() == wanted.to_bytes()
    told = run("new", tmp_path / "sizes", "--cells", "1250", "--hashes", "4", "--kind", "counting",
               "--layout", layout, "--json").stdout  # fmt: skip
    told = json.loads(told)
    assert told["parameters"]["layout"] == layout
    assert told["stats"]["cells"] == (1280 if layout == "blocked" else 1250)


def test_a_scalable_filter_needs_no_size(tmp_path: Path) -> None:
    run("new", tmp_path / "f", "--kind", "scalable", "--growth", "3", "--tightening", "0.7")
    made = ScalableBloomFilter.load(tmp_path / "f")
    assert (made.growth, made.tightening) == (3.0, 0.7)
    assert made.capacity == ScalableBloomFilter().capacity


def test_keyed_filters_differ_in_their_secret(tmp_path: Path) -> None:
    for name in ("a", "b"):
        run("new", tmp_path / name, "--items", "100", "--hash", "keyed")
    a, b = BloomFilter.load(tmp_path / "a"), BloomFilter.load(tmp_path / "b")
    assert a.hash == "keyed"
    assert [a.positions(key) for key in "abc"] != [b.positions(key) for key in "abc"]


@pytest.mark.parametrize("shared", [[], ["--shared"]])
def test_an_existing_file_is_replaced_only_by_force(tmp_path: Path, shared: list[str]) -> None:
    file = tmp_path / "f.bloom"
    file.write_bytes(b"precious")
    assert "exists" in refused("new", file, "--items", "100", *shared)
    assert file.read_bytes() == b"precious"
    run("new", file, "--items", "100", "--force", *shared)
    assert BloomFilter.load(file).capacity == 100
    assert list(tmp_path.iterdir()) == [file]


def test_a_shared_file_is_sealed_and_can_be_opened(tmp_path: Path) -> None:
    file = tmp_path / "f.bloom"
    told = json.loads(run("new", file, "--items", "100", "--shared", "--json").stdout)
    assert told["file_bytes"] == file.stat().st_size
    assert told["state"] == "sealed"
    bloomtide.load(file).validate()
    with BloomFilter.open(file, mode="r+") as shared:
        assert shared.add("key")


def test_json_tells_what_was_made(tmp_path: Path) -> None:
    told = json.loads(run("new", tmp_path / "f", "--items", "1000", "--json").stdout)
    made = BloomFilter.load(tmp_path / "f")
    assert told["kind"] == "bloom"
    assert told["parameters"]["bits"] == made.bits
    assert told["stats"] == json.loads(json.dumps(made.stats().as_dict()))


@pytest.mark.parametrize(
    ("arguments", "blame"),
    [
        ([], "--items"),
        (["--items", "5", "--bits", "64", "--hashes", "3"], "bits"),
        (["--bits", "64"], "hashes"),
        (["--items", "5", "--shared", "--kind", "counting"], "--shared"),
        (["--items", "5", "--policy", "plain"], "--policy"),
        (["--items", "5", "--layout", "blocked", "--kind", "scalable"], "--layout"),
        (
            ["--cells", "999", "--hashes", "3", "--layout", "blocked", "--kind", "counting"],
            "hashes",
        ),
        (["--items", "5", "--seed", "-1"], "seed"),
        (["--items", "5", "--seed", "18446744073709551616"], "seed"),
        (["--items", "5", "--seed", "x"], "--seed"),
        (["--items", "5", "--hash", "md5"], "md5"),
        (["--items", "1e14"], "this machine has"),
        (["--items", "1e14", "--shared"], "create"),
        (["--items", "1e18"], "2**48"),
    ],
)
def test_a_wrong_argument_is_named_and_nothing_is_made(
    tmp_path: Path, arguments: list[str], blame: str
) -> None:
    assert blame in refused("new", tmp_path / "f", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    stderr = refused("new", tmp_path / "no" / "f", "--items", "5")
    assert "No such file or directory" in stderr


@pytest.mark.parametrize("shared", [[], ["--shared"]])
def test_force_replaces_nothing_that_is_no_file_and_writes_through_links(
    tmp_path: Path, shared: list[str]
) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    said = refused("new", pipe, "--items", "100", "--force", *shared)
    assert str(pipe) in said
    assert "named pipe" in said
    assert pipe.is_fifo()
    link.symlink_to("target")
    for _ in range(2):
        run("new", link, "--items", "100", "--force", *shared)
        assert link.is_symlink()
        assert BloomFilter.load(tmp_path / "target").capacity == 100
    assert sorted(found.name for found in tmp_path.iterdir()) == ["link", "pipe", "target"]
