"""Empty virtual environments with the built wheel and one extra, and what lies in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# What tells a program where to look, or what an environment is made by, is not passed on.
_CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("PYTHON", "VIRTUAL_ENV", "BLOOMTIDE"))
}
_INSTALLERS = {"pip", "setuptools", "wheel"}


@dataclass(frozen=True, slots=True)
class Environment:
    """One virtual environment."""

    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    @property
    def site(self) -> Path:
        [site] = self.folder.glob("lib/python*/site-packages")
        return site

    def run(
        self, *command: str, input: str = "", cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program of the environment; its exit code is the caller's to judge."""
        return subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            input=input, capture_output=True, text=True, timeout=300, check=False, env=_CLEAN,
            cwd=cwd or self.folder,
        )  # fmt: skip

    def packages(self) -> set[str]:
        """The distributions in it, but for what installs them."""
        names = {path.name.partition("-")[0].lower() for path in self.site.glob("*.dist-info")}
        return names - _INSTALLERS

    def megabytes(self) -> float:
        """What the packages take on the disk, without bytecode and what installs them."""
        return (
            sum(
                path.stat().st_size
                for path in self.site.rglob("*")
                if path.is_file()
                and path.suffix != ".pyc"
                and path.relative_to(self.site).parts[0].partition("-")[0] not in _INSTALLERS
            )
            / 1e6
        )


def make_environment(folder: Path, wheel: Path, extra: str) -> Environment:
    """The wheel with one extra, or with none, and nothing else; needs a package index."""
    python = folder / "bin" / "python"
    wanted = f"{wheel.resolve()}[{extra}]" if extra else str(wheel.resolve())
    if uv := shutil.which("uv"):  # the same, ten times as fast
        commands = [
            [uv, "venv", "--quiet", "--python", sys.executable, str(folder)],
            [uv, "pip", "install", "--quiet", "--python", str(python), wanted],
        ]
    else:
        commands = [
            [sys.executable, "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wanted],
        ]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=_CLEAN)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return Environment(folder)
