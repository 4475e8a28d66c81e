"""How things are timed: best of several rounds, the libraries taking turns inside each round.

A machine's clock speed and its neighbours change from minute to minute. Turns within one round
let every library meet the same weather, and the best round is the one with the least of it.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, TypeVar

Verb: TypeAlias = Literal["add", "query present", "query absent", "count"]
Form: TypeAlias = Literal["per call", "list", "Arrow"]
T = TypeVar("T")


class Op(NamedTuple):
    """One kind of work, at one size of filter."""

    capacity: int
    verb: Verb
    form: Form
    threads: int

    @property
    def label(self) -> str:
        """In words, without the capacity."""
        return f"{self.verb}, {self.form}" + (f", {self.threads} threads" * (self.threads > 1))


@dataclass
class Timings:
    """Nanoseconds per key of every (op, engine) in every round."""

    rounds: dict[tuple[Op, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def record(self, op: Op, engine: str, nanoseconds: float) -> None:
        self.rounds[op, engine].append(nanoseconds)

    def best(self, op: Op, engine: str) -> float | None:
        """The shortest round, or None if the engine does not do this."""
        taken = self.rounds.get((op, engine))
        return min(taken) if taken else None

    def ops(self) -> list[Op]:
        """Every op measured, in the order of measuring."""
        return list(dict.fromkeys(op for op, _ in self.rounds))

    def as_records(self) -> list[dict[str, object]]:
        """Plain values for JSON; the median shows how steady the machine was."""
        return [
            {
                **op._asdict(),
                "engine": engine,
                "ns_best": round(min(taken), 2),
                "ns_median": round(statistics.median(taken), 2),
                "rounds": len(taken),
            }
            for (op, engine), taken in self.rounds.items()
        ]


def per_key(work: Callable[[], T], keys: int) -> tuple[float, T]:
    """Nanoseconds per key that `work` takes, and what it returned."""
    start = time.perf_counter_ns()
    result = work()
    return (time.perf_counter_ns() - start) / keys, result


def ratio(above: float | None, below: float | None) -> float | None:
    """Their quotient; None if one of the two was not measured."""
    return None if above is None or below is None else above / below


def turns(engines: Sequence[T], round_number: int) -> list[T]:
    """The engines, starting with another one in each round, so nobody is always first."""
    first = round_number % len(engines) if engines else 0
    return [*engines[first:], *engines[:first]]


@contextmanager
def collector_off() -> Iterator[None]:
    """No garbage collection in the middle of a timed pass."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
