"""What the app is made around: a monitor, a keyspace, limits, and the threads that ask them.

A question may wait for a lock while a batch is being added, so none is asked on the event loop.
Threads are few and an answer has its time: a flood of requests waits, and is told so at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import time
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio
from anyio.to_thread import run_sync

from bloomtide.errors import RequestError, UnsupportedError
from bloomtide.records import Estimate, HotItem

if TYPE_CHECKING:
    from bloomtide.monitor import SourceStats

T = TypeVar("T")
Key = str | bytes | int


class Monitor(Protocol):
    """What is asked of `bloomtide.monitor.Monitor`."""

    @property
    def history(self) -> Any: ...
    @property
    def guards(self) -> Mapping[str, Any]: ...
    @property
    def settings(self) -> Any: ...
    @property
    def failure(self) -> str | None: ...
    def add(self, key: Key, count: int = 1, at: Any = None) -> bool: ...
    def add_many(self, keys: Any, counts: Any = None, at: Any = None) -> int: ...
    def seen(self, key: Key) -> bool: ...
    def count(self, key: Key) -> Estimate: ...
    def heat(self, key: Key, at: Any = None) -> Estimate: ...
    def top(self, n: int | None = 20, at: Any = None) -> list[HotItem]: ...
    def hot(self, n: int | None = 20, at: Any = None) -> Sequence[Any]: ...
    def now(self) -> float: ...
    def clock(self) -> float: ...
    def stats(self) -> Any: ...
    def pulse(self) -> Any: ...


class Keyspace(Protocol):
    """What is asked of `bloomtide._core.Keyspace`."""

    loading: bool
    read_only: str | None

    def stats(self) -> dict[str, Any]: ...
    def structures(self, limit: int = 1000) -> list[dict[str, Any]]: ...


class Feeding(Protocol):
    """What feeds a monitor from logs and streams, beside the server."""

    def stop(self) -> None:
        """Takes no more events; returns when none is on its way."""

    def about_sources(self) -> Sequence[SourceStats]:
        """What became of what each log and stream has."""

    def about_problems(self) -> Sequence[str]:
        """Sources that wait or have failed."""


class Settings(Protocol):
    """What is read of the server's settings to make the app."""

    @property
    def http_token(self) -> str | None: ...


class LimitSettings(Protocol):
    """What is read of them for the limits."""

    @property
    def http_public(self) -> bool: ...
    @property
    def http_max_body(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a client may ask of the server."""

    body: int = 64 << 20
    """Bytes of a request's body."""
    seconds: float = 10.0
    """For an answer, and between two pieces of a body."""
    body_seconds: float = 120.0
    """For all of a body."""
    bodies: int = 8
    """Received at a time; further ones wait for their turn, as long as for an answer."""
    threads: int = 4
    """That ask at a time."""
    streams: int = 64
    """Of live numbers at a time."""
    send_seconds: float = 30.0
    """After which a client that does not read its stream is dropped."""
    labels: int = 200
    """Structures that `/metrics` names, and as many commands and guards."""
    public: frozenset[str] = frozenset({"health", "metrics"})
    """What is answered without the token."""


def limits_of(settings: LimitSettings) -> Limits:
    """The limits that a server's settings ask for."""
    public = Limits().public if settings.http_public else frozenset[str]()
    return Limits(body=settings.http_max_body, public=public)


@dataclass(frozen=True, slots=True)
class Family:
    """A metric: its name, type and help, and samples as labels and value."""

    name: str
    kind: str
    about: str
    samples: Iterable[tuple[Mapping[str, str], float]]


@dataclass(kw_only=True)
class Parts:
    """Everything that a request can reach."""

    monitor: Monitor | None
    keyspace: Keyspace | None
    token: str | None
    limits: Limits
    ready: Callable[[], str | None] | None
    metrics: tuple[Callable[[], Iterable[Family]], ...]
    feeding: Feeding | None = None
    started: float = field(default_factory=time)
    requests: dict[tuple[str, str], int] = field(default_factory=dict)
    """Answered so far, by path and status."""

    @cached_property
    def _threads(self) -> anyio.CapacityLimiter:
        # Made in the event loop that uses it.
        return anyio.CapacityLimiter(self.limits.threads)

    @cached_property
    def bodies(self) -> anyio.CapacityLimiter:
        """Who receives a body holds one of these."""
        return anyio.CapacityLimiter(self.limits.bodies)

    async def ask(self, question: Callable[[], T]) -> T:
        """The answer, found by a thread."""
        try:
            with anyio.fail_after(self.limits.seconds):
                return await run_sync(question, limiter=self._threads, abandon_on_cancel=True)
        except TimeoutError:
            raise RequestError(
                f"no answer within {self.limits.seconds:g} seconds",
                hint="ask for less, or again when the server has less to do",
                status=503, field="time",
            ) from None  # fmt: skip

    def require_monitor(self) -> Monitor:
        """The monitor, which a server of named structures may not have."""
        if self.monitor is None:
            raise _absent("monitor", "start one with `bloomtide watch`")
        return self.monitor

    def require_history(self) -> Any:
        """The monitor's history."""
        history = self.require_monitor().history
        if history is None:
            raise _absent("history", "give the monitor a directory, and do not switch history off")
        return history

    def why_not_ready(self) -> str | None:
        """None if everything is ready."""
        if self.ready is not None and (reason := self.ready()):
            return reason
        if self.keyspace is not None and self.keyspace.loading:
            return "loading"
        if self.keyspace is not None and self.keyspace.read_only:
            return self.keyspace.read_only
        if self.monitor is not None and self.monitor.failure:
            return self.monitor.failure
        return None


def _absent(what: str, hint: str) -> UnsupportedError:
    return UnsupportedError(f"this server has no {what}", hint=hint, verb=what, policy="absent")
