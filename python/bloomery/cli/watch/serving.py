"""The server beside a monitor: the page, the API and the Redis protocol, until a signal ends it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bloomery.cli import console

if TYPE_CHECKING:
    from bloomery.cli.watch.command import Running


def serve(keys: Path, pairs: list[str], running: Running) -> bool:
    """Serves until ctrl-C or SIGTERM; that is how it ends, so it is no interruption."""
    from bloomery.server.settings import Settings

    given = [("dir", str(keys))]
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise console.CommandError(f"{pair} is no setting", hint="write --set http-port=8380")
        given.append((name, value))
    settings = Settings.from_text(given)
    program = importlib.import_module("bloomery.server.run")

    def ready(server: Any) -> None:
        address = settings.address_of(server.ports["http-port"])
        console.message(f"the page is on http://{address}/")
        if "port" in server.ports:
            console.message(f"Redis clients: redis://{settings.address_of(server.ports['port'])}")
        running.start()

    program.run(program.serve(settings, monitor=running.monitor, sources=[running], ready=ready))
    return False
