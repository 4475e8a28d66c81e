"""Keys from files, stdin and the command line, in batches for the `_many` methods.

One line is one key: its bytes without the line end (LF or CRLF). An empty line is the empty key;
a last line without a line end counts. Files whose name ends in `.gz` or `.zst` are unpacked.
"""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from bloomery.cli.console import CommandError, message
from bloomery.cli.progress import Advance, reading

CHUNK = 1 << 20
"""Bytes read at once: about 18 000 URLs, enough to make the cost of a batch call vanish."""

PACKED_CHUNK = 1 << 14
"""Bytes unpacked at once; one may become thousands, so fewer than `CHUNK`."""


def key_batches(
    sources: list[str], given: list[str], *, prints_lines: bool = False
) -> Iterator[list[bytes]]:
    """The keys `given` as options, then those of each source (`-` is stdin) line by line.

    Without any of them stdin is read. `prints_lines` says that the caller writes lines to stdout
    meanwhile, where a progress bar on the same terminal would be in the way.
    """
    if given:
        # As the shell passed them: a key that is not UTF-8 arrives with its own bytes.
        yield [os.fsencode(key) for key in given]
    if sources or not given:
        sources = sources or ["-"]
        with reading(sources, prints_lines=prints_lines) as advance:
            for source in sources:
                yield from split_lines(_chunks(source, advance))


def with_counts(lines: list[bytes]) -> tuple[list[bytes], list[int]]:
    """The keys and the counts of lines `count<TAB>key`."""
    keys, counts = [], []
    for line in lines:
        count, tab, key = line.partition(b"\t")
        if not (tab and count.isdigit() and len(count) < 20 and int(count)):
            raise CommandError(
                f"not a line `count<TAB>key`: {os.fsdecode(line[:100])}",
                hint="a count is a whole number from 1, of up to 19 digits",
            )
        keys.append(key)
        counts.append(int(count))
    return keys, counts


def split_lines(chunks: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Whole lines of each chunk; the begun line at its end waits for the next chunk."""
    begun: list[bytes] = []  # a list: a long line is joined once, not copied for each chunk
    for chunk in chunks:
        head, newline, rest = chunk.rpartition(b"\n")
        if not newline:
            begun.append(chunk)
            continue
        block = b"".join([*begun, head, b"\n"])
        begun = [rest] if rest else []
        if b"\r\n" in block:
            block = block.replace(b"\r\n", b"\n")
        lines = block.split(b"\n")
        lines.pop()  # what follows the last newline: nothing
        yield lines
    if last := b"".join(begun):
        yield [last]


def _chunks(source: str, advance: Advance) -> Iterator[bytes]:
    if source == "-":
        if sys.stdin is None:
            raise CommandError("stdin is closed", hint="name a file with keys, or use --key")
        if sys.stdin.isatty():
            message("reading keys from the terminal, one per line; ctrl-D ends")
        yield from _plain(sys.stdin.buffer, advance)
        return
    unpack = _UNPACKERS.get(Path(source).suffix.lower(), _plain)
    try:
        with Path(source).open("rb") as file:
            yield from unpack(file, advance)
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        raise CommandError(
            f"{source}: damaged gzip data: {problem}", hint=f"`gzip -t {source}` tests it"
        ) from None
    except OSError as problem:
        raise CommandError(
            f"cannot read keys from {source}: {problem.strerror or problem}",
            hint="name a file with one key per line, or `-` for stdin",
        ) from None


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


def _zstd(file: BinaryIO, advance: Advance) -> Iterator[bytes]:
    # decompressobj and not stream_reader: the latter ends a cut file without an error.
    import zstandard

    frames = zstandard.ZstdDecompressor()
    frame = None
    try:
        while packed := file.read(PACKED_CHUNK):
            advance(len(packed))
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


def _damaged_zstd(file: BinaryIO, problem: str) -> CommandError:
    return CommandError(
        f"{file.name}: damaged zstd data: {problem}", hint=f"`zstd -t {file.name}` tests it"
    )


_UNPACKERS: dict[str, Callable[[BinaryIO, Advance], Iterator[bytes]]] = {
    ".gz": _gzip,
    ".zst": _zstd,
}
