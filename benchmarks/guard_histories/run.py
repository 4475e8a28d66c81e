"""Thousands of histories, and every planted fault.

    python -m benchmarks.guard_histories --histories 20000 --database sqlite --seed 0

It prints how many histories were refused, how often the guard was READY when it was asked, and each
wrong "no" with its seed, its schema and the fewest statements that still show it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.util import Finalize

from benchmarks.guard_histories.draw import draw_history
from benchmarks.guard_histories.ground import Ground, ground_of
from benchmarks.guard_histories.planted import FAULTS, Fault
from benchmarks.guard_histories.play import Outcome, Plant, Play, quiet
from benchmarks.guard_histories.shrink import describe, shrink, signature
from benchmarks.markdown import table
from tests.services.postgres import why_not

CHUNK = 100
"""Histories that one process plays before it reports."""
MOST = 600
"""Histories within which each planted fault must be found."""
DATABASES = ("sqlite", "postgresql")


@dataclass(slots=True)
class Summary:
    """What came of many histories."""

    histories: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    checks: int = 0
    ready: int = 0
    questions: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    broken: dict[str, str] = field(default_factory=dict)
    """Errors from inside the guard: the last line, and where it was."""
    wrong: dict[str, list[int]] = field(default_factory=dict)
    """Seeds by what is left when they are made small."""
    reports: list[str] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        self.histories += 1
        if outcome.refused:
            self.refused[outcome.refused.splitlines()[0][:100]] += 1
        self.checks += outcome.checks
        self.ready += outcome.ready
        self.questions += outcome.questions
        self.reasons += outcome.reasons
        self.errors += outcome.errors
        self.done += outcome.done
        for text in outcome.broken:
            self.broken.setdefault(text.strip().splitlines()[-1], text)

    def merge(self, other: Summary) -> None:
        self.histories += other.histories
        self.checks += other.checks
        self.ready += other.ready
        self.questions += other.questions
        for name in ("refused", "reasons", "errors", "done"):
            getattr(self, name).update(getattr(other, name))
        self.broken = other.broken | self.broken
        for sign, seeds in other.wrong.items():
            self.wrong.setdefault(sign, []).extend(seeds)
        self.reports += other.reports

    @property
    def failures(self) -> int:
        return sum(map(len, self.wrong.values()))


def play(
    database: str, seeds: range, ground: Ground, plant: Plant | None = None, *, simple: bool = False
) -> Summary:
    """The histories of some seeds."""
    summary = Summary()
    for seed in seeds:
        history = draw_history(seed, database, simple=simple)
        outcome = Play(history, ground, plant).run()
        summary.add(outcome)
        if outcome.wrong:
            small = shrink(history, ground, plant)
            sign = signature(small)
            if sign not in summary.wrong:
                summary.reports.append(describe(small, ground, plant))
            summary.wrong.setdefault(sign, []).append(seed)
    return summary


def finds(fault: Fault, ground: Ground, most: int = MOST) -> int | None:
    """The seed of the first history that finds a fault."""
    for seed in range(most):
        history = draw_history(seed, fault.database, simple=True, **fault.ask)
        if Play(history, ground, fault.plant).run().wrong:
            return seed
    return None


_ground: Ground | None = None
"""Of a worker process."""


def _begin(database: str) -> None:
    global _ground
    _ground = ground_of(database)
    Finalize(None, _ground.close, exitpriority=10)  # a worker of a pool runs no `atexit`


def _work(database: str, first: int, count: int) -> Summary:
    assert _ground is not None
    with quiet():
        return play(database, range(first, first + count), _ground)


def many(database: str, seed: int, histories: int, jobs: int, minutes: float) -> Summary:
    """All histories, in processes, or those that are played when the time is over."""
    summary, begin = Summary(), time.perf_counter()
    starts = range(seed, seed + histories, CHUNK)
    with ProcessPoolExecutor(jobs, initializer=_begin, initargs=(database,)) as pool:
        tasks = [
            pool.submit(_work, database, first, min(CHUNK, seed + histories - first))
            for first in starts
        ]
        for task in tasks:
            found = task.result()
            for sign, seeds in found.wrong.items():
                print(f"wrong, seeds {seeds}: {sign}", file=sys.stderr, flush=True)
            summary.merge(found)
            seconds = time.perf_counter() - begin
            print(
                f"{database}: {summary.histories} played, {summary.failures} wrong,"
                f" {summary.histories / seconds:.0f}/s",
                file=sys.stderr,
                flush=True,
            )
            if seconds > 60 * minutes:
                pool.shutdown(cancel_futures=True)
                break
    return summary


def tell(database: str, summary: Summary) -> None:
    head = ["database", "histories", "refused", "checks", "while READY", "questions", 'wrong "no"']
    row = [
        database,
        f"{summary.histories:,}",
        f"{summary.refused.total():,}",
        f"{summary.checks:,}",
        f"{summary.ready:,}",
        f"{summary.questions:,}",
        f"{summary.failures}",
    ]
    print(table([row], head))
    for report in summary.reports[:20]:
        print(f"\n{report}")
    for sign, seeds in sorted(summary.wrong.items(), key=lambda item: -len(item[1])):
        print(f"{len(seeds):4}  seeds {seeds[:4]}: {sign}")
    for title, counter in (
        ("refused", summary.refused),
        ("not READY", summary.reasons),
        ("steps done", summary.done),
    ):
        print(f"\n{title}")
        for text, count in counter.most_common(12):
            print(f"{count:7}  {text}")
    for last, where in summary.broken.items():
        print(f"\nerror from inside the guard: {last}\n{where}")


def main(arguments: list[str] | None = None) -> int:
    """The command; 1 if an answer is wrong or a fault is not found."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.guard_histories", description=__doc__
    )
    parser.add_argument("--histories", type=int, default=20_000)
    parser.add_argument("--database", choices=[*DATABASES, "both"], default="both")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=120, help="for each database, at most")
    parser.add_argument(
        "--show", action="store_true", help="play the one seed and show its statements"
    )
    parser.add_argument("--faults", action=argparse.BooleanOptionalAction, default=True)
    asked = parser.parse_args(arguments)
    failed = 0
    for database in DATABASES if asked.database == "both" else (asked.database,):
        if database == "postgresql" and (reason := why_not()):
            print(reason)
            continue
        if asked.show:
            with quiet(), ground_of(database) as ground:
                print(describe(draw_history(asked.seed, database), ground))
            continue
        summary = many(database, asked.seed, asked.histories, asked.jobs, asked.minutes)
        tell(database, summary)
        failed += summary.failures
        if asked.faults:
            faults = [fault for fault in FAULTS if fault.database == database]
            with quiet(), ground_of(database) as ground:
                missed = [fault.name for fault in faults if finds(fault, ground) is None]
            print(f"\n{len(faults) - len(missed)} of {len(faults)} planted faults were found.")
            for name in missed:
                print(f"not found: {name}")
            failed += len(missed)
    return int(bool(failed))
