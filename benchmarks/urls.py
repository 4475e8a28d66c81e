"""What is timed for URLs: `UrlFilter` on a column and on a list, canonical form included.

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
_WAYS: tuple[tuple[Form, int], ...] = (("list", 1), ("Arrow", 1), ("Arrow", 2))


def measure(urls: int, rounds: int, timings: Timings) -> None:
    """Times both filters, filled to their capacity, and checks that no URL is lost."""
    present, absent = KeySet.of(0, urls), KeySet.of(ABSENT_SET, urls)
    for round_number in range(rounds):
        for form, threads in _WAYS:
            for name in turns(list(_MAKERS), round_number):
                made = _MAKERS[name](urls)
                op = Op(urls, "add", form, threads)
                _time(made.add_many, present, op, name, timings)
                found = _time(
                    made.contains_many, present, op._replace(verb="query present"), name, timings
                )
                if not found.all():
                    raise SystemExit(f"{name} lost a URL")
                _time(made.contains_many, absent, op._replace(verb="query absent"), name, timings)


def _time(call: Callable[..., Any], keys: KeySet, op: Op, name: str, timings: Timings) -> Any:
    given: Any = keys.arrow if op.form == "Arrow" else keys.fresh()
    nanoseconds, answer = per_key(lambda: call(given, threads=op.threads), keys.size)
    timings.record(op, name, nanoseconds)
    return answer
