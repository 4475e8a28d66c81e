"""`bloomtide count`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bloomtide import CountingBloomFilter
from tests.cli.command import filter_of, refused, run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Holds `a` once, `b` twice and `y` forty times, which is more than 4 bits can count."""
    return filter_of(tmp_path, ["a", "b", "b", *["y"] * 40], "--kind", "counting")


def test_each_line_gets_its_count(file: Path) -> None:
    result = run("count", file, stdin=b"b\nx\na\n\xff\n")
    assert result.stdout_bytes == b"2\tb\n0\tx\n1\ta\n0\t\xff\n"
    assert result.stderr == ""


def test_a_full_counter_is_told(file: Path) -> None:
    result = run("count", file, "--key", "y")
    assert result.stdout == "15\ty\n"
    assert "the true ones may be larger" in result.stderr


def test_no_count_above_zero_exits_with_one(file: Path) -> None:
    run("count", file, "--key", "x", code=1)
    run("count", file, "--json", "--key", "x", code=1)
    run("count", file, "--json", "--key", "x", "--key", "a", code=0)


def test_json_gives_given_keys_their_bounds(file: Path) -> None:
    result = run("count", file, "--json", "--key", "b", "--key", "y", "-", stdin=b"a\ny\n")
    b, y, a_line, y_line = map(json.loads, result.stdout.splitlines())
    truth = CountingBloomFilter.load(file).estimate("b")
    assert b == {
        "key": "b",
        "count": 2,
        "saturated": False,
        "lower": truth.lower,
        "upper": truth.upper,
        "confidence": truth.confidence,
    }
    assert (y["count"], y["saturated"], y["upper"]) == (15, True, None)
    assert a_line == {"key": "a", "count": 1, "saturated": False}
    assert y_line == {"key": "y", "count": 15, "saturated": True}


@pytest.mark.parametrize("kind", ["bloom", "scalable"])
def test_a_filter_that_does_not_count_is_refused(tmp_path: Path, kind: str) -> None:
    file = filter_of(tmp_path, ["a"], "--kind", kind)
    assert f"a {kind} filter, which does not count" in refused("count", file, "--key", "a")
