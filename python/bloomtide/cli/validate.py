"""`bloomtide validate`: is every byte of these files as it was written?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import bloomtide
from bloomtide.cli import console, progress
from bloomtide.cli.files import is_recent, read_state
from bloomtide.cli.options import PATH, as_json
from bloomtide.errors import BloomtideError, NotASnapshotError


@click.command()
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=PATH, help="The filter files."
)
@as_json
def validate(files: tuple[Path, ...], json: bool) -> int:
    """Check the checksums and the invariants of filter files; exit with 2 if any is bad."""
    reports = []
    with progress.files([str(file) for file in files], "checking") as advance:
        for file in files:
            reports.append(_examine(file))
            if file.exists():
                advance(file.stat().st_size)
    if json:
        console.write_json(reports)
    for report in reports:
        if report["ok"] and not json:
            console.write_lines([f"{report['file']}: ok, {report['kind']}".encode()])
        elif not report["ok"]:
            console.error(f"{report['file']}: {report['error']}", report["hint"])
    return 0 if all(report["ok"] for report in reports) else 2


def _examine(file: Path) -> dict[str, Any]:
    name = console.printable(str(file))
    try:
        filter: Any = bloomtide.load(file) if not is_recent(file) else read_state(file)
        filter.validate()
    except BloomtideError as problem:
        error, hint = problem.message.removeprefix(f"{file}: "), problem.hint
        if isinstance(problem, NotASnapshotError) and _is_exact_set(file):
            error = "this is the set of lines of a `dedup --exact` state, not a filter"
            state = name.removesuffix(".exact")
            hint = f"`bloomtide dedup --exact --state {state}` uses it; ExactSet.validate checks it"
        return {"file": name, "ok": False, "code": problem.code, "error": error, "hint": hint}
    return {"file": name, "ok": True, "kind": filter.stats().kind}


def _is_exact_set(file: Path) -> bool:
    from bloomtide.store.exact import is_exact_set  # SQLite takes a moment to import

    return is_exact_set(file)
