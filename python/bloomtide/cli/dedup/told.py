"""What `bloomtide dedup` says when it is done."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from bloomtide import BloomFilter, Dedup
from bloomtide.cli import console
from bloomtide.cli.quantities import show_bytes, show_rate


@dataclass(frozen=True, slots=True)
class Told:
    """What is said at the end: about the input, about what was kept, and about the filter."""

    lines: Dedup
    """Its report is asked for only if it is shown: to import `bloomtide.records` takes its time."""
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
        if keyless := self.lines.without_key:
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
        console.write_json(
            asdict(self.lines.report())
            | {
                "memory": measured.bytes,
                "error_rate": measured.error_rate,
                "predicted_error": 0.0 if self.exact else measured.predicted_error,
            }
        )

    def _tell_stats(self) -> None:
        read = self.lines.report()
        measured = self.filter.stats()
        wrong = "none" if self.exact else f"at most {show_rate(measured.predicted_error)}"
        console.message(f"{read.lines:,} lines: {read.new:,} new, {read.repeats:,} repeats")
        console.message(
            f"filter: {show_bytes(measured.bytes)}, about {measured.items:,.0f} items;"
            f" new lines dropped by mistake: {wrong}"
        )
