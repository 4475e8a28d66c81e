"""The forest of segments: what the catalogue has registered, as nodes that can be asked.

A segment whose counts another one contains is that one's child: all children that fall into one row
of their parent together are that row, in finer rows. Roots have no parent. Every event that the
store knows is in exactly one root or in one open segment, so the sum over those is the whole truth;
to go from a row to its children changes nothing but the grain.

Files are mapped when they are first asked and stay mapped while there is room. One that is missing
or damaged is remembered with the reason and never asked again; its parent's row answers for it, or
its time is reported as missing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from bloomtide._core import Digests, HistoryBuffer, HistoryForest, HistoryPlan, HistorySegment
from bloomtide.errors import BloomtideError, SnapshotError
from bloomtide.history.entry import Entry, adopted, require_same
from bloomtide.history.places import Place

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Counts: TypeAlias = "npt.NDArray[np.uint64]"
Times: TypeAlias = "npt.NDArray[np.int64]"
Key = str | bytes | int

MAPPED = 16_384
"""Files that are mapped at the same time, more than a year of hours; systems allow some sixty
thousand."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The times and events of a node's rows, as arrays."""

    begin: Times
    first: Times
    last: Times
    events: Counts

    @classmethod
    def of(cls, records: dict[str, Any]) -> Rows:
        """From what the core answers. An empty row lies nowhere: it ends before it begins."""
        return cls(records["begin"], records["first"], records["last"], records["events"])


class Damaged(Exception):
    """A segment cannot be asked; the forest knows why."""


class Node(Protocol):
    """A segment, open or sealed."""

    @property
    def begin(self) -> int:
        """Where its span begins."""

    @property
    def end(self) -> int:
        """Where its span ends."""

    @property
    def first(self) -> int:
        """Its earliest event."""

    @property
    def last(self) -> int:
        """Its latest event."""

    @property
    def length(self) -> int:
        """How many rows it has."""

    @property
    def total(self) -> int:
        """All its events."""

    def require_sound(self) -> None:
        """Raises `Damaged` if it is known that it cannot be asked."""

    def rows(self) -> Rows:
        """Times and events of its rows."""

    def count(self, key: Key, first: int, last: int) -> int:
        """Never less than the key's count in these rows."""

    def count_many(self, keys: Digests, first: int, last: int) -> Counts:
        """The same for each key."""

    def events(self, first: int, last: int) -> int:
        """Exactly how many events these rows have."""

    def rows_of(self, key: Key) -> Counts:
        """The same for each row."""

    def names(self) -> tuple[list[tuple[Key, int]], int]:
        """Its most frequent keys with their counts, and the most that any other key has."""

    def children(self, row: int) -> list[Node]:
        """Finer segments that together are this row; none if it is the finest."""

    def has_children(self) -> bool:
        """Whether any row has."""


class OpenNode:
    """A segment that still takes events."""

    def __init__(self, buffer: HistoryBuffer, segment: Any) -> None:
        """`segment`: what the buffer says about it."""
        self._buffer = buffer
        self.index: int = segment.index
        self.begin: int = segment.begin
        self.end: int = segment.end
        self.first: int = segment.first
        self.last: int = segment.last
        self.total: int = segment.events
        self.length = buffer.row_count(self.index)
        self._rows: Rows | None = None

    def require_sound(self) -> None:
        """It lies in memory."""

    def rows(self) -> Rows:
        """Times and events of its rows."""
        if self._rows is None:
            self._rows = Rows.of(self._buffer.row_records(self.index))
        return self._rows

    def count(self, key: Key, first: int, last: int) -> int:
        """Exact."""
        return self._buffer.count(self.index, key, first, last)

    def count_many(self, keys: Digests, first: int, last: int) -> Counts:
        """Exact."""
        return self._buffer.count_many(self.index, keys, first, last)

    def events(self, first: int, last: int) -> int:
        """Exact."""
        if (first, last) == (0, self.length):
            return self.total
        return int(self.rows().events[first:last].sum())

    def rows_of(self, key: Key) -> Counts:
        """Exact."""
        return self._buffer.rows_of(self.index, key)

    def names(self) -> tuple[list[tuple[Key, int]], int]:
        """Its most frequent keys so far."""
        return self._buffer.names(self.index)

    def children(self, row: int) -> list[Node]:
        """None: it has the finest rows there are."""
        return []

    def has_children(self) -> bool:
        """No."""
        return False


