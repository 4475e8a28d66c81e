"""`bloomtide dedup` that stops where it has looked for its state and found none, until it is told.

`python -m tests.cli.held_dedup LOOK DESCRIPTOR ...`: the LOOK-th time that it finds none it says so
on stderr, and waits for a byte on the descriptor.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bloomtide.cli.main import main

STATE = "seen"
FOUND_NONE = b"found no state\n"


class Held:
    """Such a process; pipes are its stdin, stdout and stderr."""

    def __init__(self, look: int, *arguments: str | Path) -> None:
        theirs, self._mine = os.pipe()
        command = [sys.executable, "-m", __name__, str(look), str(theirs), "dedup"]
        self.process = subprocess.Popen(
            [*command, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[theirs],
            cwd=Path(__file__).parents[2],
        )
        os.close(theirs)

    def found_none(self) -> None:
        """Waits until it has looked and stopped."""
        assert self.process.stderr
        assert self.process.stderr.readline() == FOUND_NONE

    def goes_on(self) -> None:
        """Lets it go on."""
        os.write(self._mine, b"!")
        os.close(self._mine)


def hold(look: int, descriptor: int) -> None:
    """Stops this process there."""
    exists, left = Path.exists, [look]

    def looked(self: Path, *arguments: Any, **options: Any) -> bool:
        found = exists(self, *arguments, **options)
        if self.name == STATE and not found:
            left[0] -= 1
            if left[0] == 0:
                os.write(2, FOUND_NONE)
                os.read(descriptor, 1)
        return found

    Path.exists = looked  # type: ignore[method-assign]


if __name__ == "__main__":
    hold(int(sys.argv.pop(1)), int(sys.argv.pop(1)))
    main()
