"""What `bloomery dedup` says when it is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bloomery import BloomFilter
from bloomery.cli import console
from bloomery.cli.quantities import show_bytes, show_rate


@dataclass(frozen=True, slots=True)
class Told:
    """What is said at the end: about the input, about what was kept, and about the filter."""

    tally: tuple[int, int, int, int]
    filter: Any
    problems: list[console.CommandError]
    words: str
    """What lines without a key are called."""
    exact: bool = False

    def tell(self, json: bool, stats: bool) -> None:
        """Problems always, numbers when asked for."""
        for problem in self.problems:
            console.error(problem.message, problem.hint)
        if json:
            self._write_json()
            return
        if keyless := self.tally[3]:
            console.message(f"lines {self.words}, passed through: {keyless:,}")
        if stats:
            self._tell_stats()
        # A filter that grows is never overfull, and measuring takes its time.
        if isinstance(self.filter, BloomFilter) and not self.exact:
            now, goal = self.filter.stats().predicted_error, self.filter.error_rate
            if goal is not None and now > 1.1 * goal:
                console.message(
                    f"more different lines than --items {self.filter.capacity:,}: the chance that"
                    f" a new one is dropped has grown to {show_rate(now)}"
                )

    def _write_json(self) -> None:
        measured = self.filter.stats()
        names = ("lines", "new", "repeats", "without_key")
        console.write_json(
            dict(zip(names, self.tally, strict=True))
            | {
                "memory": measured.bytes,
                "error_rate": measured.error_rate,
                "predicted_error": 0.0 if self.exact else measured.predicted_error,
            }
        )

    def _tell_stats(self) -> None:
        lines, new, repeats, _ = self.tally
        measured = self.filter.stats()
        wrong = "none" if self.exact else f"at most {show_rate(measured.predicted_error)}"
        console.message(f"{lines:,} lines: {new:,} new, {repeats:,} repeats")
        console.message(
            f"filter: {show_bytes(measured.bytes)}, about {measured.items:,.0f} items;"
            f" new lines dropped by mistake: {wrong}"
        )
