"""What is timed for membership: add, query a key that is there, query one that is not.

Each in three forms (one call a key, a `list[str]` at once, an Arrow array at once), the batches
also with two threads, at two sizes of filter:

small   the filter is new in every round and is filled exactly to its capacity by the timed keys.
large   the filter is filled with integers before the first round, so that all of its memory is in
        use and no page is touched for the first time while the clock runs. Every timed pass then
        adds URLs that were never added before. All filters hold the same keys at every moment,
        and after the last round exactly their capacity.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from benchmarks import answers
from benchmarks.answers import Quality
from benchmarks.bare_loop import BareLoop
from benchmarks.engines.contract import Filter, Membership
from benchmarks.machine import huge_page_bytes
from benchmarks.measure import Form, Op, Timings, Verb, per_key, turns
from benchmarks.workload import ABSENT_SET, KeySet

ERROR_RATE = 0.01
FORMS: tuple[tuple[Form, int], ...] = (
    ("per call", 1),
    ("list", 1),
    ("list", 2),
    ("Arrow", 1),
    ("Arrow", 2),
)
VERBS: tuple[Verb, ...] = ("add", "query present", "query absent")


@dataclass(frozen=True, slots=True)
class Scale:
    """One size of filter."""

    capacity: int
    keys: int
    """Keys in one timed pass."""
    rounds: int
    filled: bool
    """Filled with integers first (large), or new in every round (small)."""

    @property
    def integers(self) -> int:
        """How many integers go in first: the timed keys fill the rest."""
        return self.capacity - self.keys * self.rounds * len(FORMS) if self.filled else 0


@dataclass(frozen=True, slots=True)
class HugePages:
    """How much of bloomtide's large filter the system keeps in huge pages."""

    filter_bytes: int
    huge_bytes: int


def measure(
    engines: list[Membership], scale: Scale, bare: BareLoop | None, timings: Timings
) -> tuple[list[Quality], HugePages | None]:
    """Times every engine at one scale and checks its answers."""
    absent = KeySet.of(ABSENT_SET, scale.keys)
    filters: dict[str, Filter] = {}
    quality: list[Quality] = []
    huge = None
    if scale.filled:
        engines = [engine for engine in engines if engine.fill is not None]
        filters, huge = _filled(engines, scale)
    for round_number, form, threads, members in _passes(scale):
        taking = turns([e for e in engines if not (e.slow and round_number)], round_number)
        if not scale.filled:
            filters = {engine.name: engine.build(scale.capacity, ERROR_RATE) for engine in taking}
        for verb in VERBS:
            op = Op(scale.capacity, verb, form, threads)
            keys = absent if verb == "query absent" else members
            for engine in taking:
                target = filters[engine.name]
                call = _call(engine, op)
                if call is not None:
                    _time(engine, op, call, target, keys, timings, check=round_number == 0)
                elif scale.filled and verb == "add":
                    engine.add_each(target, keys.fresh())  # all filters hold the same keys
        if bare is not None and (form, threads) == ("Arrow", 1):
            bare.measure(scale.capacity, scale.integers, members, absent, timings)
        if not scale.filled and not quality:  # the first pass is per call: everybody took part
            quality = _qualities(engines, filters, absent, scale.capacity)
    if scale.filled:
        quality = _qualities(engines, filters, absent, scale.capacity)
    return quality, huge


def _passes(scale: Scale) -> Iterator[tuple[int, Form, int, KeySet]]:
    """Round, form, threads and the keys to add; a filled filter gets new keys every time."""
    numbers = itertools.count() if scale.filled else itertools.repeat(0)
    for round_number in range(scale.rounds):
        for form, threads in FORMS:
            yield round_number, form, threads, _members(next(numbers), scale.keys)


@lru_cache(maxsize=1)
def _members(number: int, size: int) -> KeySet:
    return KeySet.of(number, size)


def _time(
    engine: Membership,
    op: Op,
    call: Callable[[Filter, Any], object],
    target: Filter,
    keys: KeySet,
    timings: Timings,
    *,
    check: bool,
) -> None:
    """One timed pass, and the check of what it did or answered."""
    given = keys.arrow if op.form == "Arrow" else keys.fresh()
    nanoseconds, result = per_key(lambda: call(target, given), keys.size)
    timings.record(op, engine.name, nanoseconds)
    if check and op.verb == "add":
        answers.no_false_negative(engine, target, keys)
    elif check and result is not None:
        answers.batch_equals_one_by_one(engine, target, keys, result)


def _call(engine: Membership, op: Op) -> Callable[[Filter, Any], object] | None:
    """The library's function for an op; None if it has none."""
    adding = op.verb == "add"
    if op.form == "per call":
        return engine.add_each if adding else engine.query_each
    if op.form == "list":
        batch = engine.add_list if adding else engine.query_list
    else:
        batch = engine.add_arrow if adding else engine.query_arrow
    if batch is None:
        return None
    return lambda target, keys: batch(target, keys, op.threads)


def _filled(engines: list[Membership], scale: Scale) -> tuple[dict[str, Filter], HugePages | None]:
    filters: dict[str, Filter] = {}
    huge = None
    for engine in engines:
        before = huge_page_bytes()
        target = filters[engine.name] = engine.build(scale.capacity, ERROR_RATE)
        if engine.fill is not None:
            engine.fill(target, scale.integers)
        after = huge_page_bytes()
        if engine.name == answers.OURS and before is not None and after is not None:
            huge = HugePages(engine.bits(target) // 8, after - before)
    return filters, huge


def _qualities(
    engines: list[Membership], filters: dict[str, Filter], absent: KeySet, capacity: int
) -> list[Quality]:
    return [
        answers.membership_quality(engine, filters[engine.name], absent, capacity, ERROR_RATE)
        for engine in engines
    ]
