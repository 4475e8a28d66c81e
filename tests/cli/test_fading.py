"""Every command on a filter whose counts fade."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bloomtide import TimeDecayingBloomFilter
from tests.cli.command import filter_of, refused, run

NOON = "2026-01-31T12:00:00Z"
ONE = "2026-01-31T13:00:00Z"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Holds `a` once and `b` four times at noon; counts halve in an hour."""
    made = tmp_path / "hot.bloom"
    run("new", made, "--items", "1k", "--kind", "tbf", "--half-life", "1h")
    run("add", made, "--at", NOON, stdin=b"a\nb\nb\nb\nb\n")
    return made


def test_a_new_filter_has_what_was_asked_for(tmp_path: Path) -> None:
    run("new", tmp_path / "f", "--kind", "tbf", "--items", "1k", "--decay", "0.5", "--epoch", "15m",
        "--rounding", "expiring", "--layout", "classic", "--counter-bits", "16", "--policy",
        "conservative", "--storage", "basic", "--seed", "7")  # fmt: skip
    wanted = TimeDecayingBloomFilter(
        1000, 0.01, decay=0.5, epoch=900, rounding="expiring", layout="classic",
        counter_bits=16, policy="conservative", seed=7,
    )  # fmt: skip
    assert (tmp_path / "f").read_bytes() == wanted.to_bytes()
    run("new", tmp_path / "g", "--kind", "tbf", "--cells", "5000", "--hashes", "3",
        "--half-life", "1d")  # fmt: skip
    sized = TimeDecayingBloomFilter(cells=5000, hashes=3, half_life=86_400)
    assert (tmp_path / "g").read_bytes() == sized.to_bytes()


def test_counts_fade(file: Path) -> None:
    assert run("count", file, "--at", NOON, stdin=b"a\nb\nx\n").stdout == "1\ta\n4\tb\n0\tx\n"
    halved = run("count", file, "--at", ONE, stdin=b"b\n").stdout
    assert float(halved.split("\t")[0]) == pytest.approx(2, rel=0.01)
    assert run("count", file, "--key", "b").stdout == "0.00390625\tb\n"  # by today's clock


def test_json_has_the_bounds_of_that_moment(file: Path) -> None:
    answer = json.loads(run("count", file, "--json", "--at", NOON, "--key", "b").stdout)
    assert (answer["count"], answer["upper"], answer["saturated"]) == (4, 4, False)


def test_weighted_lines_are_added_at_their_time(file: Path) -> None:
    run("add", file, "--counts", "--at", ONE, stdin=b"30\tb\n")
    counted = float(run("count", file, "--at", ONE, "--key", "b").stdout.split("\t")[0])
    assert counted == pytest.approx(32, rel=0.01)


def test_the_past_is_refused(file: Path) -> None:
    assert "before the filter's own time" in refused(
        "count", file, "--at", "2026-01-31T11:00:00Z", "--key", "b"
    )


def test_a_time_goes_only_with_filters_that_keep_one(tmp_path: Path) -> None:
    other = filter_of(tmp_path, ["a"], "--kind", "counting")
    assert "keeps no time" in refused("count", other, "--at", NOON, "--key", "a")
    assert "keeps no time" in refused("add", other, "--at", NOON, "--key", "a")
    assert "--kind tbf" in refused("new", tmp_path / "x", "--items", "10", "--half-life", "1h")


def test_nothing_is_removed(file: Path) -> None:
    before = file.read_bytes()
    assert "does not remove" in refused("remove", file, "--key", "b")
    assert file.read_bytes() == before


def test_info_shows_the_fading(file: Path) -> None:
    facts = json.loads(run("info", file, "--json").stdout)
    assert facts["parameters"]["half_life"] == 3600
    assert facts["parameters"]["epoch"] == 360
    shown = run("info", file).stdout
    assert "half life" in shown
    assert "blocks" in shown


def test_a_half_life_plans_a_filter_that_fades() -> None:
    plan = json.loads(run("plan", "--items", "1M", "--half-life", "90m", "--json").stdout)["plan"]
    assert (plan["kind"], plan["half_life"], plan["epoch"]) == ("tbf", 5400, 540)
    shown = run("plan", "--items", "1M", "--half-life", "90m").stdout
    assert "1.5 h" in shown
    assert "9 min" in shown


def test_merged_files_are_at_the_later_time(file: Path, tmp_path: Path) -> None:
    run("new", tmp_path / "two", "--items", "1k", "--kind", "tbf", "--half-life", "1h")
    run("add", tmp_path / "two", "--at", ONE, "--key", "b")
    run("merge", tmp_path / "out", file, tmp_path / "two")
    counted = float(run("count", tmp_path / "out", "--at", ONE, "--key", "b").stdout.split()[0])
    assert counted == pytest.approx(3, rel=0.01)