class SegmentNode:
    """A sealed segment."""

    def __init__(self, entry: Entry, forest: Forest) -> None:
        """Nothing is opened yet."""
        self.entry = entry
        self.begin = entry.begin
        self.end = entry.end
        self.first = entry.first
        self.last = entry.last
        self.length = entry.rows
        self.total = entry.events
        self.segment: HistorySegment | None = None
        """Its file, while it is mapped; the forest says when."""
        self._forest = forest
        self._rows: Rows | None = None

    def require_sound(self) -> None:
        """Raises `Damaged` if it is known that it cannot be asked."""
        if self.entry.id in self._forest.damaged:
            raise Damaged

    def rows(self) -> Rows:
        """Times and events of its rows."""
        if self._rows is None:
            self._rows = Rows.of(self._ask("row_records"))
        return self._rows

    def count(self, key: Key, first: int, last: int) -> int:
        """Never less than the truth."""
        segment = self.segment or self._forest.open(self)
        try:
            return segment.count(key, first, last)
        except SnapshotError as error:  # a block that was never touched before
            self._forest.give_up(self.entry, error)
            raise Damaged from error

    def count_many(self, keys: Digests, first: int, last: int) -> Counts:
        """Never less than the truth."""
        found: Counts = self._ask("count_many", keys, first, last)
        return found

    def events(self, first: int, last: int) -> int:
        """Exact; the catalogue knows all of it."""
        if (first, last) == (0, self.length):
            return self.total
        return int(self.rows().events[first:last].sum())

    def rows_of(self, key: Key) -> Counts:
        """Never less than the truth."""
        found: Counts = self._ask("rows_of", key)
        return found

    def names(self) -> tuple[list[tuple[Key, int]], int]:
        """Its most frequent keys."""
        found: tuple[list[tuple[Key, int]], int] = self._ask("names")
        return found

    def children(self, row: int) -> list[Node]:
        """The segments this row was made of, if all of them can still be asked."""
        return self._forest.children_of(self, row)

    def has_children(self) -> bool:
        """Whether retention has left any."""
        return self.entry.id in self._forest.offspring

    def _ask(self, verb: str, *arguments: Any) -> Any:
        segment = self.segment or self._forest.open(self)
        try:
            return getattr(segment, verb)(*arguments)
        except SnapshotError as error:
            self._forest.give_up(self.entry, error)
            raise Damaged from error


