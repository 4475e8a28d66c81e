"""The command: run the shop, or let visitors loose on it.

python examples/shop                 the shop on http://127.0.0.1:8000
python examples/shop load            page rate and latency, with and without the guard
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
from dataclasses import fields, replace

import uvicorn

from webshop.app import Settings, create_app
from webshop.load import Load, compare, table


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python examples/shop", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("serve", "load"), default="serve")
    known = Settings()
    parser.add_argument("--database", default=known.database, help="an async URL of SQLAlchemy")
    parser.add_argument(
        "--customers", type=int, default=known.customers, help="how many are seeded"
    )
    parser.add_argument("--full", type=float, default=known.full, help="share with a basket")
    parser.add_argument(
        "--guard", choices=("on", "off"), default="on", help="serve: whether at all"
    )
    parser.add_argument("--port", type=int, default=8000, help="serve: 0 for any free one")
    parser.add_argument("--seconds", type=float, default=5.0, help="load: of each round")
    parser.add_argument("--rounds", type=int, default=3, help="load: with and without, each")
    parser.add_argument("--visitors", type=int, default=16, help="load: at the same time")
    asked = parser.parse_args(arguments)
    given = {field.name: getattr(asked, field.name, None) for field in fields(Settings)}
    settings = replace(known, **{name: value for name, value in given.items() if value is not None})
    settings = replace(settings, guard=asked.guard == "on")
    if asked.what == "serve":
        return serve(settings, asked.port)
    load = Load(asked.seconds, asked.rounds, asked.visitors)
    sys.stdout.write(table(asyncio.run(compare(settings, load))))
    return 0


def serve(settings: Settings, port: int) -> int:
    """Until Ctrl-C. The first line says where; who connects at once waits for the opening."""
    # asyncio sends small answers at once (TCP_NODELAY) only for sockets that say they are TCP.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen(128)
        sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]}\n")
        sys.stdout.flush()
        config = uvicorn.Config(create_app(settings), log_level="warning", access_log=False)
        uvicorn.Server(config).run(sockets=[listening])
    return 0
