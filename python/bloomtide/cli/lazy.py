"""A group that knows its commands by name, and imports one when it is called."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def raise_missing(problem: ImportError, extra: str, what: str) -> NoReturn:
    """Names what is not installed, or is broken; looked for only now, since it takes its time."""
    from bloomtide.extras import require

    require("cli", what)
    with require(extra, what):
        raise problem
    raise AssertionError("the block raised")


class Entry(NamedTuple):
    """Where a command is, and the line that its group says about it."""

    place: str
    """`package.module:name`"""
    help: str
    extra: str = "cli"
    """Of `pyproject.toml`: what must be installed for it."""


class LazyGroup(click.Group):
    """A group of commands in modules of their own."""

    def __init__(self, name: str | None, table: Mapping[str, Entry], **options: Any) -> None:
        super().__init__(name, subcommand_metavar="COMMAND ...", **options)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name not in self.table:
            return None
        module, _, name = self.table[cmd_name].place.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without a command the help is shown; that is not what was wanted, so the code is 2."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Click compares an unknown name with commands that were imported, which are none."""
        if args[0] not in self.table and not ctx.resilient_parsing:
            from difflib import get_close_matches

            near = get_close_matches(args[0], self.table)
            meant = f" Did you mean {' or '.join(near)}?" if near else ""
            ctx.fail(f"No such command '{args[0]}'.{meant}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Adds what Click and Python leave out of an error: the command, and what to install."""
        try:
            return super().invoke(ctx)
        except click.UsageError as problem:
            if problem.ctx is None and (name := ctx.invoked_subcommand) is not None:
                command = self.get_command(ctx, name) or self
                problem.ctx = click.Context(command, parent=ctx, info_name=name)
            raise
        except ImportError as problem:
            name = ctx.invoked_subcommand or ""
            raise_missing(problem, self.table[name].extra, f"`{ctx.command_path} {name}`")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """From the table: nothing is imported to be listed."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.table.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names, also without an import, and the options."""
        from click.shell_completion import CompletionItem

        names = [
            CompletionItem(name, help=entry.help)
            for name, entry in self.table.items()
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)
