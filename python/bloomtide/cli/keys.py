"""Keys from files, stdin and the command line, in batches for the `_many` methods.

One line is one key: its bytes without the line end (LF or CRLF). An empty line is the empty key;
a last line without a line end counts. Files whose name ends in `.gz` or `.zst` are unpacked.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

from bloomtide.cli.console import CommandError
from bloomtide.cli.progress import reading
from bloomtide.cli.sources import chunks
from bloomtide.errors import ParameterError


def key_batches(
    sources: Sequence[str], given: Sequence[str], *, prints_lines: bool = False
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
                yield from split_lines(chunks(source, advance, "keys", "one key per line"))


@contextlib.contextmanager
def by_line(before: int) -> Iterator[None]:
    """Tells of a key that a filter of URLs refuses in which line it is, after those `before`."""
    try:
        yield
    except ParameterError as problem:
        if not hasattr(problem, "index"):
            raise
        _, _, reason = problem.message.partition(": ")
        raise CommandError(
            f"line {before + problem.index + 1}: {reason}", hint=problem.hint
        ) from None


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
