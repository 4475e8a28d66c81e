"""The commands that Python answers: those about the server, and those of histories and guards.

A handler takes the server, the client and the words behind the command's name. It answers a value
that the session encodes, raises an error, or answers something to wait for. It never blocks: what
may, runs in a thread.
"""

from bloomtide.server.commands import (
    client,
    config,
    debug,
    guard,
    history,
    info,
    monitor,
    saving,
    serving,
)
from bloomtide.server.commands.handler import Handler

HANDLERS: dict[str, Handler] = {
    **serving.HANDLERS,
    **info.HANDLERS,
    **config.HANDLERS,
    **client.HANDLERS,
    **saving.HANDLERS,
    **debug.HANDLERS,
    **history.HANDLERS,
    **guard.HANDLERS,
    **monitor.HANDLERS,
}
"""By the name of the command, in capitals."""

__all__ = ["HANDLERS", "Handler"]
