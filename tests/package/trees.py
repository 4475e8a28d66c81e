"""Programs run apart from the suite: with a declared set of extras and chosen packages hidden."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]

# What needs an extra, a package of it to hide, and what the message begins with.
NEEDS = {
    "guard": ("from bloomtide.guard import DatabaseGuard", "sqlalchemy", "`DatabaseGuard`"),
    "history": (
        "import bloomtide\n"
        "    bloomtide.History.open('elsewhere', catalogue='postgresql://there/store')",
        "sqlalchemy", "`catalogue`",
    ),
    "metrics": ("import bloomtide.guard.metrics", "prometheus_client", "`GuardMetrics`"),
    "scrapy": (
        "import bloomtide.integrations.scrapy", "scrapy", "`bloomtide.integrations.scrapy`",
    ),
    "django": ("from bloomtide.integrations.django import ModelGuard", "django", "`ModelGuard`"),
    "dask": ("import bloomtide.integrations.dask", "dask", "`bloomtide.integrations.dask`"),
    "ray": ("import bloomtide.integrations.ray", "ray", "`bloomtide.integrations.ray`"),
    "spark": ("import bloomtide.integrations.spark", "pyspark", "`bloomtide.integrations.spark`"),
    "distributed": (
        "from bloomtide import BloomFilter, distributed\n"
        "    distributed.build_partition([['a']], BloomFilter.plan(10, 0.1))",
        "zstandard", "`bloomtide.distributed`",
    ),
    "serve": (
        "import asyncio, pathlib\n"
        "    from bloomtide.server.run import serve\n"
        "    from bloomtide.server.settings import Settings\n"
        "    asyncio.run(serve(Settings(port=0, http_port=8380, appendonly=False)))",
        "starlette", "HTTP",
    ),
    "fsspec": (
        "import bloomtide\n"
        "    bloomtide.History.open('memory-store', location='memory://there')",
        "fsspec", "`location`",
    ),
}  # fmt: skip

_HIDE = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())

from bloomtide import extras
found = extras._find_installed
extras._find_installed = lambda: {{k: v for k, v in found().items() if k not in {names!r}}}
"""


def declare(folder: Path) -> Path:
    """A folder for the path whose metadata of bloomtide is what `pyproject.toml` says now."""
    metadata = folder / "bloomtide-0.0.1.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    lines = ["Metadata-Version: 2.4", "Name: bloomtide", "Version: 0.0.1"]
    for extra, declared in EXTRAS.items():
        for line in declared:
            requirement, _, marker = line.partition(";")
            condition = f"{marker.strip()} and extra" if marker else "extra"
            lines.append(f"Requires-Dist: {requirement} ; {condition} == '{extra}'")
    metadata.write_text("\n".join(lines) + "\n\nRequires-Dist: not-a-header ; extra == 'guard'\n")
    return folder


def install(folder: Path, package: str, version: str, source: str | None = None) -> None:
    """A package of one module; without a source it has only its metadata."""
    (folder / f"{package}-{version}.dist-info").mkdir(parents=True)
    if source is not None:
        (folder / f"{package}.py").write_text(source)


def run(code: str, *path: Path, hidden: tuple[str, ...] = ()) -> str:
    """What the program prints; these folders come first on its path."""
    before = f"import sys\nsys.path[:0] = {[str(each) for each in path]!r}\n"
    program = before + (_HIDE.format(names=set(hidden)) if hidden else "") + code
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask(use: str) -> str:
    """A program that prints the class and the text of the `ImportError` that this raises."""
    return (
        f"try:\n    {use}\nexcept ImportError as error:\n    print(type(error).__name__, error)\n"
    )
