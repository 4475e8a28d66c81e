"""How wrong counts are under the two policies of a spectral filter; prints, draws nothing."""

# ruff: noqa: T201

from __future__ import annotations

from typing import Literal

import numpy as np

from bloomtide import SpectralBloomFilter
from bloomtide.cli.skew import Stream

KEYS = 100_000
OCCURRENCES = 1_000_000
POLICIES: tuple[Literal["plain", "conservative"], ...] = ("plain", "conservative")

true = Stream(KEYS, OCCURRENCES, 1.0).counts().astype(np.int64)
# One after the other in mixed order, as a stream brings them: conservative looks at each add.
visits = np.random.default_rng(20_000_711).permutation(np.repeat(np.arange(KEYS), true))
for share in (1, 2, 4):
    for policy in POLICIES:
        counting = SpectralBloomFilter(
            KEYS // share, 0.01, total=OCCURRENCES, policy=policy, layout="classic"
        )
        counting.add_many(visits)
        over = counting.count_many(np.arange(KEYS)).astype(np.int64) - true
        assert over.min() >= 0, "a count below the truth"
        print(
            f"sized for 1/{share} of the keys, {policy}: {np.mean(over > 0):.2%} of counts wrong, "
            f"mean excess {over.mean():.3f}, {counting.stats().bytes * 8 / KEYS:.0f} bits per key"
        )
