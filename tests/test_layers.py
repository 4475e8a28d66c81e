"""Dependencies point downward only (ARCHITECTURE.md): the import rule, checked on the sources.

The checker reads files and imports nothing, so a forbidden import is caught wherever it stands:
at the top, inside a function, or for types only.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "bloomtide"
CORE_CRATES = (ROOT / "crates" / "bloomtide-core", ROOT / "crates" / "bloomtide-resp")

FACADE = "bloomtide"
"""`bloomtide/__init__.py`, the public names."""

LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"errors", "records", "core_missing", "plain"}),
    frozenset({"system", "extras", "columns"}),
    frozenset({"papers"}),
    frozenset({"_core"}),
    frozenset({"format", "partitions"}),
    frozenset({"memory_models", "durable"}),
    frozenset({"hot", "recent", "history", "guard", "trend"}),
    frozenset({"store"}),
    frozenset({"monitor"}),
    frozenset({FACADE}),
    frozenset({"stream", "distributed"}),
    frozenset({"integrations", "server"}),
    frozenset({"cli"}),
    frozenset({"__main__"}),
)
"""Bottom first. A part may import itself and every part of a lower layer, never a neighbour."""

ASIDE: dict[str, frozenset[str]] = {"reference": frozenset({"errors", "records"})}
"""The oracles stand beside the layers: they import only this, and no part imports them."""

FORBIDDEN_CRATES = frozenset({"pyo3", "numpy", "rand", "fastrand", "getrandom"})
FORBIDDEN_RUST = re.compile(r"\b(SystemTime|Instant|pyo3|rand::|fastrand|getrandom|RandomState)")


def allowed_imports() -> dict[str, frozenset[str]]:
    """For each part of the package, the other parts it may import."""
    allowed = dict(ASIDE)
    below: frozenset[str] = frozenset()
    for layer in LAYERS:
        allowed.update(dict.fromkeys(layer, below))
        below |= layer
    return allowed


def part_of(module: str, parts: frozenset[str]) -> str:
    """`bloomtide.cli.main` belongs to `cli`; a plain name of the package to the facade."""
    names = module.split(".")
    return names[1] if len(names) > 1 and names[1] in parts else FACADE


def imported_modules(source: str, module: str, *, is_package: bool) -> Iterator[str]:
    """The absolute names of everything a module imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                # One dot is the containing package: the module itself for an __init__ file.
                names = module.split(".")
                parent = names[: len(names) - node.level + is_package]
                base = ".".join([*parent, *filter(None, [node.module])])
            # `from bloomtide import cli` may name a submodule, so the imported name counts too.
            yield from (f"{base}.{alias.name}" for alias in node.names)


def import_violations(package: Path) -> list[str]:
    """Every import that breaks the rule, and every part that has no layer."""
    files = sorted([*package.rglob("*.py"), *package.rglob("*.pyi")])
    present = frozenset(file.relative_to(package).parts[0].split(".")[0] for file in files)
    allowed = allowed_imports()
    found = [
        f"`{part}` has no layer: add it to LAYERS"
        for part in sorted(present - {"__init__", *allowed})
    ]
    parts = present | frozenset(allowed)
    for file in files:
        names = [FACADE, *file.relative_to(package).with_suffix("").parts]
        is_package = names[-1] == "__init__"
        module = ".".join(names[:-1] if is_package else names)
        here = part_of(module, parts)
        for target in imported_modules(file.read_text(), module, is_package=is_package):
            if target.split(".")[0] != FACADE:
                continue
            there = part_of(target, parts)
            if there != here and there not in allowed.get(here, parts):
                found.append(f"{'.'.join(names)}: `{here}` must not import `{there}`")
    return found


