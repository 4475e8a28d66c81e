"""The command line: what is typed, completion, dates, and what is said when it cannot be meant."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest

from bloomtide.cli import app
from bloomtide.cli.instants import parse_when, show_when
from bloomtide.errors import MissingExtraError
from tests.cli.command import filter_of, refused, run, run_process

NINE = 1_769_850_000.0
"""2026-01-31T09:00:00Z"""


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T09:00:00Z",
        "2026-01-31T10:00+01:00",
        "2026-01-31 09:00:00.000Z",
        "20260131T090000Z",
        "1769850000",
        "1769850000.0",
        " 2026-01-31T09:00Z ",
    ],
)
def test_a_date_with_its_zone_is_read_without_a_word(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert parse_when(text) == NINE
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-01-31T09:00:00", NINE),
        ("2026-01-31 09:00", NINE),
        ("2026-01-31T09", NINE),
        ("2026-01-31", NINE - 9 * 3600),
    ],
)
def test_a_date_without_a_zone_is_utc_and_that_is_said(
    text: str,
    seconds: float,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert parse_when(text) == seconds
    assert capsys.readouterr() == ("", f"{text} names no time zone: taken as UTC\n")


@pytest.mark.parametrize(
    "text",
    ["", "noon", "nan", "inf", "-1", "1e13", "2026-13-01", "2026-01-31T25:00", "1969-12-31",
     "0001-01-01T00:00:00+14:00", "09:00", "31.01.2026"],
)  # fmt: skip
def test_what_is_no_date_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(click.BadParameter, match="write 2026-01-31T09:00:00Z"):
        parse_when(text)


def test_instants_are_shown_as_they_are_written() -> None:
    assert show_when(NINE) == "2026-01-31T09:00:00Z"
    assert show_when(NINE + 0.25) == "2026-01-31T09:00:00.250000Z"


def test_every_command_takes_a_date_without_a_zone(tmp_path: Path) -> None:
    log = b'192.0.2.1 - - [31/Jan/2026:09:00:00 +0000] "GET /a HTTP/1.1" 200 5\n'
    run("history", "ingest", tmp_path / "store", stdin=log)
    window = ("--start", "2026-01-31T09:00", "--end", "2026-01-31T09:01")
    for command in ("count", "series", "export"):
        done = run("history", command, tmp_path / "store", "--key", "/a", *window)
        assert "2026-01-31T09:00 names no time zone: taken as UTC" in done.stderr
    assert run("history", "top", tmp_path / "store", *window, "--json").stdout.count("/a") == 1
    assert '"at": 1769850060.0' in run("top", "--at", window[3], "--json", stdin=log).stdout
    file = filter_of(tmp_path, [], "--kind", "tbf", "--half-life", "1h")
    run("add", file, "--at", "2026-01-31T09:00", "--key", "b")
    assert run("count", file, "--at", "2026-01-31T09:00", "--key", "b").stdout == "1\tb\n"


def test_an_instant_that_is_refused_is_told_as_a_date(tmp_path: Path) -> None:
    file = filter_of(tmp_path, [], "--kind", "tbf", "--half-life", "1h")
    run("add", file, "--at", "2026-01-31T09:00Z", "--key", "b")
    told = refused("count", file, "--at", "2026-01-31T08:00Z", "--key", "b")
    assert "2026-01-31T08:00:00Z must be not before" in told
    assert "2026-01-31T09:00:00Z" in told
    log = b'192.0.2.1 - - [31/Jan/2026:09:00:00 +0000] "GET /a HTTP/1.1" 200 5\n'
    run("history", "ingest", tmp_path / "store", stdin=log)
    dates = ("--start", "2026-01-31T10:00Z", "--end", "2026-01-31T09:00Z")
    told = refused("history", "count", tmp_path / "store", *dates)
    assert "--start 2026-01-31T10:00:00Z is after --end 2026-01-31T09:00:00Z" in told


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("ad", "No such command 'ad'. Did you mean add?"),
        ("history cont", "Did you mean count"),
        ("check", "Missing argument 'FILE'"),
        ("check f --invrt", "--invert"),
        ("check f --invert=yes", "--invert"),
        ("plan --items", "--items"),
        ("plan --items many", "many"),
        ("top --by agent", "'referer'"),
        ("serve --set x", "NAME=VALUE"),
    ],
)
def test_a_wrong_line_is_one_error_that_says_whose_help_to_read(line: str, told: str) -> None:
    words = line.split()
    command = " ".join([word for word in words[:1] if word not in ("ad", "history")])
    command = "history" if words[0] == "history" else command
    stderr = refused(*words)
    assert told in stderr.splitlines()[0]
    assert f"`{f'bloomtide {command}'.strip()} --help`" in stderr


def test_words_behind_two_dashes_are_no_options(tmp_path: Path) -> None:
    odd = tmp_path / "--items"
    odd.write_text("a\na\n")
    done = run_process("dedup", "--", "--items", cwd=tmp_path)
    assert (done.stdout, done.returncode) == (b"a\n", 0)


def test_short_flags_may_stand_together(tmp_path: Path) -> None:
    file = filter_of(tmp_path, ["a"])
    assert run("check", file, "-vc", stdin=b"a\nb\nc\n").stdout == "2\n"


def completed(*words: str) -> list[str]:
    """What bash would offer for the last word; `file` where it is to name files itself."""
    asked = {
        "_BLOOMTIDE_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("bloomtide", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = run_process(env=os.environ | asked)
    assert done.returncode == 0
    offers = [line.split(",") for line in done.stdout.decode().splitlines()]
    return [text if kind == "plain" else kind for kind, text in offers]


def test_shells_complete_commands_options_and_values() -> None:
    assert completed("va") == ["validate"]
    assert completed("history", "se") == ["series", "segments"]
    assert completed("check", "--in") == ["--invert"]
    assert completed("top", "--by", "re") == ["referer"]
    assert completed("add", "seen.bl") == completed("add", "seen.bloom", "ke") == ["file"]
    assert completed("dedup", "li") == completed("history", "ingest", "st", "ac") == ["file"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_program_writes_what_a_shell_needs_for_completion(shell: str) -> None:
    done = run_process(env=os.environ | {"_BLOOMTIDE_COMPLETE": f"{shell}_source"})
    assert b"_BLOOMTIDE_COMPLETE" in done.stdout


@pytest.mark.parametrize("text", ["2026", "20260131"])
def test_a_date_without_its_dashes_is_not_taken_for_seconds(text: str) -> None:
    with pytest.raises(click.BadParameter, match="looks like a date"):
        parse_when(text)


def test_a_wrong_version_of_the_parser_is_not_a_mistake_of_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(extra: str, what: str) -> None:
        raise MissingExtraError(f"{what} needs click", hint=f"pip install {extra}")

    monkeypatch.setattr(app, "require", refuse)
    assert app.tell(TypeError("Parameter.__init__() got an unexpected keyword argument")) == 2
    told = capsys.readouterr().err
    assert "needs click" in told
    assert "mistake" not in told


def test_an_argument_that_is_no_utf_8_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    told = refused("dedup", tmp_path / "t.csv", "--key", os.fsdecode(b"\xff"))
    assert "not valid UTF-8" in told
