"""The wrong Python, or a package without its compiled part: one sentence that says what to do."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import bloomtide

PACKAGE = Path(bloomtide.__file__).parent


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The sources of the package without the compiled module."""
    shutil.copytree(
        PACKAGE,
        tmp_path / "bloomtide",
        ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"),
    )
    return tmp_path


def fail(tree: Path, before: str = "", python: str = sys.executable) -> str:
    """The last line of the import that does not work."""
    code = f"import sys; sys.path.insert(0, {str(tree)!r})\n{before}\nimport bloomtide"
    done = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]


OLD = "bloomtide needs Python 3.11 or newer, and this is 3.10"


def test_an_older_python_is_told_which_one_is_needed(tree: Path) -> None:
    told = fail(tree, "sys.version_info = (3, 10, 13); sys.version = '3.10.13 (main)'")
    assert told == f"ImportError: {OLD}.13: run it with a newer one"


def runs(python: str) -> bool:
    """Whether there is such an interpreter; a version manager may have put a stub on the path."""
    found = shutil.which(python)
    return (
        found is not None and not subprocess.run([found, "-c", ""], capture_output=True).returncode
    )


@pytest.mark.skipif(not runs("python3.10"), reason="no Python 3.10 here")
def test_the_sentence_can_be_read_by_that_python(tree: Path) -> None:
    assert OLD in fail(tree, python="python3.10")


def test_a_tree_that_was_not_built_says_how_to_build_it(tree: Path) -> None:
    told = fail(tree)
    assert f"bloomtide has no compiled module in {tree / 'bloomtide'}" in told
    assert "-m pip install" in told
    assert "`make build`" in told


def test_a_module_of_another_python_is_named(tree: Path) -> None:
    name = "_core.cpython-399-riscv64-plan9.so"
    (tree / "bloomtide" / name).write_bytes(b"")
    told = fail(tree)
    assert f"bloomtide was built for another Python: {name} does not fit Python" in told
    assert EXTENSION_SUFFIXES[0] in told
    assert "-m pip install --force-reinstall bloomtide" in told


def test_a_module_that_cannot_be_loaded_is_named_with_the_reason(tree: Path) -> None:
    name = f"_core{EXTENSION_SUFFIXES[0]}"
    (tree / "bloomtide" / name).write_bytes(b"not a library")
    told = fail(tree)
    assert f"the compiled module of bloomtide, {name}, cannot be loaded by Python" in told
    assert "-m pip install --force-reinstall bloomtide" in told
