"""Laws of memory: a filter that is as full as it was planned takes what its plan says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.conformance.law import law
from tests.conformance.registry import Subject


def expected_keys(plan: Any) -> int:
    """The keys that a plan is for; of given sizes, as many as half fill the cells."""
    half = round(plan.cells * math.log(2) / plan.hashes)
    return half if plan.capacity is None else int(plan.capacity)


def counts_of(plan: Any) -> npt.NDArray[np.uint64]:
    """Occurrences of each key of the stream that the plan describes, the hottest first."""
    ranks = np.arange(1, expected_keys(plan) + 1, dtype=np.float64)
    if plan.skew is None:
        each = 1 if plan.total is None else plan.total // len(ranks)
        return np.full(len(ranks), each, dtype=np.uint64)
    shares = ranks**-plan.skew
    counts: npt.NDArray[np.uint64]
    counts = np.maximum(1, plan.total / shares.sum() * shares).astype(np.uint64)
    return counts


def fill(made: Any, plan: Any, seed: int) -> None:
    """Brings the stream that the plan describes, in another order and with other keys by seed."""
    draw = np.random.default_rng(seed)
    counts = counts_of(plan)
    keys = draw.integers(0, 2**62, len(counts))
    if hasattr(made, "seen_host"):
        # As deep as there may be layers.
        below = "/".join("abcdefgh"[: max(plan.max_layers - 2, 0)])
        made.add_many([f"http://h{key}.example/{below}/{key}" for key in keys.tolist()])
    elif plan.total is None:
        made.add_many(keys)
    else:
        order = draw.permutation(len(keys))
        made.add_many(keys[order], counts[order])


def check_memory(made: Any, plan: Any) -> None:
    """A full filter takes what its plan says, within a twentieth.

    The counters of a partition of a dynamic count filter have one width, and if the largest one is
    near a power of two, chance decides whether it is a bit more. Only many partitions even out.
    """
    taken = made.stats().bytes
    bits = plan.cells / math.sqrt(plan.partitions) if "dcf" in plan.kind else 0
    allowed = max(0.05 * plan.bytes, bits / 8)
    assert abs(taken - plan.bytes) <= allowed, (taken / plan.bytes, plan)
    assert taken <= plan.bytes_at_most


@law(unless=("mapped",))
def a_filter_at_capacity_takes_what_its_plan_says(subject: Subject) -> None:
    plan = subject.structure.cls.plan(**subject.structure.sizing)
    for seed in (1, 2, 3):
        own = {} if "hash" in subject.structure.parameters else {"seed": seed}
        made = subject.new(**own)
        fill(made, plan, seed)
        check_memory(made, plan)
