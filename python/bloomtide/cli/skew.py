"""The structures that count, side by side for a skewed stream: part of `bloomtide plan`.

The key of rank r comes in proportion to 1/r^theta (Zipf). What a structure takes with every key in
is told three times: by its plan, by the paper's model (`bloomtide.memory_models`), and measured,
where that is quick.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, log
from typing import TYPE_CHECKING, Any, Literal

from bloomtide import CountingBloomFilter, Plan
from bloomtide.cli.kinds import KINDS
from bloomtide.cli.quantities import show_bytes, show_count
from bloomtide.errors import require
from bloomtide.memory_models import (
    dynamic_count_bits,
    mean_counter_bits,
    partitioned_dynamic_count_bits,
    partitioned_spectral_bits,
    spectral_bits,
)
from bloomtide.partitions import oversized_share

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from rich.table import Table

QUICK = 100_000
"""Keys up to which the filters are really made: a second or two."""

EXACT = 100_000
"""Ranks that are summed one by one; beyond them the sum is as good as an integral."""

LEGEND = (
    "planned: with all keys in; model: the paper's formula; measured: a filter that was filled"
    f" (up to {QUICK:,} keys)"
)


@dataclass(frozen=True)
class Stream:
    """So many distinct keys with so many occurrences, the r-th in proportion to 1/r^theta."""

    items: int
    total: int
    theta: float

    def __post_init__(self) -> None:
        require("total", self.total, "at least `items`", self.total >= self.items)

    @cached_property
    def shares(self) -> float:
        """The sum of 1/r^theta over all ranks."""
        import numpy as np

        near = min(self.items, EXACT)
        summed = float((np.arange(1, near + 1, dtype=np.float64) ** -self.theta).sum())
        if self.items == near:
            return summed
        # Between the ranks' middles, where the integral of a convex curve is closest.
        low, high, power = near + 0.5, self.items + 0.5, 1 - self.theta
        if abs(power) < 1e-9:
            return summed + log(high / low)
        return summed + float((high**power - low**power) / power)

    @property
    def largest(self) -> int:
        """Occurrences of the hottest key."""
        return max(1, round(self.total / self.shares))

    def keys_with(self, bits: int) -> int:
        """How many keys occur 2^(bits-1) times or more: their counters need so many bits."""
        often = 2.0 ** (bits - 1)
        if bits <= 1:
            return self.items
        if self.theta == 0:
            return self.items if self.total / self.items >= often else 0
        rank: float = (self.total / self.shares / often) ** (1 / self.theta)
        return int(min(self.items, rank))

    def counts(self) -> npt.NDArray[np.uint64]:
        """Occurrences of each key, the hottest first."""
        import numpy as np

        ranks = np.arange(1, self.items + 1, dtype=np.float64)
        return np.maximum(1, self.total / self.shares * ranks**-self.theta).astype(np.uint64)


def plan_of(kind: str, goal: dict[str, Any], theta: float) -> Plan:
    """The plan of a kind, for that skew where its memory depends on it."""
    skewed = {"skew": theta} if kind in {"dcf", "pdcf"} else {}
    plan: Plan = KINDS[kind].cls.plan(**goal, **skewed)
    return plan


def compare(stream: Stream, chosen: Plan, goal: dict[str, Any]) -> list[dict[str, Any]]:
    """One row for each structure: for the kind that was chosen its plan, for others what they share
    with its goal."""
    widths: tuple[Literal[4, 8, 16, 32], ...] = (4, 8, 16, 32)
    width = next((w for w in widths if stream.largest < 2**w - 1), widths[-1])
    shared = {name: goal.get(name) for name in ("capacity", "error_rate", "layout", "policy")}
    fixed = CountingBloomFilter.plan(**_given(shared), counter_bits=width)
    rows = [
        _row(f"CountingBloomFilter, {width} bits", fixed, fixed.cells * width, stream),
    ]
    shared |= {"total": stream.total, "hashes": goal.get("hashes")}
    for kind in ("sbf", "psbf", "dcf", "pdcf"):
        cut = {"partitions": goal.get("partitions") if kind.startswith("p") else None}
        plan = chosen if kind == chosen.kind else plan_of(kind, _given(shared | cut), stream.theta)
        rows.append(_row(KINDS[kind].cls.__name__, plan, _model_bits(plan, stream), stream))
    return rows


def _given(goal: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in goal.items() if value is not None}


def _model_bits(plan: Plan, stream: Stream) -> float:
    """The paper's formula for the structure, collisions left out, with our partition vector."""
    cells, partitions = plan.cells, plan.partitions or 1
    if plan.kind in {"sbf", "psbf"}:
        # An empty counter has one bit, and so has a key that came once.
        extra = sum(stream.keys_with(bits) for bits in range(2, 65))
        base = cells + plan.hashes * extra
        if plan.kind == "sbf":
            return spectral_bits(cells, base, slack=plan.slack or 0)
        return partitioned_spectral_bits(cells, base, partitions, slack=plan.slack or 0)
    x = min(32, mean_counter_bits(stream.items, stream.total))
    y = max(0, stream.largest.bit_length() - x)
    if plan.kind == "dcf":
        return dynamic_count_bits(cells, x, y)
    occ = oversized_share(partitions, _spread(plan) * stream.keys_with(x + 1))
    return partitioned_dynamic_count_bits(cells, x, y, partitions, oversized_share=occ)


def _spread(plan: Plan) -> int:
    """In how many partitions a key has counters: blocked ones are all in one."""
    return 1 if plan.layout == "blocked" else plan.hashes


def _row(name: str, plan: Plan, model_bits: float, stream: Stream) -> dict[str, Any]:
    return {
        "name": name,
        "kind": plan.kind,
        "partitions": plan.partitions,
        "planned_bytes": plan.bytes,
        "model_bytes": round(model_bits / 8),
        **_measured(plan, stream),
    }


def _measured(plan: Plan, stream: Stream) -> dict[str, Any]:
    if stream.items > QUICK:
        return {"measured_bytes": None, "rebuilds": None, "longest_pause": None}
    made = KINDS[plan.kind].cls.from_plan(plan)
    # Fixed counters take the same whatever is in them.
    if plan.kind != "counting":
        import numpy as np

        order = np.random.default_rng(0).permutation(stream.items)
        made.add_many(order, stream.counts()[order])
    stats = made.stats()
    return {
        "measured_bytes": stats.bytes,
        "rebuilds": stats.rebuilds,
        "longest_pause": stats.longest_pause,
    }


def table(stream: Stream, rows: list[dict[str, Any]]) -> Table:
    """The comparison as people read it."""
    from rich.table import Table

    title = (
        f"{show_count(stream.total)} occurrences of {show_count(stream.items)} keys, skew"
        f" {stream.theta:g}, the hottest {show_count(stream.largest)} times"
    )
    shown = Table(title=title, title_justify="left")
    shown.add_column("structure")
    for heading in ("partitions", "planned", "model", "measured"):
        shown.add_column(heading, justify="right")
    smallest = min((row["measured_bytes"] or inf for row in rows), default=inf)
    for row in rows:
        sizes = [row[f"{name}_bytes"] for name in ("planned", "model", "measured")]
        shown.add_row(
            row["name"],
            show_count(row["partitions"]),
            *("-" if size is None else show_bytes(size) for size in sizes),
            style="bold" if row["measured_bytes"] == smallest else "",
        )
    return shown
