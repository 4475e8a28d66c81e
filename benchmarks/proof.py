"""`python -m benchmarks.proof`: the error rate and the memory at a billion keys.

The integers 0, 1, 2 ... go in, as many as the capacity; the integers after them are asked for and
were never added. Consecutive integers are what databases hand out and what weak hashes get wrong.

rate     false positives lie in the exact binomial interval (alpha 1e-6, two-sided) around what
         `stats()` predicts from the filled cells, and the prediction meets the target.
memory   the cells take at most 2 % more than the least the layout's formula allows, which is
         computed in formula.py apart from the library, and the filter is not smaller than it.
lost     a spread sample of the added integers is asked for: all must be there.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks import documents, formula, machine
from benchmarks.binomial import interval
from benchmarks.markdown import NOTHING, table

ALPHA = 1e-6
THREADS = 2
CHUNK = 8_000_000  # 64 MB of integers at a time
SAMPLE = 1_000_000
MEMORY_TOLERANCE = 1.02
DOCUMENT = Path(__file__).parent.parent / "docs" / "proof.md"


@dataclass(frozen=True, slots=True)
class Case:
    """So many keys at such an error rate, and so many absent keys asked for."""

    keys: int
    error_rate: float
    queries: int


FULL = (Case(10**9, 0.01, 10**9), Case(10**8, 1e-6, 10**9))
QUICK = (Case(10**6, 0.01, 10**6), Case(10**6, 1e-6, 10**6))


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What came out for one case."""

    case: Case
    layout: str
    predicted: float
    false_positives: int
    low: int
    high: int
    bytes: int
    least_bytes: float
    resident_bytes: int | None
    """Growth of the whole process while the filter was made and filled."""
    lost: int
    add_seconds: float
    query_seconds: float

    @property
    def failures(self) -> list[str]:
        """What does not hold, in words; empty if all does."""
        found = []
        if not self.low <= self.false_positives <= self.high:
            found.append(
                f"{self.false_positives:,} false positives are outside {self.low:,}..{self.high:,}"
            )
        # The prediction varies with the keys as the fill does; 2 % is far above that variation.
        if self.predicted > self.case.error_rate * 1.02:
            found.append(f"predicted error {self.predicted:.3g} misses {self.case.error_rate:g}")
        if not 0.9999 <= self.bytes / self.least_bytes <= MEMORY_TOLERANCE:
            found.append(f"memory is {self.bytes / self.least_bytes:.3f} times the formula")
        if self.lost:
            found.append(f"{self.lost:,} added keys were not found")
        return found


def prove(case: Case) -> Proof:
    """Builds, fills and questions one filter."""
    from bloomtide import BloomFilter

    before = machine.resident_bytes()
    target = BloomFilter(case.keys, case.error_rate)
    start = time.perf_counter()
    for chunk in _integers(0, case.keys):
        target.add_many(chunk, threads=THREADS)
    filled = time.perf_counter()
    after = machine.resident_bytes()
    stats = target.stats()
    asking = time.perf_counter()
    wrong = 0
    for chunk in _integers(case.keys, case.keys + case.queries):
        wrong += int(np.count_nonzero(target.contains_many(chunk, threads=THREADS)))
    answered = time.perf_counter()
    sample = np.arange(0, case.keys, max(case.keys // SAMPLE, 1), dtype=np.int64)
    low, high = interval(case.queries, stats.predicted_error, ALPHA)
    return Proof(
        case=case,
        layout=target.layout,
        predicted=stats.predicted_error,
        false_positives=wrong,
        low=low,
        high=high,
        bytes=stats.bytes,
        least_bytes=case.keys * formula.bits_per_key(target.layout, case.error_rate) / 8,
        resident_bytes=None if before is None or after is None else after - before,
        lost=len(sample) - int(np.count_nonzero(target.contains_many(sample, threads=THREADS))),
        add_seconds=filled - start,
        query_seconds=answered - asking,
    )


def report(proofs: list[Proof], *, quick: bool) -> str:
    """The tables for docs/proof.md and the terminal."""
    rate = table(
        [
            [
                f"{p.case.keys:,}",
                f"{p.case.error_rate:g}",
                p.layout,
                f"{p.predicted:.6g}",
                f"{p.case.queries:,}",
                f"{p.false_positives / p.case.queries:.6g}",
                f"{p.false_positives:,}",
                f"{p.low:,} to {p.high:,}",
                f"{p.lost:,}",
            ]
            for p in proofs
        ],
        [
            "keys",
            "target",
            "layout",
            "predicted",
            "absent keys asked",
            "measured",
            "false positives",
            "must lie in",
            "lost keys",
        ],
    )
    memory = table(
        [
            [
                f"{p.case.keys:,}",
                f"{p.case.error_rate:g}",
                f"{p.bytes:,}",
                f"{p.least_bytes:,.0f}",
                f"{p.bytes / p.least_bytes:.4f}",
                NOTHING if p.resident_bytes is None else f"{p.resident_bytes:,}",
                f"{p.add_seconds / p.case.keys * 1e9:.1f}",
                f"{p.query_seconds / p.case.queries * 1e9:.1f}",
            ]
            for p in proofs
        ],
        [
            "keys",
            "target",
            "bytes",
            "formula",
            "ratio",
            "process grew by",
            "ns per add",
            "ns per query",
        ],
    )
    about = machine.describe()
    where = (
        f"Made by `make proof` on {about['cpu']}, {about['cores']} cores, "
        f"Python {about['python']}, bloomtide {machine.versions().get('bloomtide', 'unreleased')}, "
        f"{THREADS} threads."
    )
    size = " **Tiny sizes: a smoke test, not a proof.**" if quick else ""
    failures = [f"- {p.case.keys:,} keys: {text}" for p in proofs for text in p.failures]
    verdict = (
        "Everything holds." if not failures else "Does **not** hold:\n\n" + "\n".join(failures)
    )
    return "\n\n".join([where + size, rate, memory, verdict])


def main(arguments: list[str] | None = None, prove_case: Callable[[Case], Proof] = prove) -> int:
    """Runs all cases; the exit code is 1 if anything does not hold."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proof")
    parser.add_argument("--quick", action="store_true", help="a million keys, no document")
    options = parser.parse_args(arguments)
    if not options.quick:
        documents.require(DOCUMENT, "proof")
    proofs = []
    for case in QUICK if options.quick else FULL:
        print(f"{case.keys:,} keys at {case.error_rate:g}", file=sys.stderr)
        proofs.append(prove_case(case))
    text = report(proofs, quick=options.quick)
    print(text)
    if not options.quick:
        documents.update(DOCUMENT, "proof", text)
    return int(any(p.failures for p in proofs))


def _integers(start: int, stop: int) -> Iterator[npt.NDArray[np.int64]]:
    for first in range(start, stop, CHUNK):
        yield np.arange(first, min(first + CHUNK, stop), dtype=np.int64)


if __name__ == "__main__":
    sys.exit(main())
