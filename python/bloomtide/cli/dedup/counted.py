"""`bloomtide dedup --count`: how often each line comes, as `uniq -c` tells, without sorting.

A count is known at the end of the input, and the lines are not kept in memory. So the input is read
once to count into a filter that counts, and once more to print each line the first time it comes.
Input that cannot be read twice is copied to a temporary file. A count is never too small; it is too
large for the share of lines that `--error` allows.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bloomtide import BloomFilter, Dedup, DynamicCountFilter
from bloomtide.cli import console
from bloomtide.cli.dedup.memory import ERROR, Size, overfull_is_an_error
from bloomtide.cli.sources import chunks, stdin
from bloomtide.errors import OverfullWarning

WHAT = "lines"
FORM = "one item per line"


class Counted:
    """A run that counts."""

    def __init__(self, size: Size, options: dict[str, Any]) -> None:
        self.size = size
        self.options = options
        self.problems: dict[str, console.CommandError] = {}

    def read(self, sources: list[str], *, write: bool) -> tuple[Dedup, BloomFilter]:
        """Prints the lines with their counts; answers what was read, and the filter."""
        with ExitStack() as stack:
            files = [_readable_again(source, stack) for source in sources]
            items = max(1, self.size.items or self._distinct(files))
            error = self.size.error or ERROR
            counts = DynamicCountFilter(items, error)
            try:
                with overfull_is_an_error():
                    for _, keys in self._passes(Dedup(**self.options), files):
                        counts.add_many(keys)
            except OverfullWarning as found:
                raise console.CommandError(
                    f"--items {found.capacity:,} is far too small: there are more than"
                    f" {2 * found.capacity:,} different lines",
                    hint="nothing was written; give --items auto or a larger number",
                ) from None
            seen, lines = BloomFilter(items, error), Dedup(**self.options)
            for header, keys in self._passes(lines, files, judged=True):
                new = seen.add_many(keys).tolist()
                kept = lines.keep(new, counts.count_many(keys).tolist())
                if write:
                    console.write((b"count\t" + header if header else b"") + kept)
            return lines, seen

    def _distinct(self, files: list[str]) -> int:
        """How many different lines there are: one more pass, by a filter that grows."""
        lines = Dedup(Size(0, self.size.error, self.size.expected).flat(), **self.options)
        for file in files:
            for chunk in self._chunks(file):
                lines.feed(chunk)
            lines.finish()
        return lines.report().new

    def _passes(
        self, lines: Dedup, files: list[str], *, judged: bool = False
    ) -> Iterator[tuple[bytes, list[bytes]]]:
        for file in files:
            for chunk in self._and_end(file):
                header, keys, _ = lines.take(chunk)
                yield header, keys
                if not judged:
                    lines.keep([False] * len(keys))

    def _and_end(self, file: str) -> Iterator[bytes | None]:
        yield from self._chunks(file)
        yield None

    def _chunks(self, file: str) -> Iterator[bytes]:
        """What was read of a damaged file counts; its problem is told once."""
        try:
            yield from chunks(file, lambda count: None, WHAT, FORM)
        except console.CommandError as problem:
            self.problems[file] = problem


def _readable_again(source: str, stack: ExitStack) -> str:
    """A file that can be read more than once: itself, or a copy."""
    path = Path(source)
    if source != "-" and (path.is_file() or not path.exists()):
        return source
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bloomtide-dedup-"))
    copy = Path(folder) / f"copy{path.suffix}"  # the ending says how it is packed
    with copy.open("wb") as out:
        if source == "-":
            shutil.copyfileobj(stdin(WHAT, FORM), out)
        else:
            with path.open("rb") as opened:
                shutil.copyfileobj(opened, out)
    return str(copy)
