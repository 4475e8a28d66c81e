"""How long commands take that have next to nothing to do, beside `import numpy`.

`python -m benchmarks.starts [ROUNDS]` starts every command with `--help`, and the plain ones on ten
lines, each in a process of its own and right after an `import numpy`, so that whatever else the
machine does slows both. Every answer is checked. The ratio is the median of those of the rounds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.answers import WrongAnswerError
from bloomtide import __version__
from bloomtide.cli.app import COMMANDS
from bloomtide.cli.history.app import COMMANDS as HISTORY

ROUNDS = 9
LIMIT = 2.0
"""Times of `import numpy` that a start may take."""
LINES = b"".join(b"key-%d\n" % number for number in range(10))
LOG = b"".join(
    b'192.0.2.1 - - [01/May/2024:12:00:%02d +0000] "GET /page-%d HTTP/1.1" 200 5\n' % (n, n % 3)
    for n in range(10)
)


@dataclass(frozen=True, slots=True)
class Case:
    """One command line, and what it must answer."""

    arguments: tuple[str, ...]
    expected: bytes
    """What stdout must hold."""
    stdin: bytes = b""

    @property
    def name(self) -> str:
        """As one types it."""
        return " ".join(("bloomtide", *self.arguments))


@dataclass(frozen=True, slots=True)
class Start:
    """What was measured of a case."""

    name: str
    seconds: float
    ratio: float


def cases() -> Iterator[Case]:
    """Every command."""
    yield Case(("--version",), f"bloomtide {__version__}\n".encode())
    yield Case(("--help",), b"validate")
    yield Case(("history", "--help"), b"segments")
    for name in [*COMMANDS, *(f"history {name}" for name in HISTORY)]:
        if name != "history":
            yield Case((*name.split(), "--help"), f"Usage: bloomtide {name} ".encode())
    ten = "\n".join(f"key-{number}" for number in range(10)).encode()
    yield Case(("add", "new.bloom", "--new"), ten, LINES)
    yield Case(("check", "seen.bloom"), ten, LINES)
    yield Case(("count", "counts.bloom"), b"1\tkey-0\n1\tkey-1\n", LINES)
    yield Case(("dedup",), ten, LINES + LINES)
    yield Case(("top", "access.log"), b"/page-0")
    yield Case(("plan", "--items", "1M"), b"set of str")
    yield Case(("info", "seen.bloom"), b"about 10")
    key = "/page-1"
    yield Case(("history", "count", "store", "--key", key), b"3\t/page-1\n")


def measure(rounds: int, only: tuple[Case, ...] | None = None) -> list[Start]:
    """Each case in each round, after `import numpy`."""
    chosen = tuple(cases()) if only is None else only
    # A user's interpreter keeps its bytecode.
    env = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    numpy: list[float] = []
    times: dict[Case, list[tuple[float, float]]] = {case: [] for case in chosen}
    with tempfile.TemporaryDirectory(prefix="bloomtide-bench-") as folder:
        _prepare(Path(folder), env)
        for number in range(rounds + 1):
            for case in chosen:
                if case.arguments[0] == "add":
                    _run(("new", "new.bloom", "--items", "1k", "--force"), b"", folder, env)
                begun = time.perf_counter()
                subprocess.run([sys.executable, "-c", "import numpy"], check=True, env=env)
                between = time.perf_counter()
                answer = _run(case.arguments, case.stdin, folder, env)
                ended = time.perf_counter()
                if case.expected not in answer:
                    raise WrongAnswerError(f"{case.name}: {answer!r}")
                if number:  # the first round fills the caches
                    numpy.append(between - begun)
                    times[case].append((ended - between, (ended - between) / (between - begun)))
    return [Start("python -c 'import numpy'", median(numpy), 1.0)] + [
        Start(case.name, median(s for s, _ in found), median(r for _, r in found))
        for case, found in times.items()
    ]


def table(starts: list[Start]) -> str:
    """As Markdown."""
    lines = ["| command | ms | times `import numpy` | at most |", "|---|---:|---:|---:|"]
    for one in starts:
        late = " **over**" if one.ratio > LIMIT else ""
        lines.append(
            f"| `{one.name}` | {one.seconds * 1e3:.0f} | {one.ratio:.2f}{late} | {LIMIT:g} |"
        )
    return "\n".join(lines)


def _prepare(folder: Path, env: Mapping[str, str]) -> None:
    """The files that the cases ask."""
    (folder / "access.log").write_bytes(LOG)
    at = str(folder)
    _run(("new", "seen.bloom", "--items", "1k", "--error", "1e-6"), b"", at, env)
    _run(("new", "counts.bloom", "--items", "1k", "--kind", "counting"), b"", at, env)
    _run(("add", "seen.bloom"), LINES, at, env)
    _run(("add", "counts.bloom"), LINES, at, env)
    _run(("history", "ingest", "store", "access.log"), b"", at, env)


def _run(arguments: tuple[str, ...], stdin: bytes, folder: str, env: Mapping[str, str]) -> bytes:
    command = [sys.executable, "-m", "bloomtide", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, cwd=folder, env=env)
    if done.returncode != 0:
        raise WrongAnswerError(f"{' '.join(arguments)}: {done.stderr.decode()}")
    return done.stdout


def main() -> int:
    """Print the table; 1 if a command takes too long."""
    starts = measure(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
    print(table(starts))
    return 1 if any(one.ratio > LIMIT for one in starts) else 0


if __name__ == "__main__":
    sys.exit(main())
