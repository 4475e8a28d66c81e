"""A PostgreSQL server of one's own: a new cluster in a temporary directory, on a socket there.

Nothing of it outlives its user. It has no TCP port, so it meets no other server. It writes nothing
through to the disk, since nobody needs its data after a crash; `durable` is for measurements.
PostgreSQL refuses to run as root, so then it runs as the user `postgres`.

    with Postgres.running() as server:
        engine = create_engine(server.new_database())
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Self

import pytest

_USER = "postgres"
_SETTINGS = "-c listen_addresses='' -c max_connections=200 -c max_prepared_transactions=10"
_FAST = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off"


def find_programs() -> Path | None:
    """Where `initdb` and `pg_ctl` are: on the path, or where Debian puts the newest of them."""
    if found := shutil.which("initdb"):
        return Path(found).parent
    places = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((place.parent for place in places), key=lambda p: int(p.parent.name), default=None)


def why_not() -> str | None:
    """The reason why no server can be started here; None if one can."""
    if find_programs() is None:
        return "PostgreSQL is not installed"
    if os.geteuid() == 0:
        import pwd  # Windows has none, and every test imports this file

        try:
            pwd.getpwnam(_USER)
        except KeyError:
            return "PostgreSQL does not run as root, and there is no user `postgres`"
        if shutil.which("runuser") is None:
            return "PostgreSQL does not run as root, and there is no `runuser`"
    return None


class Postgres:
    """A running server."""

    def __init__(self, directory: Path, *, durable: bool = False) -> None:
        self._settings = _SETTINGS if durable else f"{_SETTINGS} {_FAST}"
        programs = find_programs()
        assert programs is not None, why_not()
        self._programs = programs
        self._root = directory
        self._data = directory / "data"
        self._names = (f"test{number}" for number in count(1))
        if os.geteuid() == 0:
            shutil.chown(directory, _USER)
        self._run("initdb", "-A", "trust", "-U", _USER, "-E", "UTF8", "--no-sync", "--no-locale")

    @classmethod
    @contextmanager
    def running(cls, *, durable: bool = False) -> Iterator[Self]:
        """Starts a server, and stops and deletes it at the end."""
        # The path of a socket has room for about a hundred bytes, so not below pytest's directory.
        directory = Path(tempfile.mkdtemp(prefix="bloomtide-pg-"))
        try:
            server = cls(directory, durable=durable)
            server.start()
            try:
                yield server
            finally:
                server.stop("immediate")  # nobody needs its data any more
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        as_user = ["runuser", "-u", _USER, "--"] if os.geteuid() == 0 else []
        command = [*as_user, str(self._programs / program), "-D", str(self._data), *arguments]
        # Its output goes to a file: the server inherits it, and a pipe would never be closed.
        with (self._root / "output").open("w+") as output:
            done = subprocess.run(
                command, stdout=output, stderr=output, cwd=self._root, check=False, timeout=60
            )
            output.seek(0)
            assert done.returncode == 0, f"{program} failed: {output.read()}"

    def start(self) -> None:
        log = str(self._root / "log")
        self._run("pg_ctl", "-w", "-l", log, "-o", f"{self._settings} -k {self._root}", "start")

    def stop(self, how: str = "fast") -> None:
        """Ends every connection; `start` brings the same data back."""
        self._run("pg_ctl", "-w", "-m", how, "stop")

    def url(self, database: str = _USER, *, driver: str = "psycopg") -> str:
        """For SQLAlchemy."""
        return f"postgresql+{driver}://{_USER}@/{database}?host={self._root}"

    def new_database(self) -> str:
        """The URL of an empty database."""
        import psycopg

        name = next(self._names)
        conninfo = f"host={self._root} user={_USER} dbname={_USER}"
        with psycopg.connect(conninfo, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server for all tests; skips where there is none."""
    if reason := why_not():
        pytest.skip(reason)
    with Postgres.running() as server:
        yield server