def core_crate_violations(crate: Path) -> list[str]:
    """Python, clocks and global randomness in the crate that must know none of them."""
    manifest = tomllib.loads((crate / "Cargo.toml").read_text())
    tables = [manifest, *manifest.get("target", {}).values()]
    used = {name for table in tables for name in table.get("dependencies", {})}
    found = [f"Cargo.toml: depends on `{name}`" for name in sorted(used & FORBIDDEN_CRATES)]
    for file in sorted((crate / "src").rglob("*.rs")):
        for number, line in enumerate(file.read_text().splitlines(), start=1):
            # A comment may explain why there is no clock here.
            if match := FORBIDDEN_RUST.search(line.partition("//")[0]):
                found.append(f"{file.name}:{number}: uses `{match[1]}`")
    return found


def test_python_imports_point_downward() -> None:
    assert import_violations(PACKAGE) == []


@pytest.mark.parametrize("crate", CORE_CRATES, ids=lambda crate: crate.name)
def test_the_core_crates_know_no_python_no_clock_and_no_global_randomness(crate: Path) -> None:
    assert list((crate / "src").rglob("*.rs")), "no sources found, so nothing was checked"
    assert core_crate_violations(crate) == []


@pytest.mark.parametrize(
    ("file", "source", "blame"),
    [
        ("errors.py", "import bloomtide", "`errors` must not import `bloomtide`"),
        ("records.py", "from bloomtide.errors import X", "`records` must not import `errors`"),
        ("_core.pyi", "from bloomtide import BloomFilter", "`_core` must not import `bloomtide`"),
        ("__init__.py", "from bloomtide.cli import main", "`bloomtide` must not import `cli`"),
        ("__init__.py", "from .reference import bloom", "`bloomtide` must not import `reference`"),
        ("guard/sql.py", "from bloomtide import cli", "`guard` must not import `cli`"),
        ("store/disk.py", "from ..monitor.live import Live", "`store` must not import `monitor`"),
        ("server/run.py", "def f():\n    import bloomtide.cli", "`server` must not import `cli`"),
        ("cli/demo.py", "import bloomtide.reference.bloom", "`cli` must not import `reference`"),
        (
            "reference/bloom.py",
            "from bloomtide._core import X",
            "`reference` must not import `_core`",
        ),
        ("reference/__init__.py", "from .. import X", "`reference` must not import `bloomtide`"),
        ("stray.py", "", "`stray` has no layer"),
    ],
)
def test_the_checker_catches_a_forbidden_import(
    tmp_path: Path, file: str, source: str, blame: str
) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)
    [violation] = import_violations(tmp_path)
    assert blame in violation


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("__init__.py", "from bloomtide._core import BloomFilter\nfrom . import errors, records"),
        ("cli/main.py", "import bloomtide\nfrom bloomtide import BloomFilter, errors\nimport rich"),
        ("cli/main.py", "from . import plan\nfrom .plan import show\nfrom ..records import Plan"),
        ("server/http.py", "from bloomtide.store import History"),
        ("reference/bloom.py", "from bloomtide.errors import X\nfrom bloomtide.reference import Y"),
    ],
)
def test_the_checker_accepts_imports_of_lower_layers(
    tmp_path: Path, file: str, source: str
) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)
    assert import_violations(tmp_path) == []


@pytest.mark.parametrize(
    ("manifest", "source", "blame"),
    [
        ('[dependencies]\npyo3 = "1"', "", "depends on `pyo3`"),
        ('[target."cfg(unix)".dependencies]\nrand = "1"', "", "depends on `rand`"),
        ("", "use std::time::SystemTime;", "uses `SystemTime`"),
        ("", "let t = std::time::Instant::now();", "uses `Instant`"),
        ("", "let x: u64 = rand::random();", "uses `rand::`"),
    ],
)
def test_the_checker_catches_a_clock_or_a_forbidden_crate_in_the_core(
    tmp_path: Path, manifest: str, source: str, blame: str
) -> None:
    (tmp_path / "Cargo.toml").write_text(manifest)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "lib.rs").write_text(f"//! No Instant here.\n{source}\n")
    [violation] = core_crate_violations(tmp_path)
    assert blame in violation
