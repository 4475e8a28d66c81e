"""docs/reference/cli.md names every command and every option, and nothing that does not exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from bloomtide.cli.app import app

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md").read_text()
SECTIONS = dict(
    re.findall(r"^## `bloomtide ([\w ]+)`\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
)
PROGRAM = get_command(app)


def commands_of(group: Any, before: str = "") -> dict[str, Any]:
    """Every command by what one types; those of a group by both words."""
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        inner = hasattr(command, "commands")
        found |= commands_of(command, f"{name} ") if inner else {before + name: command}
    return found


COMMANDS = commands_of(PROGRAM)


def options_of(name: str) -> set[str]:
    return {
        flag
        for parameter in COMMANDS[name].params
        if parameter.param_type_name == "option"
        for flag in parameter.opts
    } - {"--help"}


def test_every_command_has_its_section() -> None:
    assert COMMANDS
    assert list(SECTIONS) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_section_names_exactly_the_options_that_exist(name: str) -> None:
    rows = re.findall(r"^\| (`-.*?) \|", SECTIONS[name], re.MULTILINE)
    named = {flag for row in rows for flag in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", row)}
    assert named == options_of(name)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_has_a_help_text(name: str) -> None:
    command = COMMANDS[name]
    assert command.help
    assert "--json" in options_of(name)
    assert [p.name for p in command.params if p.name != "help" and not p.help] == []


def test_options_of_the_program_itself_are_documented() -> None:
    flags = {flag for p in PROGRAM.params for flag in p.opts if p.name != "help"}
    assert flags
    assert [flag for flag in flags if f"`{flag}`" not in PAGE] == []
