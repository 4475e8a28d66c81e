"""Every command on the four filters whose counters grow: sbf, dcf, psbf and pdcf."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import bloomtide
from bloomtide import (
    CountFilter,
    DynamicCountFilter,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    SpectralBloomFilter,
)
from tests.cli.command import filter_of, refused, run

KINDS = ("sbf", "dcf", "psbf", "pdcf")


def loaded(file: Path) -> CountFilter:
    filter = bloomtide.load(file)
    assert isinstance(filter, CountFilter)
    return filter


def test_a_new_filter_has_what_was_asked_for(tmp_path: Path) -> None:
    run("new", tmp_path / "sbf", "--kind", "sbf", "--items", "1k", "--error", "5%", "--total",
        "1M", "--slack", "0.3", "--layout", "classic", "--hashes", "3")  # fmt: skip
    spectral = SpectralBloomFilter(1000, 0.05, total=10**6, slack=0.3, layout="classic", hashes=3)
    assert (tmp_path / "sbf").read_bytes() == spectral.to_bytes()
    run("new", tmp_path / "pdcf", "--kind", "pdcf", "--items", "1k", "--partitions", "7",
        "--shrink", "0.2", "--counter-bits", "3", "--policy", "conservative")  # fmt: skip
    dynamic = PartitionedDynamicCountFilter(
        1000, 0.01, partitions=7, shrink=0.2, counter_bits=3, policy="conservative"
    )
    assert (tmp_path / "pdcf").read_bytes() == dynamic.to_bytes()


def test_partitions_can_be_left_to_the_filter(tmp_path: Path) -> None:
    run("new", tmp_path / "f", "--kind", "pdcf", "--items", "1k", "--partitions", "auto")
    wanted = PartitionedDynamicCountFilter(1000, 0.01)
    assert (tmp_path / "f").read_bytes() == wanted.to_bytes()


def test_sizes_can_be_given_instead_of_goals(tmp_path: Path) -> None:
    run("new", tmp_path / "f", "--kind", "dcf", "--cells", "5000", "--hashes", "3")
    assert (tmp_path / "f").read_bytes() == DynamicCountFilter(cells=5000, hashes=3).to_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_keys_are_added_counted_checked_and_removed(tmp_path: Path, kind: str) -> None:
    file = filter_of(tmp_path, ["a", "b", "b"], "--kind", kind)
    assert run("count", file, stdin=b"b\nx\na\n").stdout == "2\tb\n0\tx\n1\ta\n"
    assert run("check", file, stdin=b"b\nx\na\n").stdout == "b\na\n"
    run("remove", file, "--key", "b")
    assert run("count", file, stdin=b"b\na\n").stdout == "1\tb\n1\ta\n"
    assert run("validate", file).stdout == f"{file}: ok, {kind}\n"


@pytest.mark.parametrize("kind", KINDS)
def test_a_count_has_no_upper_end(tmp_path: Path, kind: str) -> None:
    file = filter_of(tmp_path, [], "--kind", kind)
    told = run("add", file, "--counts", "--json", stdin=b"5000000000000\thot\n3\tcold\n").stdout
    told = json.loads(told)
    assert (told["read"], told["added"]) == (2, 2)
    assert told["rebuilds"] >= 1
    result = run("count", file, stdin=b"hot\ncold\n")
    assert result.stdout == "5000000000000\thot\n3\tcold\n"
    assert result.stderr == ""


def test_a_rebuild_is_told_with_its_pause(tmp_path: Path) -> None:
    file = filter_of(tmp_path, ["a"], "--kind", "pdcf")
    assert "rebuild" not in run("add", file, "--key", "b").stderr
    told = run("add", file, "--counts", stdin=b"1000000\thot\n").stderr
    assert "1 new, 0 already there" in told
    assert "rebuilds, the longest took" in told


def test_counts_that_are_printed_can_be_added(tmp_path: Path) -> None:
    first = filter_of(tmp_path, ["a", "b", "b", "tab\tkey"], "--kind", "dcf")
    lines = run("count", first, stdin=b"a\nb\ntab\tkey\n").stdout_bytes
    second = filter_of(tmp_path, [], "--kind", "dcf", name="second")
    run("add", second, "--counts", stdin=lines)
    assert second.read_bytes() == first.read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_counter_that_has_lost_count_is_told(tmp_path: Path, kind: str) -> None:
    file = filter_of(tmp_path, [], "--kind", kind)
    run("add", file, "--counts", stdin=b"9223372036854775808\thot\n" * 2)
    assert loaded(file).stats().saturated > 0
    result = run("count", file, "--json", "--key", "hot", "-", stdin=b"hot\nnone\n")
    given, line, none = map(json.loads, result.stdout.splitlines())
    assert (given["saturated"], given["upper"], line["saturated"]) == (True, None, True)
    assert (none["saturated"], none["count"]) == (False, 0)
    assert "the true ones may be larger" in result.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_merged_counts_are_added_up(tmp_path: Path, kind: str) -> None:
    a = filter_of(tmp_path, ["x", "x", "y"], "--kind", kind, name="a")
    b = filter_of(tmp_path, ["x"], "--kind", kind, name="b")
    run("merge", tmp_path / "c", a, b)
    assert run("count", tmp_path / "c", stdin=b"x\ny\n").stdout == "3\tx\n1\ty\n"


def test_filters_of_other_partitions_are_not_merged(tmp_path: Path) -> None:
    a = filter_of(tmp_path, ["x"], "--kind", "pdcf", "--partitions", "2", name="a")
    b = filter_of(tmp_path, ["x"], "--kind", "pdcf", "--partitions", "3", name="b")
    assert "partitions" in refused("merge", tmp_path / "c", a, b)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_info_shows_the_parameters_and_the_partitions(tmp_path: Path, kind: str) -> None:
    more = ["--partitions", "5"] if kind[0] == "p" else []
    file = filter_of(tmp_path, ["x"], "--kind", kind, "--total", "50k", *more)
    told = json.loads(run("info", file, "--json").stdout)
    wanted = 5 if more else 1
    assert (told["kind"], told["parameters"]["total"]) == (kind, 50_000)
    assert told["parameters"]["partitions"] == told["stats"]["partitions"] == wanted
    shown = [line.split() for line in run("info", file).stdout.splitlines()]
    assert ["partitions", str(wanted)] in shown
    assert ["saturated", "0", "counters"] in shown


@pytest.mark.parametrize(
    ("arguments", "blame"),
    [
        (["--kind", "dcf"], "--cells"),
        (["--kind", "dcf", "--items", "5", "--slack", "0.1"], "--kind sbf or psbf"),
        (["--kind", "sbf", "--items", "5", "--counter-bits", "4"], "--counter-bits"),
        (["--kind", "sbf", "--items", "5", "--partitions", "2"], "--kind psbf or pdcf"),
        (["--kind", "counting", "--items", "5", "--total", "50"], "--total"),
        (["--kind", "counting", "--items", "5", "--policy", "recurring_minimum"], "policy"),
        (["--kind", "bloom", "--cells", "50"], "--cells"),
        (["--kind", "pdcf", "--bits", "50"], "--bits"),
        (["--kind", "pdcf", "--items", "5", "--partitions", "0"], "--partitions"),
        (["--kind", "pdcf", "--items", "5", "--partitions", "1e9"], "partitions"),
        (["--kind", "dcf", "--items", "5", "--total", "4"], "total"),
        (["--kind", "dcf", "--items", "5", "--shrink", "2"], "shrink"),
        (["--kind", "dcf", "--items", "5", "--counter-bits", "33"], "counter_bits"),
        (["--kind", "sbf", "--items", "5", "--slack", "nan"], "slack"),
        (["--kind", "sbf", "--items", "5", "--shared"], "--shared"),
    ],
)
def test_a_wrong_argument_is_named_and_nothing_is_made(
    tmp_path: Path, arguments: list[str], blame: str
) -> None:
    assert blame in refused("new", tmp_path / "f", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_partitioned_file_is_loaded_as_its_class(tmp_path: Path) -> None:
    file = filter_of(tmp_path, ["x"], "--kind", "psbf")
    assert type(loaded(file)) is PartitionedSpectralBloomFilter
