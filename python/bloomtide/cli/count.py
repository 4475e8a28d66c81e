"""`bloomtide count`: how often each key went into a counting filter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bloomtide import CountingBloomFilter, TimeDecayingBloomFilter
from bloomtide.cli import console
from bloomtide.cli.files import read_filter
from bloomtide.cli.keys import key_batches
from bloomtide.cli.kinds import Counting, at_instant, by_date, require_counting
from bloomtide.cli.options import as_json, filter_file, given_keys, instant, key_files

if TYPE_CHECKING:
    import numpy.typing as npt


@click.command()
@filter_file
@key_files
@given_keys
@instant
@as_json
def count(
    file: Path,
    keys: tuple[str, ...],
    key: tuple[str, ...],
    at: float | None,
    json: bool,
) -> int:
    """Print `count<TAB>key` for each key; exit with 0 if any count is above 0, else with 1.

    A count is never too small, unless its counters are full; it can be too large. Of a filter
    that fades it is the decayed sum, now or as of --at.
    """
    filter = require_counting(read_filter(file), file)
    when: Any = at_instant(filter, file, at)
    found = at_limit = 0
    for number, batch in enumerate(key_batches(keys, key, prints_lines=True)):
        with by_date(filter, at):
            counts: npt.NDArray[Any] = filter.count_many(batch, **when)
        full = _full(filter, batch, counts)
        found += int((counts != 0).sum())
        at_limit += sum(full)
        if json:
            # Keys given as options come first. They are few: worth a call each for the bounds.
            bounded = bool(key) and number == 0
            lines = [
                console.to_json(
                    console.key_json(name)
                    | {"count": count, "saturated": saturated}
                    | (_bounds(filter, name, when) if bounded else {})
                )
                for count, name, saturated in zip(counts.tolist(), batch, full, strict=True)
            ]
        else:
            # Faded counts have fractions; six digits tell them apart.
            form = b"%.6g\t%s" if isinstance(filter, TimeDecayingBloomFilter) else b"%d\t%s"
            lines = [form % pair for pair in zip(counts.tolist(), batch, strict=True)]
        console.write_lines(lines)
    if at_limit:
        console.message(
            f"counts whose counters are full: {at_limit:,}; the true ones may be larger"
        )
    return 0 if found else 1


def _full(filter: Counting, keys: list[bytes], counts: npt.NDArray[Any]) -> list[bool]:
    """For each key, whether the counters that hold its count have lost count."""
    if isinstance(filter, CountingBloomFilter):
        return [bool(full) for full in counts == 2**filter.counter_bits - 1]
    if not filter.stats().saturated:
        return [False] * len(keys)
    return [filter.estimate(key).saturated for key in keys]


def _bounds(filter: Counting, key: bytes, when: Any) -> dict[str, Any]:
    answer = filter.estimate(key, **when)
    return {"lower": answer.lower, "upper": answer.upper, "confidence": answer.confidence}
