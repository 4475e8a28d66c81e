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

import bloomtide
from bloomtide.cli import console
from bloomtide.cli.add import add
from bloomtide.cli.check import check
from bloomtide.cli.count import count
from bloomtide.cli.dedup import dedup
from bloomtide.cli.demo import demo
from bloomtide.cli.history import history
from bloomtide.cli.info import info
from bloomtide.cli.light import for_typer
from bloomtide.cli.merge import merge
from bloomtide.cli.new import new
from bloomtide.cli.plan import plan
from bloomtide.cli.remove import remove
from bloomtide.cli.serve import serve
from bloomtide.cli.top import top
from bloomtide.cli.validate import validate
from bloomtide.cli.watch import watch
from bloomtide.errors import BloomtideError, StorageError

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
            hint = "check the path and its folder; `bloomtide new` makes a filter file"
            console.error(problem.message, hint)
        case BloomtideError() | console.CommandError():
            console.error(problem.message, problem.hint)
        case typer.TyperException():
            context = getattr(problem, "ctx", None)
            command = context.command_path if context else "bloomtide"
            text = problem.format_message().replace("Value error, ", "").removesuffix(".")
            console.error(text, f"`{command} --help` lists what it takes")
        case OSError():
            named = f"{os.fsdecode(problem.filename)}: " if problem.filename else ""
            console.error(f"{named}{problem.strerror or problem}")
        case MemoryError():
            console.error("not enough memory", "`bloomtide plan` tells the size beforehand")
        case _:
            if os.environ.get("BLOOMTIDE_TRACEBACK"):
                raise problem
            console.error(
                f"unexpected {type(problem).__name__}: {problem}",
                "a mistake in bloomtide; BLOOMTIDE_TRACEBACK=1 shows where, please report it",
            )
    return 2


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        console.write_lines([f"bloomtide {bloomtide.__version__}".encode()])
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
