"""A fast wrong answer is worth nothing: every filter that was timed is asked for the truth."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from benchmarks.binomial import interval
from benchmarks.engines.contract import Counting, Filter, Membership
from benchmarks.workload import KeySet

ALPHA = 1e-6
OURS = "bloomtide"


class WrongAnswerError(AssertionError):
    """A library answered what it must not answer; the run stops."""


@dataclass(frozen=True, slots=True)
class Quality:
    """What a filter costs and how often it errs."""

    engine: str
    capacity: int
    bits_per_key: float
    error: float
    """Share of absent keys that it called present."""
    overcounted: float | None = None
    """Counters only: share of the distinct keys whose count came out too large."""
    inexact: float | None = None
    """Counters only: share of those whose count is not the true one."""


def no_false_negative(engine: Membership, target: Filter, members: KeySet) -> None:
    """Every key that went in is found."""
    found = sum(key in target for key in members.fresh())
    if found != members.size:
        raise WrongAnswerError(f"{engine.name} lost {members.size - found} of {members.size} keys")


def batch_equals_one_by_one(
    engine: Membership, target: Filter, keys: KeySet, answers: object
) -> None:
    """The batch's answers are those of `in`, key by key."""
    single = [key in target for key in keys.fresh()]
    if np.asarray(answers, dtype=bool).tolist() != single:
        raise WrongAnswerError(f"{engine.name}: a batch does not answer as single queries do")


def counts_equal_one_by_one(engine: Counting, target: Filter, keys: KeySet, counts: object) -> None:
    """The batch's counts are those of single calls, key by key."""
    if np.asarray(counts).tolist() != [engine.count(target, key) for key in keys.fresh()]:
        raise WrongAnswerError(f"{engine.name}: a batch does not count as single calls do")


def membership_quality(
    engine: Membership, target: Filter, absent: KeySet, capacity: int, error_rate: float
) -> Quality:
    """Measured error of a filter that holds `capacity` keys, within the bound for its library."""
    wrong = sum(key in target for key in absent.fresh())
    _bounded(engine.name, wrong, absent.size, error_rate)
    return Quality(engine.name, capacity, engine.bits(target) / capacity, wrong / absent.size)


def counting_quality(
    engine: Counting, target: Filter, truth: Counter[str], absent: KeySet, error_rate: float
) -> Quality:
    """Counts never below the truth (up to the cells' ceiling); how many above, and the error."""
    over = inexact = 0
    for key, true_count in truth.items():
        count = engine.count(target, key)
        least = true_count if engine.ceiling is None else min(true_count, engine.ceiling)
        if count < least:
            raise WrongAnswerError(f"{engine.name} counted {count}, the truth is {true_count}")
        over += count > true_count
        inexact += count != true_count
    wrong = sum(engine.count(target, key) > 0 for key in absent.fresh())
    if not engine.sized_by_memory:
        _bounded(engine.name, wrong, absent.size, error_rate)
    return Quality(
        engine.name,
        len(truth),
        engine.bits(target) / len(truth),
        wrong / absent.size,
        over / len(truth),
        inexact / len(truth),
    )


def _bounded(name: str, wrong: int, asked: int, error_rate: float) -> None:
    """bloomtide must keep the promised rate; a peer far above it would not be comparable."""
    allowed = error_rate if name.startswith(OURS) else 1.5 * error_rate
    _, most = interval(asked, allowed, ALPHA)
    if wrong > most:
        raise WrongAnswerError(
            f"{name}: {wrong} false positives in {asked} queries, at most {most} fit {allowed:.2%}"
        )
