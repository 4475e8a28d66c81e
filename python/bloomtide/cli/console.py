"""Where the command line writes: data to stdout, everything else to stderr.

Every write to stdout goes through here, so that a reader who left (`| head`) is noticed in one
place and ends the command quietly.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import click

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


class CommandError(Exception):
    """The command cannot do what was asked; told as `error:` and `hint:`, exit code 2."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ReaderGoneError(Exception):
    """Whoever read our stdout closed it. Not an OSError: those are told, and this one is not."""


def write_lines(lines: list[bytes]) -> None:
    """Write each item and a newline to stdout."""
    if lines:
        write(b"\n".join(lines) + b"\n")


def write(data: bytes) -> None:
    """Write bytes to stdout, and flush: the next program may be waiting."""
    if data:
        with _writing() as stdout:
            rest = memoryview(data)
            while rest:  # with PYTHONUNBUFFERED a write may take a part only
                rest = rest[stdout.write(rest) :]
            stdout.flush()


def write_json(value: Any) -> None:
    """Write one JSON document to stdout."""
    write_lines([to_json(value, indent=2)])


def to_json(value: Any, *, indent: int | None = None) -> bytes:
    """Strict JSON as ASCII: what JSON cannot say (infinity, nan) becomes null."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False).encode()


def key_json(key: bytes) -> dict[str, str]:
    """A key as JSON fields: its text, or base64 when the bytes are not UTF-8."""
    try:
        return {"key": key.decode()}
    except UnicodeDecodeError:
        from base64 import b64encode

        return {"key_base64": b64encode(key).decode()}


def show(*renderables: RenderableType) -> None:
    """Show tables and text on stdout, in colour when it is a terminal."""
    with _writing():
        console = _console(stderr=False)
        for renderable in renderables:
            console.print(renderable)


def message(text: str) -> None:
    """Tell something on stderr that is not the command's data."""
    _tell(text)


def warning(text: str) -> None:
    """Tell what makes answers worse than was asked for."""
    _tell(text, "warning: ", "yellow")


def error(text: str, hint: str = "") -> None:
    """Tell what went wrong, and below it what to do."""
    _tell(text, "error: ", "red")
    if hint:
        _tell(hint, "hint: ", "cyan")


def printable(text: str) -> str:
    """One line that no terminal obeys and every encoding can write: odd characters are escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def finish_stdout() -> None:
    """Write out what is still buffered, while errors can still be told."""
    if sys.stdout is not None:
        with _writing():
            sys.stdout.flush()


def discard_stdout() -> None:
    """Point stdout at nothing: the interpreter's own flush at exit would complain again."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def stderr_console() -> Console:
    """The console for messages and progress."""
    return _console(stderr=True)


def stdout_console() -> Console:
    """The console for what is drawn on stdout again and again."""
    return _console(stderr=False)


def _tell(text: str, label: str = "", colour: str = "") -> None:
    """One message is one line, however narrow the terminal is."""
    if sys.stderr is None:
        return
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") in {"dumb", "unknown"}
    styled = click.style(label, fg=colour, bold=True) if label and not plain else label
    with contextlib.suppress(OSError):
        click.echo(styled + printable(text), err=True)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    console = Quiet(stderr=stderr, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = 120  # no terminal to fit: rich would fold at 80
    return console


@contextlib.contextmanager
def _writing() -> Iterator[BinaryIO]:
    if sys.stdout is None:
        raise CommandError("stdout is closed", hint="send it to a file, a pipe or /dev/null")
    try:
        yield sys.stdout.buffer
    except BrokenPipeError:
        discard_stdout()
        raise ReaderGoneError from None
    except OSError as problem:
        discard_stdout()
        raise CommandError(f"cannot write to stdout: {problem.strerror}") from None


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
