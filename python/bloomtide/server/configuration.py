"""Where settings and secrets come from. Every command that starts a server reads them here.

Four places, each above the one before: what the command prefers, the file of settings, the
environment, the command line. Lines `user` of all places are kept.

A secret is given as text or as a file with one line: `requirepass` or `requirepass-file`, and
`http-token` or `http-token-file`. In the environment they are BLOOMTIDE_PASSWORD,
BLOOMTIDE_HTTP_TOKEN and these with `_FILE` behind. One place gives a secret once. An empty one is
refused: a variable that was meant to hold a password and is empty would open the server.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from bloomtide.errors import ParameterError, StorageError
from bloomtide.server.settings import SECRET, Settings, read_file, shown

ENVIRONMENT = {
    "BLOOMTIDE_PASSWORD": "requirepass",
    "BLOOMTIDE_PASSWORD_FILE": "requirepass-file",
    "BLOOMTIDE_HTTP_TOKEN": "http-token",
    "BLOOMTIDE_HTTP_TOKEN_FILE": "http-token-file",
}
"""Variables, and the settings that they are."""
_FILES = {"requirepass-file": "requirepass", "http-token-file": "http-token"}
_SECRETS = frozenset(map(shown, SECRET))
_LONGEST = 4096
"""Bytes of a file with a secret; more is another file."""

Pairs = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Configuration:
    """Settings, and what their owner should know before the server starts."""

    settings: Settings
    warnings: tuple[str, ...]


def read_configuration(
    pairs: Pairs = (),
    *,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    preferred: Pairs = (),
) -> Configuration:
    """Reads all places. `pairs` are of the command line, `preferred` of the command itself."""
    variables = os.environ if environment is None else environment
    warnings: list[str] = []
    found: dict[str, list[tuple[str, str]]] = {}
    of_environment = [
        (ENVIRONMENT[variable], variables[variable], variable)
        for variable in ENVIRONMENT
        if variable in variables
    ]
    of_file = [] if file is None else _of_file(file, warnings)
    for place in (
        [(name, text, "the command") for name, text in preferred],
        [(name, text, str(file)) for name, text in of_file],
        of_environment,
        [(name, text, "the command line") for name, text in pairs],
    ):
        for name, lines in _by_name(place, warnings).items():
            found[name] = found.get(name, []) + lines if name == "user" else lines
    settings = Settings.from_text(chain.from_iterable(found.values()))
    warnings += _half_open(settings)
    return Configuration(settings, tuple(warnings))


def read_secret(name: str, path: Path, warnings: list[str]) -> str:
    """The one line of a file."""
    try:
        with path.open("rb") as opened:
            about = os.fstat(opened.fileno())
            data = opened.read(_LONGEST + 1)
    except OSError as error:
        raise StorageError(
            f"`{name}`: {path} cannot be read: {error.strerror or error}",
            hint="give a file with the secret alone, which the server's user may read",
            path=os.fspath(path), operation="read",
        ) from None  # fmt: skip
    try:
        # Some editors begin a file with a mark of its encoding.
        text = data.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        text = "\0"
    if len(data) > _LONGEST or any(letter < " " for letter in text):
        raise _refused(name, str(path), f"a file of one line of at most {_LONGEST} bytes")
    # A pipe, as of the shell's <(...), is nobody else's.
    if stat.S_ISREG(about.st_mode) and about.st_mode & stat.S_IROTH:
        warnings.append(f"everyone on this machine may read {path}: chmod o-r it")
    return text


def _of_file(path: Path, warnings: list[str]) -> list[tuple[str, str]]:
    try:
        pairs = read_file(path)
        others = path.stat().st_mode & stat.S_IROTH
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise StorageError(
            f"the settings {path} cannot be read: {why}",
            hint="give a file of lines `name value`", path=os.fspath(path), operation="read",
        ) from None  # fmt: skip
    if others and any(_plain(name) in _SECRETS for name, _ in pairs):
        warnings.append(f"everyone on this machine may read the secrets in {path}: chmod o-r it")
    return pairs


def _by_name(
    given: Iterable[tuple[str, str, str]], warnings: list[str]
) -> dict[str, list[tuple[str, str]]]:
    """The lines of each setting, with secrets instead of their files."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, text, where in given:
        plain = setting = _plain(name)
        if plain in _FILES:
            setting = _FILES[plain]
            where, text = text, read_secret(plain, Path(text).expanduser(), warnings)
        if setting in _SECRETS and not text.strip():
            raise _refused(plain, f"nothing, from {where}", "a secret of at least one letter")
        if setting in _FILES.values() and setting in found:
            raise _refused(
                setting, f"two, also {where}", f"given once, as `{setting}` or `{setting}-file`"
            )
        known = plain in _FILES
        found.setdefault(setting, []).append((setting if known else name, text))
    return found


def _half_open(settings: Settings) -> list[str]:
    """Warns if one port asks for a secret and the other does not: who set one may rely on it."""
    protocol = settings.port or settings.tls_port
    if not (protocol and settings.http_port) or settings.protected == bool(settings.http_token):
        return []
    if settings.protected:
        return ["the Redis protocol needs a password, but HTTP needs no token: everyone on this "
                "machine may use it. Set http-token, or http-port 0"]  # fmt: skip
    return ["HTTP needs a token, but the Redis protocol needs no password: everyone on this "
            "machine may use it. Set requirepass, or port 0"]  # fmt: skip


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def _refused(name: str, got: str, allowed: str) -> ParameterError:
    return ParameterError(
        f"`{name}` must be {allowed}, got: {got}",
        hint="leave it out for a server without it", name=name, got=got, allowed=allowed,
    )  # fmt: skip
