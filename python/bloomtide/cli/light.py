"""Commands that stand in pipes start without typer: importing it takes as long as a million lines.

A parameter is declared by an `Option` or an `Argument` of this file. `for_typer` turns the command
into one that typer understands. `read` reads a plain command line itself; help, mistakes and what
else is not plain are left to typer, so that there is one wording for each of them.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from bloomtide.cli import console

Command = Callable[..., int]


@dataclass(frozen=True, slots=True)
class Option:
    """A parameter with a name; one of type `bool` has no value."""

    names: tuple[str, ...]
    help: str
    metavar: str | None = None
    parser: Callable[[str], Any] | None = None


@dataclass(frozen=True, slots=True)
class Argument:
    """All that has no name."""

    metavar: str
    help: str


def for_typer(function: Command) -> Command:
    """The same command with parameters that typer understands."""
    import typer

    def translated(name: str) -> Any:
        base, info = _parameters(function)[name]
        if isinstance(info, Argument):
            made: Any = typer.Argument(metavar=info.metavar, help=info.help, show_default=False)
        else:
            words = {"metavar": info.metavar, "parser": info.parser, "help": info.help}
            made = typer.Option(*info.names, show_default=False, **words)  # type: ignore[arg-type]
        return Annotated[base, made]

    @functools.wraps(function)
    def command(**words: Any) -> int:
        return function(**words)

    signature = inspect.signature(function)
    parameters = [p.replace(annotation=translated(n)) for n, p in signature.parameters.items()]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": int}
    return command


def read(function: Command, arguments: Sequence[str]) -> dict[str, Any] | None:
    """The command's parameters; None if the line is not plain, or wrong."""
    parameters = _parameters(function)
    named = {
        flag: (name, base, info)
        for name, (base, info) in parameters.items()
        if isinstance(info, Option)
        for flag in info.names
    }
    [rest] = [name for name, (_, info) in parameters.items() if isinstance(info, Argument)]
    found: dict[str, Any] = {}
    others: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            others += words
        elif word == "-" or not word.startswith("-"):
            others.append(word)
        else:
            flag, equals, given = word.partition("=")
            if flag not in named:
                return None
            name, base, info = named[flag]
            if base is bool:
                if equals:
                    return None
                found[name] = True
                continue
            value = given if equals else next(words, None)
            try:
                found[name] = _value(base, info, value)
            except Exception:  # noqa: BLE001 - typer will meet it again, and tell it
                return None
    return found | ({rest: others} if others else {})


def run(function: Command, words: dict[str, Any]) -> int:
    """Runs the command; answers the exit code that the whole program gives to each outcome."""
    try:
        code = function(**words)
        console.finish_stdout()
    except console.ReaderGoneError:
        return 141
    except Exception as problem:  # noqa: BLE001 - nothing may end in a traceback
        from bloomtide.cli.app import tell

        return tell(problem)
    return code


def start(function: Command, arguments: Sequence[str]) -> None:
    """Runs the command and exits with its code, if the line is plain; else does nothing."""
    words = read(function, arguments)
    if words is not None:
        sys.exit(run(function, words))


def _parameters(function: Command) -> dict[str, tuple[Any, Option | Argument]]:
    """Of each parameter its type, without None, and how it was declared."""
    found = {}
    for name, hint in get_type_hints(function, include_extras=True).items():
        if get_origin(hint) is Annotated:
            base, info = get_args(hint)
            found[name] = (base, info)
    return found


def _value(base: Any, info: Option, text: str | None) -> Any:
    if text is None:
        raise ValueError("no value")
    if info.parser is not None:
        return info.parser(text)
    [kind] = [kind for kind in get_args(base) if kind is not type(None)] or [base]
    if get_origin(kind) is Literal:
        return get_args(kind)[get_args(kind).index(text)]
    return Path(text) if kind is Path else text
