"""Dates and times on the command line: Unix seconds, or ISO 8601, which is UTC if no zone is named.

The library refuses a Python datetime without a zone, since a program may run anywhere. A person at
a shell means one clock, and logs, tables and messages here are all in UTC; so that is taken, and
said on stderr.
"""

from __future__ import annotations

from bloomtide._core import parse_instant
from bloomtide.cli import console
from bloomtide.cli.quantities import refuse
from bloomtide.errors import ParameterError

FORMS = "write 2026-01-31T09:00:00Z, 2026-01-31T10:00+01:00 or seconds since 1970"


def parse_when(text: str) -> float:
    """Seconds since 1970."""
    zoneless = False
    if text.isdecimal() and len(text) in (4, 8):  # 2026 or 20260131: a date, not a second of 1970
        refuse(f"'{text}' looks like a date: {FORMS}")
    try:
        value: object = float(text)
    except ValueError:
        from datetime import UTC, datetime

        try:
            moment = datetime.fromisoformat(text.strip())
        except ValueError:
            refuse(f"'{text}' is no date and time: {FORMS}")
        zoneless = moment.tzinfo is None
        value = moment.replace(tzinfo=UTC) if zoneless else moment
    try:
        seconds = float(parse_instant(value))
    except ParameterError:
        refuse(f"{text} is not between the years 1970 and 9999: {FORMS}")
    if zoneless:
        console.message(f"{text} names no time zone: taken as UTC")
    return seconds


def show_when(seconds: float) -> str:
    """`2026-01-31T09:00:00Z`"""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
