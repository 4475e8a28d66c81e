"""`History` behind the interface of the exact stores."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from bloomtide import History
from spans.events import Micros

MICRO = 1_000_000


class OurHistory:
    """1 % error, a journal that is synced every second, roll-ups.

    With a `retention` that covers the stream nothing is dropped, but no exact counts are kept for
    roll-ups that are wider than it; without one there are some for spans of up to 1024 days.
    """

    def __init__(self, folder: Path, width: int, retention: str | None = None) -> None:
        self.name = "History" + (f", {retention}" if retention else "")
        self.folder = folder / "history"
        self.history = History.open(
            self.folder, width / MICRO, error_rate=0.01, retention=retention
        )

    def add(self, keys: pa.Array, at: Micros) -> None:
        """In one call."""
        self.history.add_many(keys, at=pa.array(at, pa.timestamp("us", "UTC")))

    def finish(self) -> None:
        """Seal everything, also what is not complete yet, and roll up what is."""
        self.history.seal()
        self.history.compact()
        self.history.close()
        self.history = History.open(self.folder, mode="r")

    def count(self, key: str, start: int, end: int) -> int:
        """The upper bound."""
        return self.history.count(key, start / MICRO, end / MICRO).upper

    def bytes(self) -> int:
        """All files of the directory: segments, items, catalogue, journal."""
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())

    def close(self) -> None:
        """Let go of it."""
        self.history.close()
