"""`bloomtide remove`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bloomtide import CountingBloomFilter
from tests.cli.command import filter_of, refused, run


@pytest.fixture(params=["counting", "dcf"])
def file(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Holds `a` once, `b` twice and `c` three times."""
    return filter_of(tmp_path, ["a", "b", "b", "c", "c", "c"], "--kind", request.param)


def counts(file: Path) -> str:
    return run("count", file, stdin=b"a\nb\nc\n").stdout


def test_each_line_takes_one_occurrence_away(file: Path) -> None:
    result = run("remove", file, "--key", "a", "-", stdin=b"c\nb\nc\n")
    assert counts(file) == "0\ta\n1\tb\n1\tc\n"
    assert result.stderr == "4 removed\n"
    assert result.stdout == ""


def test_keys_come_from_files_too(file: Path, tmp_path: Path) -> None:
    (tmp_path / "keys.txt").write_bytes(b"a\r\nb")
    run("remove", file, tmp_path / "keys.txt")
    assert counts(file) == "0\ta\n1\tb\n3\tc\n"


def test_lines_can_say_how_often(file: Path) -> None:
    told = json.loads(run("remove", file, "--counts", "--json", stdin=b"3\tc\n2\tb\n").stdout)
    assert told == {"read": 2, "removed": 5}
    assert counts(file) == "1\ta\n0\tb\n0\tc\n"


@pytest.mark.parametrize(
    ("options", "stdin", "named"),
    [
        ([], b"a\nb\nnever\nc\n", "never is not there 1 times: at most 0"),
        ([], b"b\na\na\n", "a is not there 1 times: at most 0"),
        (["--counts"], b"1\ta\n4\tc\n", "c is not there 4 times: at most 3"),
        ([], b"\xff\n", "is not there"),
    ],
)
def test_an_absent_key_is_named_and_nothing_is_removed(
    file: Path, options: list[str], stdin: bytes, named: str
) -> None:
    before = file.read_bytes()
    assert named in refused("remove", file, *options, stdin=stdin)
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    "line", [b"a", b"0\ta", b"-1\ta", b"1.5\ta", b"\ta", b"x\ta", b"1" * 20 + b"\ta"]
)
@pytest.mark.parametrize("command", ["add", "remove"])
def test_a_line_without_a_count_is_refused(file: Path, command: str, line: bytes) -> None:
    before = file.read_bytes()
    assert "count<TAB>key" in refused(command, file, "--counts", stdin=b"1\tb\n" + line)
    assert file.read_bytes() == before


@pytest.mark.parametrize("kind", ["bloom", "scalable"])
@pytest.mark.parametrize("command", [["remove"], ["add", "--counts"]])
def test_a_filter_that_does_not_count_is_refused(
    tmp_path: Path, kind: str, command: list[str]
) -> None:
    file = filter_of(tmp_path, ["a"], "--kind", kind)
    before = file.read_bytes()
    told = refused(*command, file, stdin=b"1\ta\n")
    assert f"a {kind} filter, which does not count" in told
    assert file.read_bytes() == before


@pytest.mark.parametrize("kind", ["counting", "dcf", "sbf"])
def test_a_policy_that_cannot_remove_says_so(tmp_path: Path, kind: str) -> None:
    file = filter_of(tmp_path, ["a"], "--kind", kind, "--policy", "conservative")
    assert "conservative" in refused("remove", file, "--key", "a")


def test_counts_go_into_fixed_counters_as_well(tmp_path: Path) -> None:
    file = filter_of(tmp_path, [], "--kind", "counting", "--counter-bits", "16")
    told = run("add", file, "--counts", "--new", stdin=b"700\ta\n2\tb\n1\ta\n")
    assert told.stdout == "a\nb\n"
    filter = CountingBloomFilter.load(file)
    assert (filter.count("a"), filter.count("b")) == (701, 2)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "cannot open" in refused("remove", tmp_path / "none", "--key", "a")
