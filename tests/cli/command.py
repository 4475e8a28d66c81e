"""Runs `bloomtide`: `run` in this process (fast), `start` and `run_process` as the user does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from bloomtide.cli.app import app

Argument = str | Path


def run(*arguments: Argument, stdin: bytes = b"", code: int = 0) -> Result:
    """Run a command that must exit with `code`."""
    result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)
    assert result.exit_code == code, result.output
    return result


def refused(*arguments: Argument, stdin: bytes = b"") -> str:
    """Run a command that must fail; answers its stderr: one `error:` line, maybe a `hint:`."""
    result = run(*arguments, stdin=stdin, code=2)
    lines = result.stderr.splitlines()
    assert lines[0].startswith("error: ")
    assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith("hint: "))
    return result.stderr


def start(*arguments: Argument, **options: Any) -> subprocess.Popen[bytes]:
    """Start the command as a process of its own, with the buffering users have."""
    options.setdefault("env", {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"})
    command = [sys.executable, "-m", "bloomtide", *map(str, arguments)]
    return subprocess.Popen(command, **options)


def run_process(
    *arguments: Argument, stdin: bytes = b"", **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run the command as a process of its own until it ends."""
    command = [sys.executable, "-m", "bloomtide", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=60, **options)


def filter_of(folder: Path, keys: Iterable[str], *options: str, name: str = "f.bloom") -> Path:
    """A filter file for a thousand keys that holds `keys`."""
    file = folder / name
    run("new", file, "--items", "1000", "--error", "1e-9", *options)
    run("add", file, stdin="".join(f"{key}\n" for key in keys).encode())
    return file
