"""What commands that read logs say of them: lines that were skipped, files that are damaged."""

from __future__ import annotations

from collections.abc import Sequence

from bloomtide.cli import console
from bloomtide.records import BadLine, LogReport

WHAT = "a log"
FORM = "one request per line"


def finish(
    names: Sequence[str],
    reports: Sequence[LogReport],
    problems: Sequence[console.CommandError],
    *,
    by: str,
    interrupted: bool,
) -> int:
    """Tell what was wrong with the logs; answers the exit code."""
    counted = sum(report.counted for report in reports)
    skipped = sum(report.skipped for report in reports)
    for problem in problems:
        console.error(problem.message, problem.hint)
    bad = [(name, line) for name, report in zip(names, reports, strict=True) for line in report.bad]
    if skipped and not sum(report.parsed for report in reports):
        name, line = bad[0]
        console.error(f"no line was understood: {_told(name, line)}", "name it with --format")
        return 2
    if skipped:
        console.message(f"lines skipped: {skipped:,}; the first:")
        for name, line in bad:
            console.message(f"  {_told(name, line)}")
    if not counted and (without := sum(report.without for report in reports)):
        console.message(f"lines without a {by}: {without:,}; the format may not have it")
    if problems:
        return 2
    if interrupted:
        return 130
    return 0 if counted else 1


def _told(name: str, line: BadLine) -> str:
    """Where the line is, what is wrong with it, and how it starts."""
    where = f"{'stdin' if name == '-' else name}, line {line.number:,}"
    why = {
        "format": f"not {' or '.join(line.tried)}",
        "length": "longer than 65,536 bytes",
        "time": "more than a hundred years from the lines before",
    }[line.reason]
    return f"{where}: {why}: {line.text[:80].decode('utf-8', 'backslashreplace')}"
