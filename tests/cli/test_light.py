"""A command line that is read without typer says the same as with it, or is left to typer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.testing import CliRunner

from bloomtide.cli import light
from bloomtide.cli.dedup import dedup
from bloomtide.cli.light import Argument, Option
from bloomtide.cli.quantities import parse_items
from tests.cli.command import run_process

SEEN: list[dict[str, Any]] = []


def command(
    files: Annotated[list[str] | None, Argument("FILE", "Files.")] = None,
    state: Annotated[Path | None, Option(("--state",), "A file.")] = None,
    items: Annotated[int | None, Option(("--items",), "A number.", parser=parse_items)] = None,
    form: Annotated[Literal["csv", "tsv"] | None, Option(("--form",), "One of these.")] = None,
    key: Annotated[str | None, Option(("-k", "--key"), "A text.")] = None,
    invert: Annotated[bool, Option(("-v", "--invert"), "A flag.")] = False,
) -> int:
    """A command."""
    SEEN.append({name: value for name, value in locals().items() if value not in (None, False, [])})
    return 0


APP = typer.Typer()
APP.command()(light.for_typer(command))


@pytest.mark.parametrize(
    "line",
    [
        "",
        "a - b.gz",
        "--items 5M a",
        "a --items=1e3 --state x/y",
        "-v --form csv -- --items",
        "--invert -k 5 --key=a=b",
        "--key --items",
        "--key= a",
        "--items 1 --items 2",
    ],
)
def test_a_plain_line_is_read_as_typer_reads_it(line: str) -> None:
    SEEN.clear()
    result = CliRunner().invoke(APP, line.split())
    assert result.exit_code == 0, result.output
    read = light.read(command, line.split())
    assert read is not None
    command(**read)
    assert SEEN[0] == SEEN[1]


@pytest.mark.parametrize(
    "line",
    ["--help", "--item 5", "--items", "--items many", "--form xml", "--invert=yes", "-vk x", "-x"],
)
def test_whatever_is_not_plain_is_left_to_typer(line: str) -> None:
    assert light.read(command, line.split()) is None


def test_every_parameter_of_dedup_is_read() -> None:
    line = (
        "--state s --items auto --error 1% --exact --url --key k --format csv --within 1h"
        " --time t --invert --count --stats --json a b"
    )
    assert light.read(dedup, line.split()) == {
        "state": Path("s"), "items": 0, "error": 0.01, "exact": True, "url": True, "key": "k",
        "format": "csv", "within": "1h", "time": "t", "invert": True, "count": True,
        "stats": True, "json": True, "files": ["a", "b"],
    }  # fmt: skip


def test_mistakes_are_told_as_typer_does() -> None:
    for arguments in (["--items", "x"], ["--nope"], ["--time", "t"], ["--state", "/none/x"]):
        done = run_process("dedup", *arguments)
        assert done.returncode == 2
        assert done.stderr.startswith(b"error: ")
        assert done.stdout == b""
    assert b"--within" in run_process("dedup", "--help").stdout


def test_neither_typer_nor_numpy_is_imported_for_lines() -> None:
    code = (
        "import sys; sys.argv[1:] = ['dedup', '--items', '1k']\n"
        "from bloomtide.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert ended.code == 0\n"
        "found = {'typer', 'numpy', 'rich', 'pydantic', 'pyarrow'} & set(sys.modules)\n"
        "assert not found, found\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input=b"a\na\n", capture_output=True)
    assert (done.stdout, done.stderr, done.returncode) == (b"a\n", b"", 0)
