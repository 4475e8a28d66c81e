"""A store against an exact dictionary, through every verb and power cut, in any order."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from bloomtide.history import History
from tests.durable.faults import FailingDisk, PowerCut, abandon
from tests.history_store.exact import DAY, HOUR, START, SURE, ExactHistory, require_bounds

SPAN = 80 * DAY
KEYS = ["a", "b", "c", "ä", "https://example.org/"]
moments = st.one_of(
    st.integers(0, SPAN // HOUR).map(lambda hour: START + hour * HOUR),
    st.integers(0, SPAN).map(lambda second: START + second),
    st.integers(0, 3 * HOUR).map(lambda second: START + SPAN - second),
    # So close together that ranges cut rows.
    st.integers(0, 200).map(lambda second: START + 40 * DAY + second),
)


class StoreMachine(RuleBasedStateMachine):
    """Each rule does the same to both; the bounds hold after each."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="bloomtide-history-"))
        self.exact = ExactHistory()
        self.ranges: list[tuple[float, float]] = [(START, START + SPAN)]

    @initialize(lateness=st.sampled_from(["0s", "10m", "1d"]))
    def begin(self, lateness: str) -> None:
        self.lateness = lateness
        self.store = self.open(FailingDisk())

    def open(self, disk: FailingDisk) -> History:
        self.disk = disk
        return History.open(
            self.directory,
            "1m",
            error_rate=SURE,
            lateness=self.lateness,
            sync="always",
            background=False,
            clock=lambda: START + SPAN,
            disk=disk,
        )

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
        shutil.rmtree(self.directory)

    @rule(key=st.sampled_from(KEYS), at=moments, count=st.integers(1, 5))
    def add(self, key: str, at: float, count: int) -> None:
        self.store.add(key, count, at=at)
        self.exact.add(key, at, count)

    @rule(rows=st.lists(st.tuples(st.sampled_from(KEYS), moments), min_size=1, max_size=30))
    def add_many(self, rows: list[tuple[str, float]]) -> None:
        keys, times = zip(*rows, strict=True)
        assert self.store.add_many(list(keys), at=list(times)) == len(rows)
        for key, at in rows:
            self.exact.add(key, at)

    @rule()
    def seal(self) -> None:
        self.store.seal()

    @rule(start=moments, end=moments)
    def compact(self, start: float, end: float) -> None:
        low, high = min(start, end), max(start, end)
        before = [self.store.count(key, low, high, rollups=False).upper for key in KEYS]
        self.store.compact()
        after = [self.store.count(key, low, high, rollups=False).upper for key in KEYS]
        assert all(one <= other for one, other in zip(before, after, strict=True))

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = self.open(FailingDisk())

    @precondition(lambda self: bool(self.exact.events))
    @rule(after=st.integers(0, 40), verb=st.sampled_from(["seal", "compact"]))
    def lose_power(self, after: int, verb: str) -> None:
        """At some write within a change of the segments; nothing was being added."""
        self.store.close()
        self.store = self.open(disk := FailingDisk())
        disk.fail_in(after)
        with suppress(PowerCut):
            getattr(self.store, verb)()
        disk.lose_power()
        abandon(self.store)
        self.store = self.open(FailingDisk())

    @precondition(lambda self: bool(self.exact.events))
    @rule(choice=st.integers(0, 1000), start=moments)
    def cut(self, choice: int, start: float) -> None:
        """From now on a range is asked that ends between two events of one row."""
        key, at, _ = self.exact.events[choice % len(self.exact.events)]
        self.add(key, at - at % 60 + (choice % 60), 1)
        self.ask(min(start, at), at)

    @rule(start=moments, end=moments)
    def ask(self, start: float, end: float) -> None:
        """From now on this range is asked after every rule."""
        self.ranges = [*self.ranges[-2:], (min(start, end), max(start, end))]

    @rule(start=moments, end=moments, middle=moments)
    def split(self, start: float, end: float, middle: float) -> None:
        """Counts of the finest rows add up where ranges meet at the edge of a window."""
        low, mid, high = (at - at % 60 for at in sorted([start, middle, end]))
        for key in KEYS:
            parts = [
                self.store.count(key, one, other, rollups=False)
                for one, other in ((low, mid), (mid, high), (low, high))
            ]
            if not any(part.partial for part in parts):
                assert parts[0].upper + parts[1].upper == parts[2].upper

    @rule(key=st.sampled_from(KEYS), step=st.sampled_from(["1m", "7h", "1d", "33d"]))
    def series(self, key: str, step: str) -> None:
        start, end = self.ranges[-1]
        if end - start > 1440 * 60 and step == "1m":
            start = end - 3600
        found = self.store.series(key, start, end, step)
        lengths = {"1m": 60, "7h": 7 * HOUR, "1d": DAY, "33d": 33 * DAY}
        for number in range(len(found)):
            first = start + number * lengths[step]
            truth = self.exact.count(key, first, min(first + lengths[step], end))
            assert found.inner[number] <= truth <= found.upper[number]

    @invariant()
    def bounds_hold(self) -> None:
        for start, end in self.ranges:
            require_bounds(self.store, self.exact, start, end)


def test_a_store_keeps_its_bounds_whatever_happens_to_it() -> None:
    machine: Any = StoreMachine
    run_state_machine_as_test(
        machine, settings=settings(max_examples=15, stateful_step_count=25, deadline=None)
    )
