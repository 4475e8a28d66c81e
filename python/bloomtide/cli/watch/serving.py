"""The server beside a monitor: the page, the API and the Redis protocol, until a signal ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bloomtide.cli import console

if TYPE_CHECKING:
    from bloomtide.cli.watch.command import Running
    from bloomtide.server.listener import Server
    from bloomtide.server.settings import Settings


def serve(settings: Settings, running: Running, json: bool) -> bool:
    """Serves until ctrl-C or SIGTERM; that is how it ends, so it is no interruption."""
    from bloomtide.cli.serve import tell_ports
    from bloomtide.server.run import run
    from bloomtide.server.run import serve as serve_all

    def ready(server: Server) -> None:
        if json:
            tell_ports(server)
        else:
            for name, what in (("http-port", "page: http"), ("port", "Redis clients: redis")):
                if name in server.ports:
                    console.message(f"{what}://{settings.address_of(server.ports[name])}/")
        running.start()

    run(serve_all(settings, monitor=running.monitor, feeding=running, ready=ready))
    return False
