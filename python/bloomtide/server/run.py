"""The running program: the Redis protocol and HTTP in one event loop, until a signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from bloomtide import extras, system
from bloomtide.errors import StorageError
from bloomtide.server.listener import Server
from bloomtide.server.settings import AUTO, Settings

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette

    from bloomtide.server.http.connections import Connection
    from bloomtide.server.http.parts import Feeding, Monitor

log = logging.getLogger("bloomtide.server")


async def serve(
    settings: Settings,
    *,
    monitor: Monitor | None = None,
    feeding: Feeding | None = None,
    ready: Callable[[Server], None] | None = None,
) -> None:
    """Serves until SIGTERM, SIGINT or SHUTDOWN; then everything is on the disk.

    `ready` is called once all ports answer. The monitor stays open: who opened it closes it.
    """
    system.require_posix("the server", lacks="fork")
    server = Server(settings, monitor=monitor)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stopping.set)
    web = None
    try:
        if settings.http_port:
            # First, so that it can say "not ready" while the data directory is read.
            web = await Web.started(server, feeding)
        await server.start()
        if ready is not None:
            ready(server)
        await server.stopping.wait()
        log.info("stopping")
    finally:
        if feeding is not None:
            await loop.run_in_executor(None, feeding.stop)
        if web is not None:
            await web.stop()
        await server.stop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def run(main: Coroutine[Any, Any, None]) -> None:
    """Runs it in uvloop's event loop where there is one."""
    factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    try:
        import uvloop

        factory = uvloop.new_event_loop
    except ImportError:
        log.info(
            "without uvloop the server is slower: pip install %s", extras.install_name("serve")
        )
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main)


class Web:
    """The HTTP side: uvicorn in our loop, with our signals."""

    def __init__(
        self, app: Starlette, server: uvicorn.Server,
        task: asyncio.Task[None], watching: asyncio.Task[None],
    ) -> None:  # fmt: skip
        self._app = app
        self._server = server
        self._task = task
        self._watching = watching

    @classmethod
    async def started(cls, server: Server, feeding: Feeding | None) -> Web:
        """Answers when the ports are open."""
        with extras.require("serve", "HTTP", instead="set `http-port 0`"):
            import uvicorn

            from bloomtide.server.figures import figures
            from bloomtide.server.http.app import create_app
            from bloomtide.server.http.connections import Watch, at_most
            from bloomtide.server.http.parts import limits_of

        class Quiet(uvicorn.Server):
            """Leaves the signals to us."""

            @contextlib.contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield

        app = create_app(
            monitor=server.monitor, keyspace=server.keyspace, settings=server.settings,
            limits=limits_of(server.settings), ready=lambda: server.not_ready,
            metrics=[partial(figures, server)], feeding=feeding,
        )  # fmt: skip
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
        config = uvicorn.Config(
            app,
            http=at_most(server.settings.http_maxclients),
            log_config=None,
            access_log=False,  # it would write keys, which stand in the query
            lifespan="on",
            timeout_graceful_shutdown=server.settings.shutdown_timeout,
        )
        sockets = bound_sockets(server.settings)
        server.ports["http-port"] = sockets[0].getsockname()[1]
        web = Quiet(config)
        task = asyncio.create_task(web.serve(sockets=sockets))
        while not web.started and not task.done():
            await asyncio.sleep(0.005)
        if task.done():
            await task
        # uvicorn's types do not say that these are its connections.
        connections = cast(Callable[[], "set[Connection]"], lambda: web.server_state.connections)
        watching = asyncio.create_task(Watch().run(connections, lambda: server.settings))
        return cls(app, web, task, watching)

    async def stop(self) -> None:
        """Lets requests end that are on their way."""
        self._watching.cancel()
        self._app.state.live.stop()
        self._server.should_exit = True
        await self._task


def bound_sockets(settings: Settings) -> list[socket.socket]:
    """The sockets of HTTP, one for each address."""
    port = 0 if settings.http_port == AUTO else settings.http_port
    found: list[socket.socket] = []
    for host in settings.bind:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            found.append(socket.create_server((host, port), family=family))
        except OSError as error:
            for each in found:
                each.close()
            raise StorageError(
                f"cannot listen on {settings.address_of(port)}: {error.strerror or error}",
                hint="is another server running there? choose another `http-port`",
                path=settings.address_of(port), operation="listen",
            ) from error  # fmt: skip
    return found
