"""The wheel that is put into empty environments, built once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.package.environments import Environment, make_environment
from tests.package.trees import ROOT


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one that BLOOMTIDE_WHEEL names, or a new one."""
    if given := os.environ.get("BLOOMTIDE_WHEEL"):
        return Path(given)
    folder = tmp_path_factory.mktemp("wheel")
    maturin = shutil.which("maturin", path=str(Path(sys.executable).parent)) or "maturin"
    command = [maturin, "build", "--release", "--locked", "--out", str(folder)]
    subprocess.run([*command, "--interpreter", sys.executable], check=True, cwd=ROOT)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture
def environment(wheel: Path, tmp_path: Path) -> Callable[[str], Environment]:
    """Makes an empty environment with the wheel and an extra."""
    return lambda extra: make_environment(tmp_path / "environment", wheel, extra)
