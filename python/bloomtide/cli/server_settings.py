"""What the commands that start a server share: its options, its settings, and its log."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bloomtide.cli.options import PATH, option, together

if TYPE_CHECKING:
    from bloomtide.server.settings import Settings

log = logging.getLogger("bloomtide.server")

server_options = together(
    option(
        "--password-file",
        metavar="FILE",
        type=PATH,
        help="Its one line is the password; or BLOOMTIDE_PASSWORD_FILE, BLOOMTIDE_PASSWORD.",
    ),
    option(
        "--http-token-file",
        metavar="FILE",
        type=PATH,
        help="The same for the token of HTTP; or BLOOMTIDE_HTTP_TOKEN_FILE, BLOOMTIDE_HTTP_TOKEN.",
    ),
    option(
        "--set",
        "set_",
        metavar="NAME=VALUE",
        multiple=True,
        help="Any other setting of the server: http-port=8080.",
    ),
)
"""Options of each of them."""


def read_settings(
    set_: Sequence[str],
    password_file: Path | None,
    http_token_file: Path | None,
    *,
    options: Mapping[str, str | None] | None = None,
    file: Path | None = None,
    preferred: Iterable[tuple[str, str]] = (),
) -> Settings:
    """The settings of a server, from everywhere; begins its log, with what is to be warned of."""
    from bloomtide.server.configuration import read_configuration

    files = {"requirepass-file": password_file, "http-token-file": http_token_file}
    pairs = [(name, value) for name, value in (options or {}).items() if value is not None]
    pairs += [(name, str(path)) for name, path in files.items() if path is not None]
    for item in set_:
        name, equals, value = item.partition("=")
        if not equals:
            raise click.BadParameter(f"{item!r} is not NAME=VALUE", param_hint="--set")
        pairs.append((name, value))
    found = read_configuration(pairs, file=file, preferred=preferred)
    # Messages go to stderr, with the time.
    logging.basicConfig(
        level=found.settings.loglevel.upper(),
        format="%(asctime)s %(levelname)s %(message)s",
        datefmt="%Y-%m-%dT%H:%M:%S%z",
    )
    for warning in found.warnings:
        log.warning(warning)
    return found.settings
