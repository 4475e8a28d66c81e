"""`Scratch`: partials of large filters as files in a shared directory, for the time of one build.

Spark carries a value from a worker through the JVM of its executor, a shuffle, and the JVM of the
driver: about ten copies of a filter of 100 MB, and more CPU than 100 M keys take. With a directory
that every machine can write, tasks hand on the names of files instead.

A partial that is a filter is its snapshot, which the core writes and reads; others are as
`bloomtide.distributed` packs them. All are of one recipe, since one build made them.

1. A name is new for each attempt of a task: of an attempt that Spark does not take nothing is read.
2. The build has a directory of its own, which is removed when it ends, whatever was left there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyarrow import fs

from bloomtide import from_bytes, load
from bloomtide.distributed.build import Spool
from bloomtide.distributed.partial import unpack

_KEYS, _FILTER = ".partial", ".bloom"


def open_place(path: str | Path) -> tuple[Any, str]:
    """A file system of Arrow, and the path on it."""
    if "://" in str(path):
        found: tuple[Any, str] = fs.FileSystem.from_uri(str(path))
        return found
    return fs.LocalFileSystem(), str(Path(path).resolve())


class Scratch:
    """The files of one build."""

    def __init__(self, path: str | Path) -> None:
        """Names a directory below `path`."""
        self._system, base = open_place(path)
        self._local = isinstance(self._system, fs.LocalFileSystem)
        self._folder = f"{base}/bloomtide-{uuid4().hex}"

    @contextlib.contextmanager
    def during(self) -> Iterator[Scratch]:
        """It is there, and then it is not."""
        self._system.create_dir(self._folder, recursive=True)
        try:
            yield self
        finally:
            self._system.delete_dir(self._folder)

    def put(self, spool: Spool) -> bytes:
        """Writes what a task made; the name of the file."""
        name = uuid4().hex + (_FILTER if spool.has_filter else _KEYS)
        path = f"{self._folder}/{name}"
        if spool.has_filter and self._local:
            spool.filter().save(path)
        else:
            data = spool.filter().to_bytes() if spool.has_filter else spool.pack()
            with self._system.open_output_stream(path) as stream:
                stream.write(data)
        return name.encode()

    def join(self, names: Iterable[bytes], spool: Spool) -> None:
        """Adds what tasks made."""
        for name in names:
            path = f"{self._folder}/{name.decode()}"
            if path.endswith(_FILTER) and self._local:
                spool.absorb(load(path))
                continue
            with self._system.open_input_file(path) as stream:
                data = stream.read()
            if path.endswith(_FILTER):
                spool.absorb(from_bytes(data))
            else:
                spool.join(unpack(data))
