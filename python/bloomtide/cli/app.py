"""The program: the table of its commands, and how every outcome becomes an exit code.

0    yes, done                  2    error, told in one line with a hint
1    no, nothing selected     130    interrupted (ctrl-C)      141    the reader went away
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

import click

import bloomtide
from bloomtide.cli import console
from bloomtide.cli.lazy import Entry, LazyGroup
from bloomtide.errors import BloomtideError, MissingExtraError, OverfullWarning, StorageError
from bloomtide.extras import require

NAME = "bloomtide"
COMPLETE = "_BLOOMTIDE_COMPLETE"
"""The environment variable by which a shell asks for completion."""

COMMANDS = {
    "plan": Entry("bloomtide.cli.plan:plan", "Size and error rate of a filter, before it is made."),
    "new": Entry("bloomtide.cli.new:new", "Make an empty filter file."),
    "add": Entry("bloomtide.cli.add:add", "Add keys, one per line, and tell how many were new."),
    "remove": Entry("bloomtide.cli.remove:remove", "Remove keys from a filter that counts."),
    "check": Entry("bloomtide.cli.check:check", "Print the keys that are present; as grep does."),
    "count": Entry("bloomtide.cli.count:count", "Print how often each key was added."),
    "info": Entry("bloomtide.cli.info:info", "Show a filter's parameters, fill and error rate."),
    "merge": Entry("bloomtide.cli.merge:merge", "Make one filter of all keys of several."),
    "validate": Entry("bloomtide.cli.validate:validate", "Check the checksums of filter files."),
    "top": Entry("bloomtide.cli.top.command:top", "Show what is hot in a web or proxy log."),
    "dedup": Entry(
        "bloomtide.cli.dedup.command:dedup", "Print each line the first time it is seen."
    ),
    "watch": Entry(
        "bloomtide.cli.watch.command:watch", "Watch logs and streams on a live page.", "watch"
    ),
    "serve": Entry(
        "bloomtide.cli.serve:serve", "Serve named filters to Redis clients and HTTP.", "serve"
    ),
    "demo": Entry("bloomtide.cli.demo.tour:demo", "A one-minute tour on generated web traffic."),
    "history": Entry(
        "bloomtide.cli.history.app:history",
        "Count keys by time, and ask about any range of it.",
    ),
}


class Program(LazyGroup):
    """Runs a command, whose return value is its exit code, and tells its errors.

    Click's own `main` is not used: it answers interrupts, ends of files and closed pipes itself.
    """

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> NoReturn:
        """Runs what the arguments, or else the process's own, ask for; exits with the code."""
        if wanted := os.environ.get(COMPLETE):
            from click.shell_completion import shell_complete

            sys.exit(shell_complete(self, {}, NAME, COMPLETE, wanted))
        arguments = list(sys.argv[1:] if args is None else args)
        try:
            with warnings.catch_warnings(), self.make_context(NAME, arguments) as context:
                warnings.simplefilter("always", OverfullWarning)
                warnings.showwarning = _show_warning  # type: ignore[assignment]
                code = self.invoke(context)
            console.finish_stdout()
        except click.exceptions.Exit as ended:
            code = ended.exit_code
        except Exception as problem:  # noqa: BLE001 - nothing may end in a traceback
            code = tell(problem)
        sys.exit(code)


def _show_warning(warning: Warning | str, *_: object, **__: object) -> None:
    """One line on stderr, without a place in our code."""
    console.warning(str(warning))


def tell(problem: Exception) -> int:
    """Say what went wrong on stderr and answer the exit code."""
    match problem:
        case console.ReaderGoneError():
            return 141
        case BrokenPipeError():
            console.discard_stdout()
            return 141
        case StorageError(errno=errno.ENOENT):
            # The library's hint speaks of Python; here the way out is another command.
            hint = "check the path and its folder; `bloomtide new` makes a filter file"
            console.error(problem.message, hint)
        case BloomtideError() | console.CommandError():
            console.error(problem.message, problem.hint)
        case click.ClickException():
            context = getattr(problem, "ctx", None)
            command = context.command_path if context else NAME
            text = " ".join(problem.format_message().split()).removesuffix(".")
            console.error(text, f"`{command} --help` lists what it takes")
        case ImportError():
            # The packages of extras have been told from this: it is our own that is not whole.
            console.error(
                f"the installation is broken: {problem}",
                "`pip install --force-reinstall bloomtide` replaces it",
            )
        case OSError():
            named = f"{os.fsdecode(problem.filename)}: " if problem.filename else ""
            console.error(f"{named}{problem.strerror or problem}")
        case MemoryError():
            console.error("not enough memory", "`bloomtide plan` tells the size beforehand")
        case UnicodeEncodeError(object=str(text)):
            console.error(
                f"not valid UTF-8: {text.encode(errors='replace').decode()}",
                "write the name of a field or format in UTF-8",
            )
        case _:
            if os.environ.get("BLOOMTIDE_TRACEBACK"):
                raise problem
            try:  # a package of a version that was never tried may do anything
                require("cli", "the command `bloomtide`")
            except MissingExtraError as missing:
                return tell(missing)
            console.error(
                f"unexpected {type(problem).__name__}: {problem}",
                "a mistake in bloomtide; BLOOMTIDE_TRACEBACK=1 shows where, please report it",
            )
    return 2


def show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the version and stop."""
    if wanted and not context.resilient_parsing:
        console.write_lines([f"{NAME} {bloomtide.__version__}".encode()])
        context.exit()


@click.command(cls=Program, table=COMMANDS)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=show_version,
    help="Show the version.",
)
def app() -> None:
    """Have I seen it, and how often? Answers about streams of keys in bounded memory.

    Data goes to stdout, messages to stderr. Exit codes are those of grep: 0 yes, 1 no, 2 error.
    """
