"""What commands that read logs say of them: lines that were skipped, files that are damaged."""

from __future__ import annotations

from collections.abc import Sequence

from bloomtide.cli import console
from bloomtide.records import BadLine, LogReport

WHAT = "a log"
FORM = "one request per line"
SHOWN = 10
"""Lines that were not understood and are shown."""


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
    logs = list(zip(names, reports, strict=True))
    if skipped and not sum(report.parsed for report in reports):
        name, line = _bad(logs)[0]
        console.error(f"no line was understood: {told(name, line)}", _way_out(name))
        return 2
    tell_odd(logs, by=by)
    if problems:
        return 2
    if interrupted:
        return 130
    return 0 if counted else 1


def tell_odd(logs: Sequence[tuple[str, LogReport]], *, by: str) -> None:
    """Tell which lines were not counted, and why."""
    if skipped := sum(report.skipped for _, report in logs):
        console.message(f"lines skipped: {skipped:,}; the first:")
        for name, line in _bad(logs)[:SHOWN]:
            console.message(f"  {told(name, line)}")
    if without := sum(report.without for _, report in logs):
        counted = any(report.counted for _, report in logs)
        known = "" if counted else "; the format may not have it"
        console.message(f"lines without a {by}: {without:,}{known}")


def _bad(logs: Sequence[tuple[str, LogReport]]) -> list[tuple[str, BadLine]]:
    return [(name, line) for name, report in logs for line in report.bad]


def told(name: str, line: BadLine) -> str:
    """Where the line is, what is wrong with it, and how it starts."""
    why = {
        "format": f"not {' or '.join(line.tried)}",
        "length": "longer than 65,536 bytes",
        "time": "more than a hundred years from the lines before",
    }
    what = "line"
    if is_redis(name):
        what = "entry"
        why = {
            "key": "no field of that name has the key",
            "count": "`count` is no whole number from 1 up",
            "time": "`time` is neither Unix seconds nor ISO 8601 with its zone",
        }
    where = f"{'stdin' if name == '-' else name}, {what} {line.number:,}"
    return f"{where}: {why[line.reason]}: {line.text[:80].decode('utf-8', 'backslashreplace')}"


def is_redis(name: str) -> bool:
    """Whether a source is a Redis Stream."""
    return name.startswith("redis://")


def _way_out(name: str) -> str:
    if is_redis(name):
        return "give entries a `key`, or name its field with ?key="
    return "name it with --format"
