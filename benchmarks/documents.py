"""Writes a run into the files that show it, between two markers, and leaves the rest alone."""

from __future__ import annotations

import json
from pathlib import Path


class MarkerError(ValueError):
    """A document lacks its markers, so there is no place to write to."""


def replace_between(text: str, name: str, body: str) -> str:
    """`text` with everything between the markers of `name` replaced by `body`."""
    start, end = f"<!-- {name}:start -->", f"<!-- {name}:end -->"
    if text.count(start) != 1 or text.count(end) != 1 or text.index(start) > text.index(end):
        raise MarkerError(f"the document needs one `{start}` and, after it, one `{end}`")
    before, rest = text.split(start)
    _, after = rest.split(end)
    return f"{before}{start}\n\n{body}\n\n{end}{after}"


def update(path: Path, name: str, body: str) -> None:
    """Rewrites the marked section of a file."""
    path.write_text(replace_between(path.read_text(), name, body))


def require(path: Path, name: str) -> None:
    """Refuses now what `update` would refuse after minutes of measuring."""
    replace_between(path.read_text(), name, "")


def write_json(path: Path, content: dict[str, object]) -> None:
    """A result file, one field a line, so that two runs can be compared by eye."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")
