"""A range of time over the forest: which rows answer for it, and what they say together.

    roots    ├───────────── 32d ─────────────┤├──── 32d ────┤├ 1d ┤├ 1d ┤├ 1h ┤ open
    range                ├────────────────────────────────────────────┤
    read     1m rows, 1h rows, then whole days, a whole segment, ... , 1h rows, 1m rows

A row is *covered* if all its events lie in the range, and read as it is: a run of covered rows of
one segment costs as much as one row. A row that the range cuts is *partial*: its children know
more, if it has any. So only the two edges descend, one step for each level of the ladder.

    upper      every row with an event that may lie in the range: never below the true count
    inner      covered rows only: never an event outside the range
    estimate   inner, and of a partial row the share of its time that lies in the range

Where a row is asked through its children, the row's own answer is an upper bound as well, and the
smaller one counts. A plan knows no key; one plan answers for any number of them.

The core plans the same for sealed segments whose rows end by time, which is what most questions
need (`HistoryPlan`). What is here is for any kind of node: open segments, rows that end by
arrivals, and sums of the finest rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bloomtide._core import HistoryPlan
from bloomtide.history.forest import Damaged, Forest, Node


@dataclass(slots=True)
class Run:
    """Covered rows of one node, the last one not included."""

    node: Node
    first: int
    last: int


@dataclass(slots=True)
class Cut:
    """A partial row, with the terms of its children if it has any."""

    node: Node
    row: int
    share: float
    inside: tuple[Run | Cut, ...] | None


@dataclass(slots=True)
class RangePlan:
    """What to read for a range."""

    terms: list[Run | Cut] = field(default_factory=list)
    rows: int = 0
    partial: int = 0
    missing: list[tuple[int, int]] = field(default_factory=list)
    sealed: HistoryPlan | None = None
    """What the core has planned of the same range."""

    def evaluate(self, forest: Forest, verb: str, *arguments: Any) -> tuple[Any, Any, Any]:
        """Upper, inner and estimate: numbers, or arrays with one for each key."""
        if self.sealed is None:
            return _sum(self.terms, verb, arguments)
        sealed: tuple[Any, Any, Any] = forest.ask(self.sealed, verb, *arguments)
        if not self.terms:
            return sealed
        upper, inner, estimate = _sum(self.terms, verb, arguments)
        return sealed[0] + upper, sealed[1] + inner, sealed[2] + estimate

    def nodes(self, forest: Forest) -> Iterable[tuple[Node, bool]]:
        """The finest nodes that are read, each with whether all of it is covered."""
        if self.sealed is not None:
            for number, covered in self.sealed.finest():
                yield forest.nodes[number], covered
        queue = list(self.terms)
        while queue:
            term = queue.pop()
            if isinstance(term, Run):
                yield term.node, (term.first, term.last) == (0, term.node.length)
            elif term.inside is None:
                yield term.node, False
            else:
                queue.extend(term.inside)


def plan_range(nodes: Iterable[Node], start: int, end: int, *, rollups: bool = True) -> RangePlan:
    """Without `rollups` only the finest rows there are: exactly additive over aligned splits."""
    plan = RangePlan()
    for node in nodes:
        try:
            plan.terms += _plan_node(node, start, end, rollups, plan)
        except Damaged:
            plan.missing.append((max(node.begin, start), min(node.end, end)))
    plan.missing = unite(plan.missing)
    return plan


def unite(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same time in as few ranges as possible."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if start >= end:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def runs_of(rows: Any) -> list[tuple[int, int]]:
    """Numbers in rising order as runs of neighbours."""
    import numpy as np

    if len(rows) == 0:
        return []
    breaks = np.flatnonzero(np.diff(rows) > 1) + 1
    return [(int(part[0]), int(part[-1]) + 1) for part in np.split(rows, breaks)]


def _plan_node(node: Node, start: int, end: int, rollups: bool, plan: RangePlan) -> list[Run | Cut]:
    """The terms of one node; `plan` counts the rows."""
    node.require_sound()
    if rollups or not node.has_children():
        if start <= node.first and node.last < end:
            plan.rows += node.length
            return [Run(node, 0, node.length)]
        if node.last < start or node.first >= end:
            return []
    import numpy as np  # a whole segment needs none, and its import is a third of a start

    rows = node.rows()
    touched = (rows.last >= start) & (rows.first < end)
    covered = touched & (rows.first >= start) & (rows.last < end)
    terms: list[Run | Cut] = []
    whole = covered
    if not rollups and node.has_children():
        whole = np.zeros_like(covered)
        for row in np.flatnonzero(touched).tolist():
            inside = _plan_children(node, row, start, end, rollups, plan)
            if inside is None:
                whole[row] = covered[row]
            else:
                terms += inside
                touched[row] = False
    # Empty rows between covered ones say nothing and need not split the run.
    for first, last in runs_of(np.flatnonzero(whole | (rows.events == 0))):
        chosen = np.flatnonzero(whole[first:last])
        if len(chosen):
            run = Run(node, first + int(chosen[0]), first + int(chosen[-1]) + 1)
            plan.rows += run.last - run.first
            terms.append(run)
    for row in np.flatnonzero(touched & ~covered).tolist():
        inside = _plan_children(node, row, start, end, rollups, plan)
        if inside is None:
            plan.rows += 1
            plan.partial += 1
        first, last = int(rows.first[row]), int(rows.last[row])
        share = (min(last + 1, end) - max(first, start)) / (last + 1 - first)
        terms.append(Cut(node, row, share, inside))
    return terms


def _plan_children(
    node: Node, row: int, start: int, end: int, rollups: bool, plan: RangePlan
) -> tuple[Run | Cut, ...] | None:
    """The terms of a row's children; None if there are none, or one of them is damaged."""
    children = node.children(row)
    if not children:
        return None
    before = plan.rows, plan.partial
    inside: list[Run | Cut] = []
    try:
        for child in children:
            inside += _plan_node(child, start, end, rollups, plan)
    except Damaged:
        # The row itself has every count of its children.
        plan.rows, plan.partial = before
        return None
    return tuple(inside)


def _sum(terms: Iterable[Run | Cut], verb: str, arguments: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    upper: Any = 0
    inner: Any = 0
    estimate: Any = 0
    for term in terms:
        if isinstance(term, Run):
            count = getattr(term.node, verb)(*arguments, term.first, term.last)
            upper, inner, estimate = upper + count, inner + count, estimate + count
            continue
        own = getattr(term.node, verb)(*arguments, term.row, term.row + 1)
        if term.inside is None:
            upper, estimate = upper + own, estimate + own * term.share
            continue
        # All three speak of events within this row, so none can be more than the row.
        least = min if type(own) is int else _smaller
        deep = _sum(term.inside, verb, arguments)
        upper = upper + least(deep[0], own)
        inner = inner + least(deep[1], own)
        estimate = estimate + least(deep[2], own)
    return upper, inner, estimate


def _smaller(one: Any, other: Any) -> Any:
    """The smaller count of each key."""
    import numpy as np

    return np.minimum(one, other)
