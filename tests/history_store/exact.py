"""What a history should say: every event in a list. And times that the tests share."""

from __future__ import annotations

from bloomtide.history import History

START = 1_767_225_600
"""The first second of 2026, where windows of all levels but the widest begin."""
HOUR = 3600
DAY = 24 * HOUR
SURE = 1e-4
"""An error rate at which the counts of a few keys are exact; seeds are fixed, so they stay so."""


class ExactHistory:
    """Counts of keys by time, exactly."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.events: list[tuple[str, float, int]] = []

    def add(self, key: str, at: float, count: int = 1) -> None:
        """Remembers the event."""
        self.events.append((key, at, count))

    def count(self, key: str, start: float = float("-inf"), end: float = float("inf")) -> int:
        """Events of the key in [start, end)."""
        return sum(n for name, at, n in self.events if name == key and start <= at < end)

    def total(self, start: float = float("-inf"), end: float = float("inf")) -> int:
        """All events in [start, end)."""
        return sum(n for _, at, n in self.events if start <= at < end)

    def all_keys(self) -> list[str]:
        """All keys, and one that was never seen."""
        return [*sorted({key for key, _, _ in self.events}), "never seen"]


def require_bounds(store: History, exact: ExactHistory, start: float, end: float) -> None:
    """The laws of every answer, for all keys in one range."""
    for key in exact.all_keys():
        truth = exact.count(key, start, end)
        for rollups in (True, False):
            found = store.count(key, start, end, rollups=rollups)
            assert found.upper >= truth, (key, start, end, rollups, found, truth)
            # Exact counts: what is inside cannot be more than there is.
            assert found.inner <= truth, (key, start, end, rollups, found, truth)
            assert found.inner <= found.estimate <= found.upper
            assert found.missing == ()
        assert store.contains(key, start, end) >= (truth > 0)
    total = store.total(start, end)
    assert total.inner <= exact.total(start, end) <= total.upper
