"""What is timed for URLs: `UrlFilter` by call, list and column, canonical form included.

The URLs are those of the workload: plain, of four and five segments. Nobody else has such a
filter; a flat `BloomFilter`, which takes the same bytes as they are, is timed beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.measure import Form, Op, Timings, per_key, turns
from benchmarks.workload import ABSENT_SET, KeySet
from bloomtide import BloomFilter, UrlFilter

LAYERED = "bloomtide, UrlFilter"
FLAT = "bloomtide, BloomFilter"
_MAKERS: dict[str, Callable[[int], Any]] = {
    LAYERED: lambda capacity: UrlFilter(capacity, 0.01),
    FLAT: lambda capacity: BloomFilter(capacity, 0.01),
}
_WAYS: tuple[tuple[Form, int], ...] = (("per call", 1), ("list", 1), ("Arrow", 1), ("Arrow", 2))


def measure(urls: int, rounds: int, timings: Timings) -> None:
    """Times both filters, filled to their capacity, and checks that no URL is lost."""
    present, absent = KeySet.of(0, urls), KeySet.of(ABSENT_SET, urls)
    for round_number in range(rounds):
        for form, threads in _WAYS:
            for name in turns(list(_MAKERS), round_number):
                made = _MAKERS[name](urls)
                op = Op(urls, "add", form, threads)
                one_by_one = form == "per call"
                add = made.add if one_by_one else made.add_many
                ask = made.__contains__ if one_by_one else made.contains_many
                _time(add, present, op, name, timings)
                found = _time(ask, present, op._replace(verb="query present"), name, timings)
                if not all(found):
                    raise SystemExit(f"{name} lost a URL")
                _time(ask, absent, op._replace(verb="query absent"), name, timings)


def _time(call: Callable[..., Any], keys: KeySet, op: Op, name: str, timings: Timings) -> Any:
    given: Any = keys.arrow if op.form == "Arrow" else keys.fresh()
    if op.form == "per call":
        nanoseconds, answer = per_key(lambda: list(map(call, given)), keys.size)
    else:
        nanoseconds, answer = per_key(lambda: call(given, threads=op.threads), keys.size)
    timings.record(op, name, nanoseconds)
    return answer
