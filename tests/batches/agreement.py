"""The one law of batches: a batch answers, and leaves the filter, as its keys one by one would.

`None` in the list of keys stands for a null row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from bloomtide import (
    BloomFilter,
    CountingBloomFilter,
    PartitionedDynamicCountFilter,
    ScalableBloomFilter,
    SpectralBloomFilter,
)
from bloomtide.errors import NullKeyError

Keys = Sequence[Any]

# A filter that is a little too small errs now and then, so that answers depend on the order too.
MAKERS: list[Callable[[], Any]] = [
    lambda: BloomFilter(64, 0.05),
    lambda: BloomFilter(bits=1021, hashes=4),
    lambda: ScalableBloomFilter(8, 0.05),
    lambda: CountingBloomFilter(64, 0.05),
    lambda: CountingBloomFilter(64, 0.05, policy="conservative", counter_bits=8),
    lambda: SpectralBloomFilter(64, 0.05, total=64, layout="classic"),
    lambda: PartitionedDynamicCountFilter(64, 0.05, total=64, partitions=3),
]


def agrees(batch: Callable[[], Any], keys: Keys, threads: Sequence[int] = (1, 2, 4)) -> None:
    """`batch()` makes the same batch afresh each time; `keys` are its keys as plain Python."""
    nulls = [row for row, key in enumerate(keys) if key is None]
    for make in MAKERS:
        single = make()
        added = [key is not None and single.add(key) for key in keys]
        present = [key is not None and key in single for key in keys]
        for workers in threads:
            options = {"threads": workers, "nulls": "skip" if nulls else "refuse"}
            many = make()
            _equal(many.add_many(batch(), **options), added, np.bool_)
            assert many.to_bytes() == single.to_bytes()
            _equal(many.contains_many(batch(), **options), present, np.bool_)
            if hasattr(single, "count_many"):
                counts = [0 if key is None else single.count(key) for key in keys]
                narrow = isinstance(single, CountingBloomFilter)
                counted = many.count_many(batch(), **options)
                _equal(counted, counts, np.uint32 if narrow else np.uint64)
            assert many.to_bytes() == single.to_bytes()
            if nulls:
                _refuses_the_first_null(make, batch, keys, nulls[0], workers)


def _equal(answers: Any, expected: Sequence[object], dtype: type) -> None:
    assert isinstance(answers, np.ndarray)
    assert answers.dtype == dtype
    assert answers.shape == (len(expected),)
    assert answers.tolist() == list(expected)


def _refuses_the_first_null(
    make: Callable[[], Any], batch: Callable[[], Any], keys: Keys, row: int, workers: int
) -> None:
    """Everything before the null row went in, nothing after it; a query changes nothing."""
    before = make()
    before.add_many(list(keys[:row]))
    refusing = make()
    with pytest.raises(NullKeyError) as caught:
        refusing.add_many(batch(), threads=workers)
    assert (caught.value.index, caught.value.added) == (row, row)
    assert "skip" in caught.value.hint
    assert refusing.to_bytes() == before.to_bytes()
    with pytest.raises(NullKeyError) as caught:
        refusing.contains_many(batch(), threads=workers)
    assert caught.value.index == row
    assert refusing.to_bytes() == before.to_bytes()
