"""A key's counts step by step: `series`, as arrays.

Like one range for each step, but each segment is asked once: its rows fall into the steps, and a
row that lies in more than one goes on to its children. What is true of a range is true of each
step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bloomtide.history.forest import Damaged, Key, Node
from bloomtide.history.ranges import unite

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Counts of one key in steps of equal length, as `RangeCount` for each."""

    start: npt.NDArray[np.datetime64]
    """Where each step begins (UTC, microseconds); it ends where the next one begins."""
    upper: npt.NDArray[np.uint64]
    inner: npt.NDArray[np.uint64]
    estimate: Floats
    missing: tuple[tuple[float, float], ...]
    """Times that could not be read, in seconds since 1970."""

    def __len__(self) -> int:
        return len(self.start)


def edges_of(start: int, end: int, step: int) -> npt.NDArray[np.int64]:
    """The edges of steps; the last step may be shorter."""
    import numpy as np

    edges = np.arange(start, end, step, dtype=np.int64)
    return np.append(edges, np.int64(end))


class Steps:
    """What has been summed up so far, for steps between these edges."""

    def __init__(self, edges: npt.NDArray[np.int64]) -> None:
        """The edges rise."""
        import numpy as np

        self._edges = edges
        length = len(edges) - 1
        self.upper = np.zeros(length, dtype=np.uint64)
        self.inner = np.zeros(length, dtype=np.uint64)
        self.estimate = np.zeros(length, dtype=np.float64)
        self.missing: list[tuple[int, int]] = []

    def add_nodes(self, nodes: Iterable[Node], key: Key) -> None:
        """Adds what these nodes know; the time of one that cannot be read is missing."""
        start, end = int(self._edges[0]), int(self._edges[-1])
        for node in nodes:
            try:
                self._add(node, key)
            except Damaged:
                self.missing.append((max(node.begin, start), min(node.end, end)))
        self.missing = unite(self.missing)

    def _add(self, node: Node, key: Key) -> None:
        import numpy as np

        node.require_sound()
        rows = node.rows()
        counts = node.rows_of(key)
        if not counts.any():
            return
        edges = self._edges
        seen = (counts > 0) & (rows.last >= edges[0]) & (rows.first < edges[-1])
        first = np.searchsorted(edges, rows.first, side="right") - 1
        last = np.searchsorted(edges, rows.last, side="right") - 1
        inside = seen & (first == last)
        np.add.at(self.upper, first[inside], counts[inside])
        np.add.at(self.inner, first[inside], counts[inside])
        np.add.at(self.estimate, first[inside], counts[inside].astype(np.float64))
        for row in np.flatnonzero(seen & ~inside).tolist():
            low, high = max(int(first[row]), 0), min(int(last[row]), len(self.upper) - 1)
            self._add_cut(node, row, key, int(counts[row]), low, high)

    def _add_cut(self, node: Node, row: int, key: Key, own: int, low: int, high: int) -> None:
        """A row that lies in the steps from `low` to `high`, or out of them in part."""
        import numpy as np

        part = slice(low, high + 1)
        children = node.children(row)
        if children:
            deep = Steps(self._edges[low : high + 2])
            try:
                for child in children:
                    deep._add(child, key)
            except Damaged:
                children = []
        if children:
            self.upper[part] += np.minimum(deep.upper, np.uint64(own))
            self.inner[part] += np.minimum(deep.inner, np.uint64(own))
            self.estimate[part] += np.minimum(deep.estimate, own)
            return
        first, last = int(node.rows().first[row]), int(node.rows().last[row]) + 1
        edges = self._edges[low : high + 2]
        overlap = np.minimum(edges[1:], last) - np.maximum(edges[:-1], first)
        self.upper[part] += np.uint64(own)
        self.estimate[part] += own * overlap / (last - first)
