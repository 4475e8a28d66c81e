"""Prints a version's part of CHANGELOG.md: release_notes.py vX.Y.Z

Fails if the tag is not `v` and the version in Cargo.toml, or if the changelog has no such part.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def notes(tag: str, root: Path = ROOT) -> str:
    """What the changelog says about the version of that tag."""
    cargo = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))
    version = cargo["workspace"]["package"]["version"]
    if tag != f"v{version}":
        raise SystemExit(f"the tag is {tag}, but the version in Cargo.toml is {version}")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = rf"^## \[{re.escape(version)}\][^\n]*\n"
    part = re.search(heading + r"(.*?)(?=^## \[|\Z)", changelog, re.MULTILINE | re.DOTALL)
    if part is None or not part[1].strip():
        raise SystemExit(f"CHANGELOG.md has no part for {version}: rename its Unreleased")
    return part[1].strip() + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    sys.stdout.write(notes(sys.argv[1]))
