"""Why the compiled module cannot be imported, in one sentence, for `bloomtide/__init__.py`."""

from __future__ import annotations

import sys
import sysconfig
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path


def explain(error: ImportError) -> str:
    """Whether `_core` is absent, another Python's or broken, and what to do."""
    folder = Path(__file__).parent
    files = sorted(path.name for path in folder.glob("_core*") if path.suffix in (".so", ".pyd"))
    python = (
        f"Python {sys.version.split()[0]} ({sysconfig.get_platform()}, {EXTENSION_SUFFIXES[0]})"
    )
    again = f"{sys.executable} -m pip install --force-reinstall bloomtide"
    if not files:
        return (
            f"bloomtide has no compiled module in {folder}; install a wheel with "
            f"`{again}`, or build it in a source tree with `make build`"
        )
    if not any(name == f"_core{suffix}" for name in files for suffix in EXTENSION_SUFFIXES):
        return (
            f"bloomtide was built for another Python: {', '.join(files)} does not fit {python}; "
            f"install it with `{again}`"
        )
    return (
        f"the compiled module of bloomtide, {', '.join(files)}, cannot be loaded by {python}: "
        f"{error}; install it with `{again}`, or build it in a source tree with `make build`"
    )