class Forest:
    """All sealed segments of a store."""

    def __init__(self, place: Place, entries: Iterable[Entry], *, by_order: bool) -> None:
        """Knows the segments and opens none. `by_order`: rows end by arrivals, not by time."""
        self._place = place
        self._by_order = by_order
        self._mapped: dict[int, SegmentNode] = {}
        self.nodes: dict[int, SegmentNode] = {}
        self.offspring: defaultdict[int, list[SegmentNode]] = defaultdict(list)
        self.roots: dict[int, SegmentNode] = {}
        self._placed: dict[int, defaultdict[int, list[SegmentNode]]] = {}
        """The children of a parent by its rows, as far as somebody asked."""
        self.damaged: dict[int, str] = {}
        """Why a segment cannot be asked."""
        self._planner = HistoryForest()
        """The same nodes, for ranges; it opens no file."""
        self.change(add=entries)

    def change(
        self,
        *,
        add: Iterable[Entry] = (),
        remove: Iterable[int] = (),
        adopt: dict[int, int] | None = None,
    ) -> None:
        """Follows a change of the catalogue."""
        for entry in add:
            self._place_node(SegmentNode(entry, self))
        for child, parent in (adopt or {}).items():
            node = self._detach(child)
            node.entry = adopted(node.entry, parent)
            self._place_node(node)
        for number in remove:
            self._detach(number)
            del self.nodes[number]
            self._unmap(number)
            self._planner.remove(number)
            self.damaged.pop(number, None)

    def plan(self, start: int, end: int, *, read: bool) -> HistoryPlan | None:
        """What to read of the sealed segments for a range, and their files mapped if they will be
        `read`. None if rows end by arrivals, or if it needs more files than may be mapped."""
        while not self._by_order:
            plan = self._planner.plan(start, end)
            if read and len(plan) > MAPPED:
                return None
            wanted = plan.unplanned or (plan.unread if read else [])
            if not wanted:
                return plan
            for number in wanted:
                # One that cannot be opened is known to be damaged from then on.
                with suppress(Damaged):
                    self.open(self.nodes[number])
        return None

    def ask(self, plan: HistoryPlan, verb: str, *arguments: Any) -> Any:
        """What the segments of a plan say together."""
        try:
            return getattr(plan, verb)(*arguments)
        except SnapshotError as error:  # a block that was never touched before
            self.give_up(self.nodes[error.fields["segment"]].entry, error)
            raise Damaged from error

    def overlapping(self, start: int, end: int) -> list[SegmentNode]:
        """The roots that have an event within the range."""
        return [node for node in self.roots.values() if node.last >= start and node.first < end]

    def children_of(self, node: SegmentNode, row: int) -> list[Node]:
        """The children of one row; none if one of them cannot be asked."""
        family = self.offspring.get(node.entry.id)
        if not family:
            return []
        placed = self._placed.get(node.entry.id)
        if placed is None:
            placed = self._placed[node.entry.id] = defaultdict(list)
            rows_of = self._rows_by_order if self._by_order else self._rows_by_time
            for child, place in zip(family, rows_of(node, family), strict=True):
                placed[place].append(child)
        chosen = placed.get(row, [])
        if any(child.entry.id in self.damaged for child in chosen):
            return []
        return list(chosen)

    def _rows_by_time(self, node: SegmentNode, family: list[SegmentNode]) -> list[int]:
        import numpy as np

        begins = [child.begin for child in family]
        found: list[int] = (np.searchsorted(node.rows().begin, begins, side="right") - 1).tolist()
        return found

    def _rows_by_order(self, node: SegmentNode, family: list[SegmentNode]) -> list[int]:
        """By arrivals the times of rows may overlap, but each child is one row, in their order."""
        numbers = sorted(child.entry.number for child in family)
        return [numbers.index(child.entry.number) for child in family]

    def open(self, node: SegmentNode) -> HistorySegment:
        """The mapped file. When there are too many, the one that was mapped first goes."""
        entry = node.entry
        if node.segment is not None:
            return node.segment
        if entry.id in self.damaged:
            raise Damaged
        try:
            segment = HistorySegment.open(self._place.local(entry.file))
            require_same(entry, segment)
        except (OSError, BloomtideError) as error:
            self.give_up(entry, error)
            raise Damaged from error
        node.segment = segment
        self._mapped[entry.id] = node
        self._planner.set_segment(entry.id, node.segment)
        if len(self._mapped) > MAPPED:
            self._unmap(next(iter(self._mapped)))
        return node.segment

    def give_up(self, entry: Entry, error: Exception) -> None:
        """Remembers why a segment cannot be asked."""
        reason = "the file is missing" if isinstance(error, FileNotFoundError) else str(error)
        self.set_damaged(entry, reason)
        self._unmap(entry.id)

    def set_damaged(self, entry: Entry, reason: str | None) -> None:
        """Why a segment cannot be asked, or that it can be again."""
        self._planner.set_damaged(entry.id, reason is not None)
        if reason is None:
            self.damaged.pop(entry.id, None)
        else:
            self.damaged[entry.id] = f"{entry.file}: {reason}"

    def _unmap(self, number: int) -> None:
        node = self._mapped.pop(number, None)
        if node is not None:
            node.segment = None
            self._planner.set_segment(number, None)

    def _place_node(self, node: SegmentNode) -> None:
        entry = node.entry
        self.nodes[entry.id] = node
        self._planner.insert(
            entry.id, entry.parent, (entry.begin, entry.end), (entry.first, entry.last),
            entry.rows, entry.events,
        )  # fmt: skip
        if entry.parent is None:
            self.roots[entry.id] = node
        else:
            self.offspring[entry.parent].append(node)
            self._placed.pop(entry.parent, None)

    def _detach(self, number: int) -> SegmentNode:
        node = self.nodes[number]
        if node.entry.parent is None:
            del self.roots[number]
        else:
            family = self.offspring[node.entry.parent]
            family.remove(node)
            self._placed.pop(node.entry.parent, None)
            if not family:
                del self.offspring[node.entry.parent]
        return node
