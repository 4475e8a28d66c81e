"""`bloomtide serve`: named filters for other programs, over the Redis protocol and HTTP."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

import bloomtide
from bloomtide.cli import console
from bloomtide.cli.options import PATH, flag, option
from bloomtide.cli.quantities import show_bytes, show_count
from bloomtide.cli.server_settings import read_settings, server_options
from bloomtide.system import require_posix

if TYPE_CHECKING:
    from bloomtide.server.listener import Server


@click.command()
@click.argument(
    "config",
    metavar="[FILE]",
    required=False,
    type=PATH,
    help="Settings, one `name value` a line as in redis.conf.",
)
@option("--port", metavar="PORT", help="Of the Redis protocol: 6380; 0 for none, or `auto`.")
@option("--http-port", metavar="PORT", help="Of HTTP and the page: 8380; 0 for none, or `auto`.")
@option(
    "--bind",
    metavar="ADDRESS",
    multiple=True,
    help="Where to listen: 127.0.0.1. Others need a password.",
)
@option("--dir", metavar="DIR", help="The data directory: bloomtide-data.")
@option(
    "--appendfsync",
    metavar="WHEN",
    help="When changes are forced to the disk: always, everysec (default) or no.",
)
@flag("--memory", help="Keep everything in memory only; no data directory.")
@option(
    "--maxmemory",
    metavar="SIZE",
    help="Refuse what would not fit, such as 4gb: half of the memory. 0 for no limit.",
)
@option("--maxkeys", metavar="NUMBER", help="Refuse new names beyond so many. 0 for no limit.")
@server_options
@option(
    "--repair",
    metavar="DIR",
    type=PATH,
    help="Cut a damaged journal where the damage begins, and stop.",
)
@flag("--json", help="Tell the start and the repair as JSON on stdout.")
def serve(
    config: Path | None,
    port: str | None,
    http_port: str | None,
    bind: tuple[str, ...],
    dir: str | None,
    appendfsync: str | None,
    memory: bool,
    maxmemory: str | None,
    maxkeys: str | None,
    password_file: Path | None,
    http_token_file: Path | None,
    set_: tuple[str, ...],
    repair: Path | None,
    json: bool,
) -> int:
    """Serve named filters to any Redis client: BF, CF, CMS, TOPK and more, kept on the disk.

    A command line can be read by others, so the password and the token of HTTP come from files or
    from the environment.
    """
    require_posix("`bloomtide serve`", lacks="fork")
    if repair is not None:
        return _repair(repair, json)
    given = {
        "port": port, "http-port": http_port, "dir": dir, "appendfsync": appendfsync,
        "maxmemory": maxmemory, "maxkeys": maxkeys, "bind": " ".join(bind) if bind else None,
        "appendonly": "no" if memory else None,
    }  # fmt: skip
    settings = read_settings(set_, password_file, http_token_file, options=given, file=config)
    from bloomtide.server.run import run
    from bloomtide.server.run import serve as serve_all

    run(serve_all(settings, ready=tell_ports if json else tell_start))
    return 0


def tell_ports(server: Server) -> None:
    """One line for programs: the ports may have been chosen by the system."""
    ports = {name.replace("-", "_"): port for name, port in server.ports.items()}
    console.write_lines([console.to_json({"pid": os.getpid(), **ports})])


def tell_start(server: Server) -> None:
    """One line for people, once everything answers."""
    settings, ports = server.settings, server.ports
    schemes = {"port": "redis", "tls-port": "rediss", "http-port": "http"}
    places = [
        f"{scheme}://{settings.address_of(ports[name])}"
        for name, scheme in schemes.items()
        if name in ports
    ]
    stats = server.keyspace.stats()
    kept = (
        f"{show_count(stats['keys'])} structures of {show_bytes(stats['bytes'])} "
        f"in {settings.dir} (fsync {settings.appendfsync})"
        if settings.appendonly
        else "everything in memory only"
    )
    console.message(
        f"bloomtide {bloomtide.__version__} serves {', '.join(places)}; {kept}; ctrl-C stops"
    )


def _repair(directory: Path, json: bool) -> int:
    from bloomtide.store import repair

    report = repair(directory)
    if json:
        console.write_json(asdict(report))
        return 0
    if not report.bytes_cut:
        console.message(f"{directory} is sound up to record {report.sequence}; nothing was changed")
        return 0
    console.message(
        f"cut {report.bytes_cut} bytes; {directory} now ends with record {report.sequence}. "
        f"What was cut is in {', '.join(report.kept)}"
    )
    return 0
