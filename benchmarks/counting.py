"""What is timed for counting: a skewed stream of URLs goes in, then every event is asked for.

The stream is Zipf(1.2). Sizes are given for its distinct keys at 1 %; the count-min sketches get
as many cells in as many rows (engines/count_min.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from benchmarks import answers
from benchmarks.answers import Quality
from benchmarks.engines.contract import Counting, Filter
from benchmarks.measure import Form, Op, Timings, Verb, per_key, turns
from benchmarks.workload import ABSENT_SET, KeySet, zipf_stream

ERROR_RATE = 0.01
FORMS: tuple[Form, ...] = ("per call", "list", "Arrow")
VERBS: tuple[Verb, ...] = ("add", "count")


def measure(engines: list[Counting], events: int, rounds: int, timings: Timings) -> list[Quality]:
    """Times every engine on `events` events and checks its counts."""
    stream = zipf_stream(events)
    truth = Counter(stream.fresh())
    absent = KeySet.of(ABSENT_SET, events)
    quality: list[Quality] = []
    for round_number in range(rounds):
        for form in FORMS:
            taking = turns([e for e in engines if _call(e, "add", form)], round_number)
            filters = {engine.name: engine.build(len(truth), ERROR_RATE) for engine in taking}
            for verb in VERBS:
                for engine in taking:
                    call = _call(engine, verb, form)
                    if call is not None:
                        op = Op(len(truth), verb, form, 1)
                        target = filters[engine.name]
                        _time(engine, op, call, target, stream, timings, check=round_number == 0)
            if round_number == 0:
                checked = [
                    answers.counting_quality(e, filters[e.name], truth, absent, ERROR_RATE)
                    for e in taking
                ]
                quality = quality or checked  # the first pass is per call: everybody took part
    return quality


def _time(
    engine: Counting,
    op: Op,
    call: Callable[[Filter, Any], object],
    target: Filter,
    stream: KeySet,
    timings: Timings,
    *,
    check: bool,
) -> None:
    """One timed pass, and the check of what a batch answered."""
    given = stream.arrow if op.form == "Arrow" else stream.fresh()
    nanoseconds, result = per_key(lambda: call(target, given), stream.size)
    timings.record(op, engine.name, nanoseconds)
    if check and op.verb == "count" and result is not None:
        answers.counts_equal_one_by_one(engine, target, stream, result)


def _call(engine: Counting, verb: Verb, form: Form) -> Callable[[Filter, Any], object] | None:
    """The library's function; None if it has none."""
    adding = verb == "add"
    if form == "per call":
        return engine.add_each if adding else engine.count_each
    if form == "list":
        batch = engine.add_list if adding else engine.count_list
    else:
        batch = engine.add_arrow if adding else engine.count_arrow
    return None if batch is None else lambda target, keys: batch(target, keys, 1)
