"""Secrets: every command that listens asks for them, whichever way they were given."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from bloomtide.cli.app import app
from bloomtide.errors import BloomtideError, ParameterError, StorageError
from bloomtide.server.configuration import ENVIRONMENT, read_configuration
from tests.monitor.streams import log_line
from tests.server.process import ROOT, Wire, request

PASSWORD, TOKEN = "a long password", "a-long-token"
WRONG = ("", "wrong", PASSWORD[:-1], PASSWORD + "x", PASSWORD.upper(), "é")
CLI = ROOT / "python" / "bloomtide" / "cli"


def ways(folder: Path) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Arguments and environment of every way to give both secrets."""
    password, token, settings = (folder / name for name in ("password", "token", "bloomtide.conf"))
    for file, text in (
        (password, f"{PASSWORD}\n"),
        (token, f"{TOKEN}\n"),
        (settings, f'requirepass "{PASSWORD}"\nhttp-token {TOKEN}\n'),
    ):
        file.write_text(text)
        file.chmod(0o600)
    return {
        "variables": ([], {"BLOOMTIDE_PASSWORD": PASSWORD, "BLOOMTIDE_HTTP_TOKEN": TOKEN}),
        "variables that name files": (
            [],
            {"BLOOMTIDE_PASSWORD_FILE": f"{password}", "BLOOMTIDE_HTTP_TOKEN_FILE": f"{token}"},
        ),
        "options": (["--password-file", f"{password}", "--http-token-file", f"{token}"], {}),
        "settings that name files": (
            ["--set", f"requirepass-file={password}", "--set", f"http-token-file={token}"],
            {},
        ),
        "settings": (["--set", f"requirepass={PASSWORD}", "--set", f"http-token={TOKEN}"], {}),
        "a file of settings": ([f"{settings}"], {}),
    }


NAMES = (
    "variables", "variables that name files", "options", "settings that name files", "settings",
)  # fmt: skip
CASES = [(command, way) for command in ("serve", "watch") for way in NAMES]
CASES.append(("serve", "a file of settings"))


@contextmanager
def started(
    command: str, folder: Path, arguments: list[str], environment: dict[str, str]
) -> Iterator[tuple[dict[str, int], subprocess.Popen[bytes]]]:
    """The ports of a server, which is killed at the end."""
    log = folder / "access.log"
    log.write_bytes(b"".join(log_line(f"/page/{n % 7}", 1_700_000_000 + n) for n in range(50)))
    own = {
        "serve": ["--dir", f"{folder / 'data'}", *arguments],
        "watch": ["--data", f"{folder / 'data'}", "--follow", *arguments, f"{log}"],
    }
    ports = ["--set", "port=auto", "--set", "http-port=auto", "--json"]
    clean = {name: text for name, text in os.environ.items() if name not in ENVIRONMENT}
    process = subprocess.Popen(
        [sys.executable, "-m", "bloomtide", command, *ports, *own[command]],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean | environment,
    )  # fmt: skip
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.stderr and process.stderr.read()
            yield json.loads(line), process
        finally:
            process.kill()


def status(port: int, path: str, token: str | None = None) -> int:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


def say(port: int, *requests: str) -> list[bytes]:
    """The first line of the answer to each; words are quoted as at a terminal."""
    with Wire(socket.create_connection(("127.0.0.1", port), timeout=20)) as wire:
        found = []
        for words in requests:
            wire.send(request(*shlex.split(words)))
            found.append(wire.line())
        return found


@pytest.mark.parametrize(("command", "way"), CASES)
def test_every_server_command_is_closed_by_every_way_to_give_a_secret(
    command: str, way: str, tmp_path: Path
) -> None:
    arguments, environment = ways(tmp_path)[way]
    with started(command, tmp_path, arguments, environment) as (ports, process):
        port = ports["port"]
        asked = ("PING", "BF.ADD f x", "MONITOR.STATS", "INFO", "COMMAND", "HISTORY.LIST")
        assert all(line.startswith(b"-NOAUTH") for line in say(port, *asked))
        wrong = [f'AUTH "{each}"' for each in WRONG] + [f'AUTH default "{PASSWORD[:-1]}"']
        *lines, last = say(port, *wrong, "PING")
        assert all(line.startswith(b"-WRONGPASS") for line in lines)
        assert last.startswith(b"-NOAUTH")
        assert say(port, f'AUTH "{PASSWORD}"', "PING") == [b"+OK", b"+PONG"]
        assert status(ports["http_port"], "/api/stats") == 401
        assert status(ports["http_port"], "/api/stats", TOKEN[:-1]) == 401
        assert status(ports["http_port"], "/api/stats", TOKEN) == 200
        process.send_signal(signal.SIGTERM)
        told = process.communicate(timeout=30)[1].decode()
    assert PASSWORD not in told
    assert TOKEN not in told
    assert "WARNING" not in told


