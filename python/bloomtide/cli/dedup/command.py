"""`bloomtide dedup`: the options, the loop over the input, and what is said at the end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import click

from bloomtide.cli import console
from bloomtide.cli.dedup.memory import Memory, Size, remembering
from bloomtide.cli.dedup.told import Told
from bloomtide.cli.options import PATH, SOURCE, as_json, choice, flag, option
from bloomtide.cli.progress import Advance, reading
from bloomtide.cli.quantities import parse_error_rate, parse_items
from bloomtide.cli.sources import ahead, chunks, expected_lines, never_waits
from bloomtide.cli.stop import Stop, StoppedError, undisturbed

WHAT = "lines"
FORM = "one item per line"
THREADS = 8
"""At most, and no more than there are cores."""

Format = Literal["csv", "tsv", "json"]


def parse_items_or_auto(text: str) -> int:
    """A number of lines; 0 for `auto`."""
    return 0 if text == "auto" else parse_items(text)


@click.command()
@click.argument(
    "files",
    metavar="[FILE]...",
    nargs=-1,
    type=SOURCE,
    help="Files, also .gz and .zst; `-` is stdin, the default.",
)
@option(
    "--state",
    metavar="FILE",
    type=PATH,
    help="Go on from this file, and save to it; made if missing.",
)
@option(
    "--items",
    metavar="N|auto",
    type=parse_items_or_auto,
    help="Different lines expected, such as 5M: sets the memory. auto, the default, grows from"
    " what the lengths of the files tell.",
)
@option(
    "--error",
    metavar="RATE",
    type=parse_error_rate,
    help="Largest share of new lines dropped, such as 1e-6 or 0.1%; 0.01% if not given.",
)
@flag("--exact", help="Check on disk: no new line is ever dropped. Slower.")
@flag("--url", help="Lines are URLs: all spellings of one are the same.")
@option(
    "--key",
    metavar="FIELD",
    help="Compare by this: a column's name or number, or a JSON member such as user.id.",
)
@choice(
    "--format",
    of=get_args(Format),
    metavar="NAME",
    help="How the fields are written: csv, tsv or json; found by the ending of the name.",
)
@option("--within", metavar="TIME", help="Forget a line after this: 90s, 1h, 7d.")
@option(
    "--time",
    metavar="FIELD",
    help="With --within: the field with the time, seconds or ISO 8601; UTC if it names no zone.",
)
@flag("-v", "--invert", help="Print only the repeats.")
@flag("-c", "--count", help="Print `count<TAB>line`; reads the input twice, or spools it.")
@flag("--stats", help="Tell on stderr what was read and kept.")
@as_json
def dedup(
    files: tuple[str, ...],
    state: Path | None,
    items: int | None,
    error: float | None,
    exact: bool,
    url: bool,
    key: str | None,
    format: Format | None,
    within: str | None,
    time: str | None,
    invert: bool,
    count: bool,
    stats: bool,
    json: bool,
) -> int:
    """Print each line the first time it is seen, in bounded memory and in order.

    A repeat is never printed. A new line is dropped by mistake with the probability --error at
    most, and never with --exact. Lines that have no key, or are no URL, are passed through. With
    --json only the numbers are written.
    """
    _require_possible(count, {"--state": state, "--within": within, "--exact": exact or None,
                              "--invert": invert or None})  # fmt: skip
    if within is not None and exact:
        raise console.CommandError(
            "--within forgets and --exact never does", hint="give one of the two"
        )
    if time is not None and within is None:
        raise console.CommandError("--time needs --within", hint="such as --within 7d")
    sources = list(files) or ["-"]
    size = Size(items, error, expected_lines(sources))
    options: dict[str, Any] = {
        "key": key, "time": time, "url": url, "invert": invert, "threads": threads_for(sources),
    }  # fmt: skip
    if key is not None or time is not None:
        options["format"] = format or guess_format(sources)
    elif format == "csv":
        options["format"] = format  # a record may span lines
    words = "that are no URL" if url else f"without a `{key}`"
    if count:
        from bloomtide.cli.dedup.counted import Counted

        counted = Counted(size, options)
        lines, filter = counted.read(sources, write=not json)
        told = Told(lines, filter, list(counted.problems.values()), words)
        told.tell(json, stats)
        return 2 if told.problems else 0
    state = None if state is None else state.resolve()  # saving must not replace a link
    with remembering(state, size, within, exact, options) as memory:
        run = Run(memory, write=not json)
        code = run.read(sources, state)
    told = Told(memory.lines, memory.filter, run.problems, words, exact)
    told.tell(json, stats)
    return code


class Run:
    """The input from its first byte to its last."""

    def __init__(self, memory: Memory, *, write: bool) -> None:
        self.memory = memory
        self.write = write
        self.stop = Stop()
        self.problems: list[console.CommandError] = []

    def read(self, sources: list[str], state: Path | None) -> int:
        """All sources; then, or when interrupted, the state is saved. Answers the exit code."""
        code = 0
        try:
            with self.stop.listening():
                self._read_all(sources)
        except StoppedError as stopped:
            code = stopped.code
            if not stopped.orderly:
                return code
        except console.ReaderGoneError:
            self._save(state)
            raise
        self._save(state)
        return code or (2 if self.problems else 0)

    def _save(self, state: Path | None) -> None:
        if state is not None:
            with undisturbed():
                self.memory.save(state)

    def _read_all(self, sources: list[str]) -> None:
        with reading(sources, prints_lines=self.write) as advance:
            for source in sources:
                for prepared in ahead(self._prepared(source, advance), source):
                    with self.stop.in_hand():
                        self._keep(self.memory.judge(prepared))

    def _prepared(self, source: str, advance: Advance) -> Iterator[Any]:
        for chunk in self._chunks(source, advance):
            yield self.memory.prepare(chunk)
        yield self.memory.prepare(None)

    def _chunks(self, source: str, advance: Advance) -> Iterator[bytes]:
        """What was read of a damaged file counts, and the others are read all the same."""
        try:
            yield from chunks(source, advance, WHAT, FORM)
        except console.CommandError as problem:
            self.problems.append(problem)

    def _keep(self, lines: bytes) -> None:
        if self.write:
            console.write(lines)
        self.memory.written()


def threads_for(sources: list[str]) -> int:
    """Threads that hash. Lines of files are hashed ahead while the main thread filters and writes,
    so one core is left to it."""
    if not all(never_waits(source) for source in sources):
        return THREADS
    mine = getattr(os, "sched_getaffinity", None)
    cores = len(mine(0)) if mine else os.cpu_count() or 1
    return max(1, min(THREADS, cores - 1))


def guess_format(sources: list[str]) -> Format:
    """By the name of the first file that tells."""
    endings: dict[str, Format] = {
        ".csv": "csv", ".tsv": "tsv", ".tab": "tsv",
        ".json": "json", ".jsonl": "json", ".ndjson": "json",
    }  # fmt: skip
    for source in sources:
        for ending in reversed(Path(source).suffixes[-2:]):
            if ending.lower() in endings:
                return endings[ending.lower()]
    raise console.CommandError(
        "--key needs to know how the fields are written", hint="give --format csv, tsv or json"
    )


def _require_possible(count: bool, others: dict[str, object]) -> None:
    for name, value in others.items():
        if count and value is not None:
            raise console.CommandError(
                f"--count and {name} do not go together", hint="give one of the two"
            )
