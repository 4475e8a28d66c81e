"""The typer application: the list of commands, and how every outcome becomes an exit code.

0    yes, done                  2    error, told in one line with a hint
1    no, nothing selected     130    interrupted (ctrl-C)      141    the reader went away
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import bloomery
from bloomery.cli import console
from bloomery.cli.add import add
from bloomery.cli.check import check
from bloomery.cli.count import count
from bloomery.cli.dedup import dedup
from bloomery.cli.demo import demo
from bloomery.cli.history import history
from bloomery.cli.info import info
from bloomery.cli.light import for_typer
from bloomery.cli.merge import merge
from bloomery.cli.new import new
from bloomery.cli.plan import plan
from bloomery.cli.remove import remove
from bloomery.cli.serve import serve
from bloomery.cli.top import top
from bloomery.cli.validate import validate
from bloomery.cli.watch import watch
from bloomery.errors import BloomeryError, StorageError

COMMANDS = (
    plan, new, add, remove, check, count, info, merge, validate, top, for_typer(dedup), watch,
    serve, demo,
)  # fmt: skip


class Program(TyperGroup):
    """Runs a command, whose return value is its exit code, and tells its errors."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
            console.finish_stdout()
        except Exception as problem:  # noqa: BLE001 - nothing may end in a traceback
            code = tell(problem)
        sys.exit(code)


def tell(problem: Exception) -> int:
    """Say what went wrong on stderr and answer the exit code."""
    match problem:
        case console.ReaderGoneError():
            return 141
        case StorageError(errno=errno.ENOENT):
            # The library's hint speaks of Python; here the way out is another command.
            hint = "check the path and its folder; `bloomery new` makes a filter file"
            console.error(problem.message, hint)
        case BloomeryError() | console.CommandError():
            console.error(problem.message, problem.hint)
        case typer.TyperException():
            context = getattr(problem, "ctx", None)
            command = context.command_path if context else "bloomery"
            text = problem.format_message().replace("Value error, ", "").removesuffix(".")
            console.error(text, f"`{command} --help` lists what it takes")
        case OSError():
            named = f"{os.fsdecode(problem.filename)}: " if problem.filename else ""
            console.error(f"{named}{problem.strerror or problem}")
        case MemoryError():
            console.error("not enough memory", "`bloomery plan` tells the size beforehand")
        case _:
            if os.environ.get("BLOOMERY_TRACEBACK"):
                raise problem
            console.error(
                f"unexpected {type(problem).__name__}: {problem}",
                "a mistake in bloomery; BLOOMERY_TRACEBACK=1 shows where, please report it",
            )
    return 2


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        console.write_lines([f"bloomery {bloomery.__version__}".encode()])
        raise typer.Exit


app = typer.Typer(cls=Program, pretty_exceptions_enable=False, rich_markup_mode="markdown")


@app.callback(invoke_without_command=True)
def program(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Have I seen it, and how often? Answers about streams of keys in bounded memory.

    Data goes to stdout, messages to stderr. Exit codes are those of grep: 0 yes, 1 no, 2 error.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), nl=False)
        raise typer.Exit(2)


for command in COMMANDS:
    app.command()(command)
app.add_typer(history)
