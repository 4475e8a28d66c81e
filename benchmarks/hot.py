"""What is timed for hot lists: a skewed stream of URLs goes into a list of 1,000 keys.

Zipf(1.0) over as many ranks as events: about half of the events are of keys outside the list,
which is the dear case. The counts decay here and not with the peers, who cannot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from benchmarks.engines.contract import Filter, Hot
from benchmarks.measure import Form, Op, Timings, per_key, turns
from benchmarks.workload import zipf_stream

K = 1000
SHOWN = 10
"""Keys at the top that must be the exact ones."""
FORMS: tuple[Form, ...] = ("per call", "list", "Arrow")


def measure(engines: list[Hot], events: int, rounds: int, timings: Timings) -> None:
    """Times every engine on `events` events and checks the keys it calls hottest."""
    stream = zipf_stream(events, exponent=1.0)
    exact = {key for key, _ in Counter(stream.fresh()).most_common(SHOWN)}
    for round_number in range(rounds):
        for form in FORMS:
            for engine in turns([e for e in engines if _call(e, form)], round_number):
                call = _call(engine, form)
                if call is None:
                    continue
                target = engine.build(K)
                given: Any = stream.arrow if form == "Arrow" else stream.fresh()
                nanoseconds, _ = per_key(lambda: call(target, given), events)  # noqa: B023
                timings.record(Op(K, "add", form, 1), engine.name, nanoseconds)
                # A stream of a few events has no clear order.
                if events >= 100_000 and set(engine.top(target, SHOWN)) != exact:
                    raise SystemExit(f"{engine.name}: wrong keys at the top")


def _call(engine: Hot, form: Form) -> Callable[[Filter, Any], object] | None:
    if form == "per call":
        return engine.add_each
    batch = engine.add_list if form == "list" else engine.add_arrow
    return None if batch is None else lambda target, keys: batch(target, keys, 1)