def commands() -> dict[str, click.Command]:
    """All commands, by name."""
    context = click.Context(app)
    found = {name: app.get_command(context, name) for name in app.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def test_no_other_command_starts_a_server() -> None:
    starting = {
        file.relative_to(CLI).parts[0].removesuffix(".py")
        for file in CLI.rglob("*.py")
        if "bloomtide.server.run" in file.read_text()
    }
    assert starting == {"serve", "watch"} == {command for command, _ in CASES}
    for name in starting:
        options = {option for each in commands()[name].params for option in each.opts}
        assert {"--password-file", "--http-token-file", "--set"} <= options


def test_no_secret_has_to_stand_in_an_argument() -> None:
    for name, command in commands().items():
        for each in command.params:
            for option in each.opts:
                assert not re.fullmatch(r"--(password|token|http-token|secret)", option), name


def read(pairs: list[tuple[str, str]], **environment: str) -> tuple[str, str, tuple[str, ...]]:
    found = read_configuration(pairs, environment=environment)
    return found.settings.requirepass, found.settings.http_token, found.warnings


def secret_file(folder: Path, data: bytes, mode: int = 0o600) -> str:
    file = folder / "secret"
    file.write_bytes(data)
    file.chmod(mode)
    return str(file)


@pytest.mark.parametrize("data", [b"hush", b"hush\n", b"hush\r\n", b"\xef\xbb\xbfhush\n"])
def test_a_file_is_its_one_line(tmp_path: Path, data: bytes) -> None:
    file = secret_file(tmp_path, data)
    assert read([("requirepass-file", file), ("http_token_file", file)]) == ("hush", "hush", ())


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"  \n", b"one\ntwo\n", b"\xff\xfeh\0", b"a\0b", b"x" * 4097, b"\n\nx"]
)
def test_a_file_that_is_no_secret_is_refused_by_name_and_not_shown(
    tmp_path: Path, data: bytes
) -> None:
    file = secret_file(tmp_path, data)
    with pytest.raises(ParameterError) as caught:
        read([], BLOOMTIDE_PASSWORD_FILE=file)
    assert caught.value.name == "requirepass-file"
    assert file in str(caught.value)
    assert "one\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    for file in (tmp_path / "absent", tmp_path):
        with pytest.raises(StorageError, match="http-token-file") as caught:
            read([("http-token-file", str(file))])
        assert str(file) in str(caught.value)
    with pytest.raises(StorageError, match="absent"):
        read_configuration(file=tmp_path / "absent", environment={})


def test_a_file_that_everyone_may_read_is_warned_of(tmp_path: Path) -> None:
    both = [("http-token", "t")]
    file = secret_file(tmp_path, b"hush", 0o644)
    password, _, warnings = read([("requirepass-file", file), *both])
    assert password == "hush"
    assert [file in warning for warning in warnings] == [True]
    settings = tmp_path / "bloomtide.conf"
    for text, warned in (("http-token hush\nport 0\n", 1), ("port 7000\n", 0)):
        settings.write_text(text)
        settings.chmod(0o644)
        found = read_configuration(file=settings, environment={})
        assert [str(settings) in warning for warning in found.warnings] == [True] * warned
    settings.chmod(0o600)
    assert read_configuration(file=settings, environment={}).warnings == ()


@pytest.mark.parametrize("name", [*ENVIRONMENT])
def test_a_variable_that_is_empty_does_not_open_the_server(name: str) -> None:
    with pytest.raises(BloomtideError):
        read([], **{name: ""})


def test_an_empty_password_does_not_open_the_server() -> None:
    for name in ("requirepass", "http-token", "user"):
        with pytest.raises(ParameterError) as caught:
            read([(name, " ")])
        assert caught.value.name == name


def test_a_nearer_place_wins_and_users_of_all_places_stay(tmp_path: Path) -> None:
    settings = tmp_path / "bloomtide.conf"
    settings.write_text("requirepass file\nport 7000\nbind ::1\nuser ann on >a\n")
    settings.chmod(0o600)
    file = secret_file(tmp_path, b"argument")
    given = {"BLOOMTIDE_PASSWORD": "variable"}
    found = read_configuration(
        [("user", "bob on >b"), ("bind", "127.0.0.1")], file=settings, environment=given,
        preferred=[("port", "1"), ("loglevel", "warning")],
    ).settings  # fmt: skip
    assert (found.requirepass, found.port, found.loglevel) == ("variable", 7000, "warning")
    assert (found.user, found.bind) == (("ann on >a", "bob on >b"), ("127.0.0.1",))
    found = read_configuration([("requirepass-file", file)], environment=given).settings
    assert found.requirepass == "argument"


def test_a_secret_given_twice_in_one_place_is_refused(tmp_path: Path) -> None:
    file = secret_file(tmp_path, b"hush")
    with pytest.raises(ParameterError, match="given once"):
        read([], BLOOMTIDE_PASSWORD="hush", BLOOMTIDE_PASSWORD_FILE=file)
    with pytest.raises(ParameterError, match="given once"):
        read([("http-token", "a"), ("http-token-file", file)])


def test_one_open_port_beside_a_closed_one_is_warned_of() -> None:
    assert "HTTP needs no token" in read([("requirepass", "x")])[2][0]
    assert "HTTP needs no token" in read([("user", "default on >x ~* +@all")])[2][0]
    assert "needs no password" in read([("http-token", "x")])[2][0]
    for pairs in (
        [], [("requirepass", "x"), ("http-token", "x")], [("requirepass", "x"), ("http-port", "0")],
        [("http-token", "x"), ("port", "0")],
    ):  # fmt: skip
        assert read(pairs)[2] == ()
