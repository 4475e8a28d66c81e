"""What a server is told at its start: one frozen record, under Redis's names where Redis has one.

A name is spelled with a dash outside (`tls-port`) and with an underscore inside. Values come as
text, from a file like redis.conf, from the command line or from CONFIG SET, and all go through
`replaced`, which names the setting that is wrong.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from bloomtide import system
from bloomtide.durable.policy import Sync
from bloomtide.errors import ParameterError, require

_UNITS = {"": 1, "b": 1, "k": 10**3, "kb": 1 << 10, "m": 10**6, "mb": 1 << 20, "g": 10**9,
          "gb": 1 << 30}  # fmt: skip
CHANGEABLE = frozenset(
    {
        "appendfsync", "auto_aof_rewrite_percentage", "auto_aof_rewrite_min_size", "timeout",
        "auth_timeout", "maxclients", "client_query_buffer_limit", "client_output_buffer_limit",
        "client_output_seconds", "shutdown_timeout", "http_timeout", "maxkeys",
        "maxmemory",
    }
)  # fmt: skip
"""Settings that CONFIG SET may change while the server runs."""
AUTO = -1
"""A port that the system chooses; the start line tells which."""
SECRET = frozenset({"requirepass", "http_token", "user"})
"""Settings that CONFIG GET does not show."""
REPEATED = frozenset({"user", "bind"})
"""Settings that may stand in a file more than once, or have several words."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a server runs."""

    bind: tuple[str, ...] = ("127.0.0.1",)
    port: int = 6380
    """Of the Redis protocol; 0 switches it off."""
    http_port: int = 8380
    """0 switches HTTP off."""
    dir: Path = Path("bloomtide-data")
    appendonly: bool = True
    """Without it nothing is written to the disk, and everything is gone at the end."""
    appendfsync: Sync = "everysec"
    auto_aof_rewrite_percentage: int = 100
    """0 switches rewrites by size off."""
    auto_aof_rewrite_min_size: int = 64 << 20
    requirepass: str = field(default="", repr=False)
    user: tuple[str, ...] = field(default=(), repr=False)
    """Lines of Redis's ACL syntax, without the word `user`."""
    http_token: str = field(default="", repr=False)
    http_public: bool = True
    """Health and metrics are told without the token."""
    http_max_body: int = 64 << 20
    """Bytes of a request over HTTP."""
    http_maxclients: int = 1_000
    """Connections of HTTP at a time."""
    http_timeout: int = 20
    """Seconds in which a client of HTTP must have sent the head of a request."""
    maxmemory: int = field(default_factory=lambda: system.memory() // 2)
    """Bytes for all structures together; 0 for no limit. Half of the machine's or the container's
    memory if nothing is said: a child that writes a snapshot may need as much again."""
    maxkeys: int = 0
    """Names of structures, and by themselves of histories; 0 for no limit."""
    maxclients: int = 10_000
    timeout: int = 0
    """Seconds after which a silent client is closed; 0 for never."""
    auth_timeout: int = 60
    """Seconds in which a client must have shown its password, if it needs one."""
    tcp_keepalive: int = 300
    tcp_backlog: int = 511
    proto_max_bulk_len: int = 512 << 20
    client_query_buffer_limit: int = 1 << 30
    client_output_buffer_limit: int = 256 << 20
    """Bytes that may wait for one client; one with more is closed."""
    client_output_seconds: int = 60
    """One that takes nothing of what waits for it for so long is closed."""
    tls_port: int = 0
    tls_cert_file: Path | None = None
    tls_key_file: Path | None = None
    tls_ca_cert_file: Path | None = None
    tls_auth_clients: Literal["yes", "no", "optional"] = "yes"
    """Must a client show a certificate? Only with `tls-ca-cert-file`."""
    shutdown_timeout: int = 10
    """Seconds that clients have at the end to take their replies."""
    loglevel: Literal["debug", "info", "warning"] = "info"

    def __post_init__(self) -> None:
        for name in ("port", "http_port", "tls_port"):
            port = getattr(self, name)
            require(shown(name), port, "a port, 0 to 65535, or auto", AUTO <= port <= 65535)
        for name in (
            "maxmemory", "maxkeys", "timeout", "tcp_keepalive", "shutdown_timeout",
            "auto_aof_rewrite_percentage", "auto_aof_rewrite_min_size",
        ):  # fmt: skip
            require(shown(name), getattr(self, name), "0 or more", getattr(self, name) >= 0)
        for name in (
            "maxclients", "tcp_backlog", "client_output_seconds", "auth_timeout",
            "http_maxclients", "http_timeout",
        ):  # fmt: skip
            require(shown(name), getattr(self, name), "1 or more", getattr(self, name) >= 1)
        for name in ("proto_max_bulk_len", "client_query_buffer_limit"):
            value = getattr(self, name)
            require(shown(name), value, "at least 1mb", value >= 1 << 20)
        require("bind", "nothing", "an address", bool(self.bind))
        self._require_one_word_about_each_user()
        self._require_protection()
        self._require_certificate()

    @classmethod
    def from_text(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        """From names and values as people write them."""
        return cls().replaced(pairs)

    def replaced(self, pairs: Iterable[tuple[str, str]]) -> Self:
        """The same with other values."""
        changes: dict[str, Any] = {}
        for given, text in pairs:
            name = given.lower().replace("-", "_")
            kinds = field_types()
            if name not in kinds:
                raise ParameterError(
                    f"there is no setting `{given}`",
                    hint="`bloomtide serve --help` and docs/server.md list them",
                    name=given, got=text, allowed="a known setting",
                )  # fmt: skip
            value = _parsed(name, kinds[name], text)
            # A setting may be a list by several lines; the first of them replaces the default.
            changes[name] = changes.get(name, ()) + value if name in REPEATED else value
        return dataclasses.replace(self, **changes)

    def as_text(self) -> dict[str, str]:
        """Each setting as CONFIG GET shows it, without the secrets."""
        found = {}
        for name in field_types():
            if name not in SECRET:
                found[shown(name)] = _as_text(getattr(self, name))
        return found

    def address_of(self, port: int) -> str:
        """The first address with this port, for people."""
        host = self.bind[0]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def protected(self) -> bool:
        """Must a client of the Redis protocol show who it is?"""
        lines = [words for words in map(str.split, self.user) if words[0] == "default"]
        return not is_open(lines[0][1:]) if lines else bool(self.requirepass)

    def _require_one_word_about_each_user(self) -> None:
        names = [(line.split() or [""])[0] for line in self.user]
        for name in names:
            require("user", name or "nothing", "a name and rules", bool(name))
            require(
                "user", name, "one line for each user", names.count(name) == 1,
                hint="put all its rules into one line",
            )  # fmt: skip
        require(
            "requirepass", "a password, and a line `user default`", "one of both",
            not (self.requirepass and "default" in names),
            hint="`requirepass` is the password of the user `default`: add `>password` to its line",
        )  # fmt: skip

    def _require_protection(self) -> None:
        """Who listens beyond this machine needs a password: anyone could empty it otherwise."""
        outside = [host for host in self.bind if not is_loopback(host)]
        if not outside:
            return
        listens = self.port or self.tls_port
        require(
            "bind", outside[0], "an address of this machine (127.0.0.1) without a password",
            self.protected or not listens,
            hint="set `requirepass-file` (or the environment variable BLOOMTIDE_PASSWORD), or a "
            "`user default` line, or bind 127.0.0.1",
        )  # fmt: skip
        require(
            "bind", outside[0], "an address of this machine (127.0.0.1) without `http-token`",
            bool(self.http_token) or not self.http_port,
            hint="set `http-token-file` (or the environment variable BLOOMTIDE_HTTP_TOKEN), or "
            "`http-port 0` to switch HTTP off",
        )  # fmt: skip

    def _require_certificate(self) -> None:
        if self.tls_port:
            for name in ("tls_cert_file", "tls_key_file"):
                path = getattr(self, name)
                require(shown(name), path, "a file, for `tls-port`", path is not None)


def is_open(rules: Iterable[str]) -> bool:
    """Do these rules of a user that begins with none let everyone in without a password?"""
    on = nopass = False
    for rule in rules:
        match rule.lower():
            case "on" | "off":
                on = rule.lower() == "on"
            case "nopass":
                nopass = True
            case "reset":
                on = nopass = False
            case "resetpass":
                nopass = False
            case _ if rule[0] in ">#":
                nopass = False
    return on and nopass


def is_loopback(host: str) -> bool:
    """Does an address reach this machine only?"""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def shown(name: str) -> str:
    """The spelling outside."""
    return name.replace("_", "-")


def field_types() -> Mapping[str, Any]:
    """The settings and their types."""
    return _TYPES


def read_file(path: Path) -> list[tuple[str, str]]:
    """Lines `name value` of a file; `#` begins a comment."""
    pairs = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, _, value = line.strip().partition(" ")
        if name.lower() != "user":  # whose words may hold quotes and hashes
            try:
                value = " ".join(shlex.split(value))
            except ValueError as error:
                raise ParameterError(
                    f"{path}:{number}: {error}", hint="close the quotation",
                    name=name, got=value, allowed="a value",
                ) from None  # fmt: skip
        pairs.append((name, value.strip()))
    return pairs


def _parsed(name: str, kind: Any, text: str) -> Any:
    def refuse(allowed: str) -> ParameterError:
        got = "***" if name in SECRET else text
        return ParameterError(
            f"`{shown(name)}` must be {allowed}, got: {got}",
            hint="", name=shown(name), got=got, allowed=allowed,
        )  # fmt: skip

    if name == "user":
        return (text,)
    if name == "bind":
        return tuple(text.split())
    if name.endswith("port") and text == "auto":
        return AUTO
    if kind is int:
        found = re.fullmatch(r"(\d{1,18})([a-z]{0,2})", text.strip().lower())
        if found is None or found[2] not in _UNITS:
            raise refuse("a number like 100, 64mb or 1gb")
        return int(found[1]) * _UNITS[found[2]]
    if kind is bool:
        if text.lower() not in ("yes", "no"):
            raise refuse("yes or no")
        return text.lower() == "yes"
    if get_origin(kind) is Literal:
        if text.lower() not in get_args(kind):
            raise refuse(f"one of {', '.join(get_args(kind))}")
        return text.lower()
    if kind is Path:
        return Path(text).expanduser()
    if Path in get_args(kind):
        return Path(text).expanduser() if text else None
    return text


def _as_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " ".join(value)
    return str(value)


_TYPES: Mapping[str, Any] = dict(get_type_hints(Settings))
