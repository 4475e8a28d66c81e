"""The page of commands and the server's COMMAND name the same commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.server.resp import Talk

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "commands.md"


def rows() -> list[tuple[str, str]]:
    """Each documented command with the section it stands in."""
    section, found = "", []
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            section = line[3:]
        if match := re.match(r"\| `([A-Z._]+)[ `]", line):
            found.append((match[1], section))
    return found


HOST = {"The server", "Histories, the monitor, guards"}
"""Sections of commands that Python answers."""


def test_every_native_command_has_one_row_and_every_row_a_command() -> None:
    told = sorted(name.upper() for name in Talk()("COMMAND", "LIST"))
    assert sorted(name for name, section in rows() if section not in HOST) == told


def test_every_command_that_python_answers_has_one_row() -> None:
    commands = pytest.importorskip("bloomtide.server.commands")
    assert sorted(name for name, section in rows() if section in HOST) == sorted(commands.HANDLERS)


def test_a_row_says_at_least_as_many_words_as_the_command_needs() -> None:
    talk = Talk()
    for line in PAGE.read_text().splitlines():
        match = re.match(r"\| `([A-Z._]+)((?: .*?)?)(?<!\\)` \|", line)
        if match is None or (about := talk("COMMAND", "INFO", match[1])[0]) is None:
            continue
        needed = re.sub(r"\[.*\]|\.\.\.", "", match[2].replace("\\|", "|")).split()
        arity = about[1]
        assert len(needed) + 1 == abs(arity) or arity < 0, line
        assert len(needed) + 1 >= abs(arity), line
