"""A million operations on each structure, and every planted fault.

    python -m benchmarks.oracle --operations 50000 --only History

Keys come from the logs and lists in `--data` (`../shared/data` beside the checkout) where there are
any, and from a generator. It prints a table and writes it into docs/proof.md with `--document`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from benchmarks import documents, machine
from benchmarks.markdown import table
from benchmarks.oracle import counts, decaying, growing, history, hot, monitor, recent, sets, urls
from benchmarks.oracle.faults import Fault
from benchmarks.oracle.planted import FAULTS
from benchmarks.oracle.streams import DATA, Stream, generated, generated_urls, streams
from benchmarks.oracle.trial import Broken, Trial
from bloomtide.errors import OverfullWarning

OPERATIONS = 1_000_000
LIFE = 20_000
"""Operations of one trial: then another one begins with other parameters."""
DOCUMENT = Path(__file__).parents[2] / "docs" / "proof.md"
TRIALS: tuple[type[Trial], ...] = (
    sets.BloomTrial, sets.MappedTrial, sets.ScalableTrial, urls.UrlTrial, recent.RecentTrial,
    counts.CountingTrial, growing.SpectralTrial, growing.DynamicTrial,
    growing.PartitionedSpectralTrial, growing.PartitionedDynamicTrial, decaying.DecayTrial,
    decaying.WrongClockTrial, hot.HotTrial, hot.WrongClockHotTrial, hot.HotFilterTrial,
    history.HistoryTrial, monitor.MonitorTrial, monitor.LogTrial,
)  # fmt: skip


def work(
    kind: type[Trial], operations: int, stream: Stream, seed: int, life: int = LIFE
) -> tuple[int, Counter[str], list[str]]:
    """So many operations on keys of one stream: those done, checks by promise, and what broke."""
    # Some hold many times what they were made for, on purpose.
    warnings.simplefilter("ignore", OverfullWarning)
    done, checks, broken = 0, Counter[str](), list[str]()
    while done < operations:
        with tempfile.TemporaryDirectory() as folder:
            trial: Trial | None = None
            try:
                trial = kind(seed, stream, Path(folder))
                trial.run(min(life, operations - done))
            except (Broken, ArithmeticError, LookupError, TypeError, ValueError) as found:
                broken.append(f"{kind.structure}, {stream.name}, seed {seed}: {found!r}")
            done += max(trial.done, 1) if trial else 1
            if trial is not None:
                checks += trial.checks
        seed += 1
    return done, checks, broken


def sources_of(kind: type[Trial], operations: int, folder: Path | None) -> list[Stream]:
    """The streams of a structure, read once."""
    is_url = kind is urls.UrlTrial
    return streams(folder, 1, max(2000, operations // (5 if is_url else 16)), urls=is_url)


def examine(
    name: str, operations: int, folder: Path | None
) -> tuple[int, Counter[str], list[str], float]:
    """One structure on every stream."""
    kind = next(kind for kind in TRIALS if kind.structure == name)
    begin = time.perf_counter()
    sources = sources_of(kind, operations, folder)
    done, checks, broken = 0, Counter[str](), list[str]()
    for number, stream in enumerate(sources):
        share = (operations - done) // (len(sources) - number)
        if share > 0:
            some = work(kind, share, stream, 1000 * number)
            done, checks, broken = done + some[0], checks + some[1], broken + some[2]
    return done, checks, broken, time.perf_counter() - begin


def finds(fault: Fault, *, seeds: int = 12, operations: int = 4000) -> Broken | None:
    """What the oracle says of a fault; None if it is not found."""
    is_url = fault.trial is urls.UrlTrial
    stream = generated_urls(1, 6000) if is_url else generated(1, 6000)
    for seed in range(seeds):
        with tempfile.TemporaryDirectory() as folder:
            try:
                fault.trial(seed, stream, Path(folder), fault.plant()).run(operations)
            except Broken as found:
                return found
    return None


def is_found(number: int) -> bool:
    """Whether the oracle finds the fault of this number."""
    return finds(FAULTS[number]) is not None


def main(arguments: list[str] | None = None) -> int:
    """The command; 1 if a promise is broken or a fault is not found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.oracle", description=__doc__)
    parser.add_argument("--operations", type=int, default=OPERATIONS)
    parser.add_argument("--only", help="structures whose name contains this")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--document", action="store_true", help="write the table into docs/proof.md"
    )
    asked = parser.parse_args(arguments)
    if asked.document:
        documents.require(DOCUMENT, "oracle")
    folder = asked.data if asked.data.is_dir() else None
    names = [kind.structure for kind in TRIALS if (asked.only or "") in kind.structure]
    rows: dict[str, list[str]] = {}
    broken: list[str] = []
    # Read before the processes begin, which then share it; the longest first.
    for kind in TRIALS:
        if kind.structure in names:
            sources_of(kind, asked.operations, folder)
    with ProcessPoolExecutor(asked.jobs) as pool:
        waiting = {
            pool.submit(examine, name, asked.operations, folder): name for name in names[::-1]
        }
        for future in as_completed(waiting):
            done, checks, found, seconds = future.result()
            name, asked_checks = waiting[future], sum(checks.values())
            rows[name] = [name, f"{done:,}", f"{asked_checks:,}", f"{len(found)}"]
            broken += found
            told = f"{name}: {done:,} operations, {asked_checks:,} checks, {len(found)} broken"
            print(f"{told}, {seconds:.0f} s", *found[:3], sep="\n  ", file=sys.stderr)
        missed = [
            fault.name
            for fault, found in zip(FAULTS, pool.map(is_found, range(len(FAULTS))), strict=True)
            if not found
        ]
    head = ["structure", "operations", "checks", "broken"]
    text = "\n\n".join(
        [
            where(folder),
            table([rows[name] for name in names], head),
            f"{len(FAULTS) - len(missed)} of {len(FAULTS)} planted faults were found.",
        ]
    )
    print(text)
    for line in [*broken, *(f"not found: {name}" for name in missed)]:
        print(line)
    if asked.document:
        documents.update(DOCUMENT, "oracle", text)
    return int(bool(broken or missed))


def where(folder: Path | None) -> str:
    """What the table was made by."""
    about = machine.describe()
    source = "real logs and lists, and a generator" if folder else "a generator"
    return f"Made by `make oracle` on {about['cpu']}, Python {about['python']}; keys from {source}."
