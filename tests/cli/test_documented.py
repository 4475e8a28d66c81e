"""docs/reference/cli.md and `--help` name every command and option, both in the same words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from bloomtide.cli.app import app
from bloomtide.cli.lazy import LazyGroup
from tests.cli.command import run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md").read_text()
SECTIONS = dict(
    re.findall(r"^## `bloomtide ([\w ]+)`\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
)
GROUPS: dict[str, LazyGroup] = {"": app}


def commands_of(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command by what one types; those of a group by both words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            assert isinstance(command, LazyGroup)
            GROUPS[name] = command
            yield from commands_of(command, f"{name} ")
        else:
            yield before + name, command


COMMANDS = dict(commands_of(app))
OPTIONS = [
    pytest.param(name, parameter, id=f"{name} {parameter.opts[-1]}")
    for name, command in COMMANDS.items()
    for parameter in command.params
    if isinstance(parameter, click.Option)
]


def rows_of(name: str) -> list[str]:
    """The first cells of the tables in a command's section: its options as they are written."""
    cells = re.findall(r"^\| (`-.*?) \| ", SECTIONS[name], re.MULTILINE)
    return [written for cell in cells for written in re.findall(r"`(-.*?)`", cell)]


def test_every_command_has_its_section() -> None:
    assert list(SECTIONS) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_section_names_exactly_the_options_that_exist(name: str) -> None:
    named = {written.split()[0] for written in rows_of(name)}
    options = [p for p in COMMANDS[name].params if isinstance(p, click.Option)]
    assert named == {flag for option in options for flag in option.opts}


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_an_option_is_shown_as_one_types_it(name: str, option: click.Option) -> None:
    """A flag alone, any other with the word for its value: in the help and on the page."""
    typed = option.opts[-1] + ("" if option.is_flag else f" {option.metavar}")
    shown = ", ".join([*option.opts[:-1], typed])
    help_lines = run(*name.split(), "--help").stdout.splitlines()
    assert any(re.fullmatch(rf"  {re.escape(shown)}(  .*)?", line) for line in help_lines)
    assert typed.replace("|", "\\|") in rows_of(name)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_argument_and_option_has_a_help_text(name: str) -> None:
    command = COMMANDS[name]
    assert command.help
    assert "--json" in {flag for parameter in command.params for flag in parameter.opts}
    for parameter in command.params:
        assert isinstance(parameter, click.Option | click.Argument)
        assert parameter.help, parameter.name


@pytest.mark.parametrize("name", ["", "history", *COMMANDS])
def test_the_help_fits_eighty_columns(name: str) -> None:
    shown = run(*name.split(), "--help").stdout
    assert [line for line in shown.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_lists_all_of_its_commands_with_the_line_of_its_table(name: str) -> None:
    listed = run(*name.split(), "--help").stdout.split("Commands:\n")[1].splitlines()
    expected = {(key, entry.help) for key, entry in GROUPS[name].table.items()}
    assert {tuple(line.strip().split(maxsplit=1)) for line in listed} == expected


@pytest.mark.parametrize("name", GROUPS)
def test_the_table_of_a_group_has_the_names_of_its_commands(name: str) -> None:
    group = GROUPS[name]
    context = click.Context(group)
    found = {key: group.get_command(context, key) for key in group.table}
    assert {key: command and command.name for key, command in found.items()} == {
        key: key for key in found
    }


def test_options_of_the_program_itself_are_documented() -> None:
    flags = {flag for p in app.params for flag in p.opts}
    assert flags
    assert [flag for flag in flags if f"`{flag}`" not in PAGE] == []
