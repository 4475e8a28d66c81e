"""`bloomery count`: how often each key went into a counting filter."""

from __future__ import annotations

from typing import Any

import numpy as np

from bloomery import CountingBloomFilter
from bloomery.cli import console
from bloomery.cli.files import read_filter
from bloomery.cli.keys import key_batches
from bloomery.cli.options import AsJson, FilterFile, GivenKeys, KeyFiles


def count(
    file: FilterFile, keys: KeyFiles = None, key: GivenKeys = None, json: AsJson = False
) -> int:
    """Print `count<TAB>key` for each key; exit with 0 if any count is above 0, else with 1.

    A count is never too small, unless its counters are full; it can be too large.
    """
    filter = read_filter(file)
    if not isinstance(filter, CountingBloomFilter):
        raise console.CommandError(
            f"{file} holds a {filter.stats().kind} filter, which does not count",
            hint="`bloomery new FILE --kind counting` makes one that does",
        )
    full = 2**filter.counter_bits - 1
    found = at_limit = 0
    for number, batch in enumerate(key_batches(keys or [], key or [], prints_lines=True)):
        counts = filter.count_many(batch)
        found += int(np.count_nonzero(counts))
        at_limit += int((counts == full).sum())
        pairs = zip(counts.tolist(), batch, strict=True)
        if json:
            # Keys given as options come first. They are few: worth a call each for the bounds.
            bounded = bool(key) and number == 0
            lines = [
                console.to_json(
                    console.key_json(name)
                    | {"count": count, "saturated": count == full}
                    | (_bounds(filter, name) if bounded else {})
                )
                for count, name in pairs
            ]
        else:
            lines = [b"%d\t%s" % pair for pair in pairs]
        console.write_lines(lines)
    if at_limit:
        console.message(
            f"counts at {full}, the limit of {filter.counter_bits}-bit counters: {at_limit:,};"
            " the true ones may be larger"
        )
    return 0 if found else 1


def _bounds(filter: CountingBloomFilter, key: bytes) -> dict[str, Any]:
    answer = filter.estimate(key)
    return {"lower": answer.lower, "upper": answer.upper, "confidence": answer.confidence}
