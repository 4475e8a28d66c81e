"""A log and what rotation makes of it, with the lines that were written: the truth about counts.

Every line is written once and is in some file from then on. `step` does one thing that happens to
logs, chosen by the seed; what takes several system calls calls `between` after each, where a test
may read or kill a reader.
"""

from __future__ import annotations

import gzip
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import zstandard

START = 1_700_000_000


class Rotation:
    """The files `access.log*` in a directory."""

    def __init__(
        self, folder: Path, seed: int, line: Callable[[int, random.Random], bytes]
    ) -> None:
        """`line` makes the line of that number, with its end."""
        self.folder = folder
        self.log = folder / "access.log"
        self.lines: list[bytes] = []
        """All that are complete."""
        self.between: Callable[[], object] = lambda: None
        self._draw = random.Random(seed)
        self._line = line
        self._written = 0
        self._begun = b""
        """What is missing at the end of the last line."""
        self._old: list[Path] = []
        """The rotated files, oldest first."""
        self.append()

    @property
    def pattern(self) -> str:
        """What to read."""
        return str(self.folder / "access.log*")

    def step(self) -> str:
        """Something happens; its name."""
        kinds = [
            self.append, self.append, self.append, self.begin_line, self.rotate, self.copytruncate,
            self.compress, self.copy, self.link,
        ]  # fmt: skip
        chosen = self._draw.choice(kinds)
        chosen()
        return chosen.__name__

    def append(self) -> None:
        """Some lines, in one write or two."""
        self.finish()
        count = self._draw.choice((1, 1, 3, 40))
        lines = [self._line(self._written + n, self._draw) for n in range(count)]
        data = b"".join(lines)
        cut = self._draw.randrange(len(data))
        self._write(data[:cut])
        self.between()
        self._write(data[cut:])
        self._written += count
        self.lines += lines

    def begin_line(self) -> None:
        """The writer is in the middle of a line."""
        self.finish()
        line = self._line(self._written, self._draw)
        cut = self._draw.randrange(1, len(line))
        self._write(line[:cut])
        self._begun = line[cut:]
        self._written += 1
        self.lines.append(line)

    def finish(self) -> None:
        """The writer ends its line."""
        if self._begun:
            self._write(self._begun)
            self._begun = b""

    def rotate(self) -> None:
        """As logrotate does it by `create`: the writer goes on in the renamed file for a while."""
        if not self.log.stat().st_size:
            return
        renamed = self._shift()
        self.log.rename(renamed)
        self.between()
        if self._draw.random() < 0.5:
            line = self._line(self._written, self._draw)
            self._written += 1
            self.lines.append(line)
            self._write(self._begun + line, renamed)
            self._begun = b""
            self.between()
        elif self._begun:
            self._write(self._begun, renamed)
            self._begun = b""
        self.log.touch()
        self.between()

    def copytruncate(self) -> None:
        """The other way: the writer keeps its file."""
        self.finish()
        if not self.log.stat().st_size:
            return
        data = self.log.read_bytes()
        copy = self._shift()
        cut = self._draw.randrange(len(data))
        copy.write_bytes(data[:cut])
        self.between()
        self._write(data[cut:], copy)
        self.between()
        os.truncate(self.log, 0)
        self.between()

    def compress(self) -> None:
        """One of the rotated files; its packed form is there first, and not whole at once."""
        plain = [path for path in self._old if path.suffix not in (".gz", ".zst")]
        if not plain:
            return
        path = self._draw.choice(plain)
        data = path.read_bytes()
        if self._draw.random() < 0.5:
            packed, name = gzip.compress(data), f"{path.name}.gz"
        else:
            packed, name = zstandard.compress(data), f"{path.name}.zst"
        target = self.folder / name
        cut = self._draw.randrange(len(packed))
        target.write_bytes(packed[:cut])
        self.between()
        self._write(packed[cut:], target)
        self.between()
        if self._draw.random() < 0.7:
            path.unlink()
            self._old[self._old.index(path)] = target
            self.between()

    def copy(self) -> None:
        """Somebody keeps a copy of the log beside it."""
        copy = self.folder / f"access.log.copy{self._draw.randrange(3)}"
        temporary = self.folder / "copying"
        shutil.copy(self.log, temporary)
        temporary.replace(copy)

    def link(self) -> None:
        """A second name of the same file."""
        link = self.folder / f"access.log.link{self._draw.randrange(3)}"
        link.unlink(missing_ok=True)
        os.link(self.log, link)

    def _shift(self) -> Path:
        """Rotated files get the next number; answers the first one, which is free then."""
        moved = []
        for path in self._old:
            number, dot, ending = path.name.removeprefix("access.log.").partition(".")
            moved.append((path, self.folder / f"access.log.{int(number) + 1}{dot}{ending}"))
        # The oldest first, so that none is written over.
        for path, target in moved:
            path.rename(target)
            self.between()
        self._old = [target for _, target in moved]
        self._old.append(self.folder / "access.log.1")
        return self._old[-1]

    def _write(self, data: bytes, path: Path | None = None) -> None:
        with (path or self.log).open("ab") as file:
            file.write(data)
