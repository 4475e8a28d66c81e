"""`bloomtide check`, the grep of filters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import filter_of, refused, run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return filter_of(tmp_path, ["a", "b", "c"])


def test_present_lines_are_printed_as_they_came(file: Path) -> None:
    assert run("check", file, stdin=b"c\nx\na\n").stdout == "c\na\n"


def test_invert_prints_the_certainly_absent(file: Path) -> None:
    assert run("check", file, "-v", stdin=b"c\nx\na\n").stdout == "x\n"
    assert run("check", file, "--invert", stdin=b"c\nx\na\n").stdout == "x\n"


@pytest.mark.parametrize(
    ("options", "stdin", "code"),
    [
        ([], b"x\na\n", 0),
        ([], b"x\n", 1),
        ([], b"", 1),
        (["-v"], b"a\n", 1),
        (["-v"], b"a\nx\n", 0),
        (["-c"], b"x\n", 1),
        (["-q"], b"x\n", 1),
        (["-q"], b"x\na\n", 0),
        (["-q", "-v"], b"a\n", 1),
    ],
)
def test_the_exit_code_says_whether_a_line_was_selected(
    file: Path, options: list[str], stdin: bytes, code: int
) -> None:
    run("check", file, *options, stdin=stdin, code=code)


def test_count_prints_only_the_number(file: Path) -> None:
    assert run("check", file, "-c", stdin=b"a\nx\na\n").stdout == "2\n"
    assert run("check", file, "--count", "-v", stdin=b"a\nx\na\n").stdout == "1\n"


def test_quiet_prints_nothing(file: Path) -> None:
    result = run("check", file, "--quiet", "--json", "-c", stdin=b"a\nx\n")
    assert result.output == ""


def test_json_is_one_object_for_each_selected_key(file: Path) -> None:
    result = run("check", file, "--json", stdin=b"a\nx\nb\n")
    assert list(map(json.loads, result.stdout.splitlines())) == [
        {"key": "a", "present": True},
        {"key": "b", "present": True},
    ]
    result = run("check", file, "--json", "-v", stdin=b"a\n\xff\n")
    assert json.loads(result.stdout) == {"key_base64": "/w==", "present": False}
    result = run("check", file, "--json", "-c", stdin=b"a\nx\nb\n")
    assert json.loads(result.stdout) == {"read": 3, "selected": 2}


@pytest.mark.parametrize("kind", ["scalable", "counting"])
def test_every_kind_can_be_checked(tmp_path: Path, kind: str) -> None:
    file = filter_of(tmp_path, ["a"], "--kind", kind)
    assert run("check", file, "--key", "a", "--key", "x").stdout == "a\n"


def test_a_check_changes_no_byte_of_the_file(file: Path) -> None:
    before = file.read_bytes(), file.stat().st_mtime_ns
    run("check", file, stdin=b"a\nx\n")
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before


def test_a_missing_filter_or_key_file_is_an_error_not_a_no(file: Path) -> None:
    stderr = refused("check", file.with_name("missing"), "--key", "a")
    assert "No such file" in stderr
    assert "`bloomtide new`" in stderr
    assert "No such file" in refused("check", file, file.with_name("missing"))
    assert "s a directory" in refused("check", file, file.parent)
