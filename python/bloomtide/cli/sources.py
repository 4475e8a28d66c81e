"""Bytes of files and stdin, piece by piece; `.gz` and `.zst` are unpacked by their names."""

from __future__ import annotations

import contextlib
import gzip
import os
import stat
import sys
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Any, BinaryIO, TypeVar

from bloomtide.cli.console import CommandError, message
from bloomtide.cli.progress import Advance

CHUNK = 1 << 20
"""Bytes read at once: about 18 000 URLs, enough to make the cost of a batch call vanish."""

SAMPLE = 1 << 16
"""Bytes of a file from which the length of its lines is guessed."""

PACKED_CHUNK = 1 << 14
"""Bytes unpacked at once; one may become thousands, so fewer than `CHUNK`."""

EMPTY = "the file is empty"
"""What is wrong with a packed file of no bytes: it was cut, or not written yet."""

AHEAD = 2
"""Pieces that a thread works out before they are asked for."""

READS_AHEAD = "reads ahead"
"""The name of that thread."""

T = TypeVar("T")


def stdin(what: str, form: str) -> BinaryIO:
    """Standard input, and a word to whoever types into it."""
    if sys.stdin is None:
        raise CommandError("stdin is closed", hint=f"name a file with {what}")
    if sys.stdin.isatty():
        message(f"reading {what} from the terminal, {form}; ctrl-D ends")
    return sys.stdin.buffer


def is_packed(source: str) -> bool:
    """Whether the name says that the file is compressed."""
    return Path(source).suffix.lower() in _UNPACKERS


def never_waits(source: str) -> bool:
    """Whether it is a file, whose bytes are there, and not a pipe or a terminal."""
    with contextlib.suppress(OSError, AttributeError):
        status = os.fstat(sys.stdin.fileno()) if source == "-" else Path(source).stat()
        return stat.S_ISREG(status.st_mode)
    return False


def ahead(pieces: Iterator[T], source: str) -> Generator[T, None, None]:
    """The same pieces of a source. Those of a file are worked out by a thread while the caller is
    busy with the ones before; a pipe would keep the thread waiting when all else is over."""
    if not never_waits(source):
        yield from pieces
        return
    done: SimpleQueue[tuple[bool, Any]] = SimpleQueue()
    room, wanted = Semaphore(AHEAD), True

    def work() -> None:
        try:
            for piece in pieces:
                done.put((True, piece))
                room.acquire()
                if not wanted:
                    return
            done.put((False, None))
        except BaseException as problem:  # noqa: BLE001 - raised again by the caller's thread
            done.put((False, problem))

    thread = Thread(target=work, name=READS_AHEAD)
    thread.start()
    try:
        while (answer := done.get())[0]:
            room.release()
            yield answer[1]
    finally:
        wanted = False
        room.release()
        thread.join()
    if answer[1] is not None:
        raise answer[1]


def expected_lines(sources: Iterable[str]) -> int:
    """Lines of the files by their lengths and the lines they begin with; what cannot be known adds
    none: pipes, packed files, files that are not there."""
    lines = 0
    for source in sources:
        if source == "-" or is_packed(source) or not Path(source).is_file():
            continue
        with contextlib.suppress(OSError), Path(source).open("rb") as file:
            start = file.read(SAMPLE)
            length = max(os.fstat(file.fileno()).st_size, len(start))
            lines += length * max(start.count(b"\n"), 1) // max(len(start), 1)
    return lines


def chunks(source: str, advance: Advance, what: str, form: str) -> Iterator[bytes]:
    """The bytes of a file, or of stdin for `-`; messages call it `what`, with that `form`."""
    if source == "-":
        yield from _plain(stdin(what, form), advance)
        return
    try:
        with Path(source).open("rb") as file:
            yield from unpacked(source, file, advance, what, form)
    except OSError as problem:
        raise unreadable(source, problem, what, form) from None


def unpacked(
    source: str, file: BinaryIO, advance: Advance, what: str, form: str
) -> Iterator[bytes]:
    """The same of an open file, as its name says that it is packed."""
    unpack = _UNPACKERS.get(Path(source).suffix.lower(), _plain)
    try:
        yield from unpack(file, advance)
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        raise CommandError(
            f"{source}: damaged gzip data: {problem}", hint=f"`gzip -t {source}` tests it"
        ) from None
    except OSError as problem:
        raise unreadable(source, problem, what, form) from None


def unreadable(source: str, problem: OSError, what: str, form: str) -> CommandError:
    """What the operating system says of a file that cannot be read."""
    return CommandError(
        f"cannot read {what} from {source}: {problem.strerror or problem}",
        hint=f"name a file with {form}, or `-` for stdin",
    )


def _plain(file: BinaryIO, advance: Advance) -> Iterator[bytes]:
    # read1 answers what is there: keys typed or piped slowly are worked on as they come.
    while chunk := file.read1(CHUNK):  # type: ignore[attr-defined]
        yield chunk
        advance(len(chunk))


def _gzip(file: BinaryIO, advance: Advance) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=file) as unpacked:
        before = 0
        while chunk := unpacked.read1(CHUNK):
            yield chunk
            advance(file.tell() - before)
            before = file.tell()
        if file.tell() == 0:  # packed nothing has bytes too
            raise EOFError(EMPTY)


def _zstd(file: BinaryIO, advance: Advance) -> Iterator[bytes]:
    # decompressobj and not stream_reader: the latter ends a cut file without an error.
    import zstandard

    frames = zstandard.ZstdDecompressor()
    frame = None
    some = False
    try:
        while packed := file.read(PACKED_CHUNK):
            advance(len(packed))
            some = True
            while packed:
                frame = frame or frames.decompressobj()
                yield frame.decompress(packed)
                packed = frame.unused_data
                if frame.eof:
                    frame = None
    except zstandard.ZstdError as problem:
        raise _damaged_zstd(file, str(problem)) from None
    if frame is not None:
        raise _damaged_zstd(file, "it ends too early")
    if not some:
        raise _damaged_zstd(file, EMPTY)


def _damaged_zstd(file: BinaryIO, problem: str) -> CommandError:
    return CommandError(
        f"{file.name}: damaged zstd data: {problem}", hint=f"`zstd -t {file.name}` tests it"
    )


_UNPACKERS: dict[str, Callable[[BinaryIO, Advance], Iterator[bytes]]] = {
    ".gz": _gzip,
    ".zst": _zstd,
}
