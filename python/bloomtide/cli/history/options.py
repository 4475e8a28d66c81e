"""Arguments and options of `bloomtide history`."""

from __future__ import annotations

import click

from bloomtide.cli.instants import parse_when
from bloomtide.cli.options import PATH, flag, option, together

store = click.argument("store", metavar="STORE", type=PATH, help="The store's directory.")
span = together(
    option(
        "--start",
        metavar="WHEN",
        type=parse_when,
        help="From here on: ISO 8601, in UTC if it names no zone, or Unix seconds; the store's"
        " beginning if not given.",
    ),
    option(
        "--end",
        metavar="WHEN",
        type=parse_when,
        help="Up to here, not included; the store's end if not given.",
    ),
    option(
        "--last",
        metavar="TIME",
        help="The last 90s, 15m, 1h or 7d instead, up to the store's latest event.",
    ),
)
"""The range of time that a question is about."""

as_csv = flag("--csv", help="Write CSV to stdout.")
as_arrow = flag("--arrow", help="Write an Arrow stream to stdout.")
