"""A filter that holds far more than it was made for: every command that meets it says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import run, run_process

KINDS: dict[str, list[str]] = {
    "bloom": [],
    "counting": ["--kind", "counting"],
    "dcf": ["--kind", "dcf"],
    "psbf": ["--kind", "psbf"],
    "tbf": ["--kind", "tbf", "--half-life", "100d"],
    "url": ["--kind", "url"],
}
LINES = b"".join(b"http://a.example/%d\n" % i for i in range(5000))


@pytest.mark.parametrize("kind", KINDS)
def test_every_command_warns_of_an_overfull_filter_in_one_line(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "f.bloom"
    run("new", file, "--items", "1000", "--error", "1%", *KINDS[kind])
    few = run("add", file, stdin=b"".join(LINES.splitlines(keepends=True)[:900]))
    assert "warning" not in few.stderr
    added = run("add", file, stdin=LINES)
    warned = [line for line in added.stderr.splitlines() if line.startswith("warning: ")]
    assert len(warned) == 1
    assert "made for 1000" in warned[0]
    assert "% of absent ones are called seen" in warned[0]
    checked = run("check", file, "--key", "http://a.example/1")
    assert checked.stderr.count("warning: ") == 1
    assert checked.stdout == "http://a.example/1\n"
    shown = run("info", file)
    assert "warning: the filter holds about" in shown.stdout
    assert shown.stderr == ""
    told = json.loads(run("info", "--json", file).stdout)["stats"]["warnings"]
    assert any("made for 1000" in line for line in told)


def test_the_warning_is_one_line_of_a_process_too(tmp_path: Path) -> None:
    """Without the place in a source file that Python prints."""
    file = tmp_path / "f.bloom"
    run("new", file, "--items", "1000")
    done = run_process("add", file, stdin=LINES)
    assert done.returncode == 0
    assert b".py" not in done.stderr
    assert done.stderr.count(b"warning: ") == 1


def test_a_merge_that_overfills_warns(tmp_path: Path) -> None:
    files = [tmp_path / f"{i}.bloom" for i in range(4)]
    for number, file in enumerate(files):
        run("new", file, "--items", "1000")
        run("add", file, stdin=b"".join(b"%d-%d\n" % (number, i) for i in range(1000)))
    assert "warning: " in run("merge", tmp_path / "all.bloom", *files).stderr


def test_a_scalable_filter_never_warns(tmp_path: Path) -> None:
    file = tmp_path / "f.bloom"
    run("new", file, "--items", "100", "--kind", "scalable")
    assert "warning" not in run("add", file, stdin=LINES).stderr
    assert "warning" not in run("info", file).stdout
