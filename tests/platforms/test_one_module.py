"""What differs between operating systems is in `system.py` and, in the core, in `system/`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "bloomtide"
CRATES = ROOT / "crates"
MODULES = {"fcntl", "resource", "msvcrt", "pwd", "grp", "termios", "tty", "pty"}
CALLS = {
    "os.fork", "os.forkpty", "os.register_at_fork", "os.fdatasync", "os.O_DIRECTORY",
    "select.select", "select.poll", "select.epoll",
}  # fmt: skip
RUST = re.compile(r"\bcfg!?\([^)]*\b(unix|windows|target_os)\b|\bstd::os::|\blibc::|\.advise")
CLOCK = CRATES / "bloomtide-py" / "src" / "instants.rs"
"""The coarse clock of Linux, with its stand-in beside it: the core has no clock."""


def uses(source: str) -> Iterator[str]:
    """The modules imported and calls made that only `system.py` may."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names if alias.name in MODULES)
            case ast.ImportFrom(module=str(module)):
                if module in MODULES:
                    yield module
                yield from (
                    f"{module}.{alias.name}"
                    for alias in node.names
                    if f"{module}.{alias.name}" in CALLS
                )
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                if f"{name}.{attribute}" in CALLS:
                    yield f"{name}.{attribute}"


def test_one_python_module_uses_what_only_posix_has() -> None:
    found = {
        file.relative_to(PACKAGE).as_posix(): names
        for file in PACKAGE.rglob("*.py")
        if (names := set(uses(file.read_text(encoding="utf-8"))))
    }
    assert set(found) == {"system.py"}, found


def test_the_check_finds_imports_and_calls() -> None:
    source = "import os, fcntl\nfrom resource import getrlimit\nfrom os import fork\nos.fork()\n"
    assert sorted(uses(source)) == ["fcntl", "os.fork", "os.fork", "resource"]


def test_one_rust_module_names_operating_systems() -> None:
    found = {
        file
        for file in CRATES.rglob("*.rs")
        for line in file.read_text(encoding="utf-8").splitlines()
        if RUST.search(line.partition("//")[0])
    }
    system = CRATES / "bloomtide-core" / "src" / "system"
    assert found == {system / "mod.rs", system / "guarded.rs", CLOCK}
