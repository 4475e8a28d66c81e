"""The server of the Redis protocol: its keyspace, its clients, and the commands Python answers."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import secrets
import ssl
import time
from typing import TYPE_CHECKING, Any

from bloomtide import system
from bloomtide._core import Keyspace
from bloomtide.errors import StorageError
from bloomtide.server.client import Client, as_reply
from bloomtide.server.commands import HANDLERS
from bloomtide.server.durability import Durability
from bloomtide.server.histories import Histories
from bloomtide.server.refusals import REFUSED, Refusals
from bloomtide.server.settings import AUTO, Settings

if TYPE_CHECKING:
    from bloomtide.server.http.parts import Monitor

log = logging.getLogger("bloomtide.server")
_SPARE_FILES = 64
"""File descriptors besides those of the clients."""


class Server:
    """Named structures behind sockets."""

    def __init__(self, settings: Settings, *, monitor: Monitor | None = None) -> None:
        self.settings = settings
        self.monitor = monitor
        self.keyspace = Keyspace(
            max_memory=settings.maxmemory or None,
            max_keys=settings.maxkeys or None,
            max_bulk=settings.proto_max_bulk_len,
            foreign=[*sorted(HANDLERS), REFUSED],
            journal=settings.appendonly,
        )
        self.keyspace.set_users(user_lines(settings))
        self.durability = Durability(self.keyspace, settings)
        self.histories = Histories(settings)
        self.refusals = Refusals()
        self.clients: dict[int, Client] = {}
        self.run_id = secrets.token_hex(20)
        self.started = time.time()
        self.connections = 0
        self.rejected = 0
        self.ports: dict[str, int] = {}
        """The ports it listens on, by setting."""
        self.not_ready: str | None = "the data directory is being read"
        self.stopping = asyncio.Event()
        self.save_at_end = True
        self._ids = 0
        self._servers: list[asyncio.Server] = []
        self._clock: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Takes its ports, reads the data directory, and only then answers."""
        clients = self.settings.maxclients + self.settings.http_maxclients
        raise_file_limit(clients + _SPARE_FILES)
        if self.settings.port:
            await self._bind("port", self.settings.port, None)
        if self.settings.tls_port:
            await self._bind("tls-port", self.settings.tls_port, tls_context(self.settings))
        await asyncio.get_running_loop().run_in_executor(None, self.durability.load)
        self.durability.start()
        for server in self._servers:
            await server.start_serving()
        self.not_ready = None
        self._clock = asyncio.create_task(self._watch_clients())

    async def _bind(self, name: str, port: int, context: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(
                lambda: Client(self),
                list(self.settings.bind),
                0 if port == AUTO else port,
                ssl=context,
                start_serving=False,
                backlog=self.settings.tcp_backlog,
            )
        except OSError as error:
            raise StorageError(
                f"cannot listen on {self.settings.address_of(port)}: {error.strerror or error}",
                hint=f"is another server running there? choose another `{name}`",
                path=self.settings.address_of(port), operation="listen",
            ) from error  # fmt: skip
        self._servers.append(server)
        self.ports[name] = server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Takes no more clients, lets those that are there take their replies, syncs and saves."""
        for server in self._servers:
            server.close()
        if self._clock is not None:
            self._clock.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.settings.shutdown_timeout):
                await self.durability.drain()
                for client in list(self.clients.values()):
                    client.close()
                while self.clients:
                    await asyncio.sleep(0.005)
        for client in list(self.clients.values()):
            client.abort()
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        self.histories.close()
        self.durability.close(snapshot=self.save_at_end)

    # --- clients --------------------------------------------------------------------------------

    def next_id(self) -> int:
        """A number that no client had before."""
        self._ids += 1
        return self._ids

    def admit(self, client: Client) -> bool:
        """Takes the client in, unless there are too many."""
        if len(self.clients) >= self.settings.maxclients or self.stopping.is_set():
            self.rejected += 1
            return False
        self.connections += 1
        self.clients[client.id] = client
        return True

    def forget(self, client: Client) -> None:
        """The client is gone."""
        self.clients.pop(client.id, None)

    async def _watch_clients(self) -> None:
        """Each second closes who must not stay."""
        while True:
            await asyncio.sleep(1)
            now, settings = time.monotonic(), self.settings
            for client in list(self.clients.values()):
                if client.stuck_since is not None:
                    if client.stuck_for(now) > settings.client_output_seconds:
                        log.warning("closed client %d: it does not read its replies", client.id)
                        client.abort()
                elif (settings.timeout and now - client.seen > settings.timeout) or (
                    now - client.born > settings.auth_timeout and not client.session.authenticated
                ):
                    client.abort()

    # --- commands -------------------------------------------------------------------------------

    def answer(self, client: Client, words: list[bytes]) -> Any:
        """The reply to a command of Python: a value, an error, or something to wait for."""
        name = words[0].decode("ascii", "replace").upper()
        client.last_command = name.lower()
        if name == REFUSED:
            return self.refusals.refuse(client)
        try:
            return HANDLERS[name](self, client, words[1:])
        except Exception as error:  # noqa: BLE001 - one command must not end the server
            return as_reply(error)

    def change(self, settings: Settings) -> None:
        """Takes other settings while it runs."""
        self.settings = settings
        self.keyspace.max_memory = settings.maxmemory or None
        self.keyspace.max_keys = settings.maxkeys or None
        self.durability.change(settings)
        self.histories.change(settings)


def user_lines(settings: Settings) -> list[str]:
    """The users as the keyspace takes them. Each begins without rights, the default user too."""
    lines = []
    for line in settings.user:
        name, _, rules = line.strip().partition(" ")
        lines.append(f"user {name} reset {rules}")
    if not any(line.split()[1] == "default" for line in lines):
        # By its digest: a password may have blanks, and errors tell words.
        digest = hashlib.sha256(os.fsencode(settings.requirepass)).hexdigest()
        secret = f"#{digest}" if settings.requirepass else "nopass"
        lines.insert(0, f"user default on {secret} ~* +@all")
    return lines


def tls_context(settings: Settings) -> ssl.SSLContext:
    """As the settings with `tls-` say."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    assert settings.tls_cert_file is not None
    try:
        context.load_cert_chain(settings.tls_cert_file, settings.tls_key_file)
        if settings.tls_ca_cert_file is not None:
            context.load_verify_locations(settings.tls_ca_cert_file)
            modes = {"yes": ssl.CERT_REQUIRED, "optional": ssl.CERT_OPTIONAL, "no": ssl.CERT_NONE}
            context.verify_mode = modes[settings.tls_auth_clients]
    except OSError as error:  # ssl.SSLError is one
        raise StorageError(
            f"cannot use the TLS files: {error.strerror or error}",
            hint="check tls-cert-file, tls-key-file and tls-ca-cert-file",
            path=os.fspath(settings.tls_cert_file), operation="read",
        ) from error  # fmt: skip
    return context


def raise_file_limit(wanted: int) -> None:
    """Each client is a file of the process; asks the system for enough of them."""
    best = system.raise_file_limit(wanted)
    if best < wanted:
        log.warning("only %d files may be open, so maxclients cannot be reached", best)
