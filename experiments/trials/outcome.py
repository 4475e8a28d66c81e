"""What an experiment gives: rows of figures, and what became of each claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of a paper or of our specification, and what became of it."""

    text: str
    theirs: str
    ours: str
    holds: bool

    def row(self) -> Row:
        """For the CSV and the terminal."""
        verdict = "holds" if self.holds else "falls short"
        return {"claim": self.text, "theirs": self.theirs, "ours": self.ours, "verdict": verdict}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an experiment gives."""

    rows: list[Row]
    claims: list[Claim]


def ratio(a: float, b: float) -> str:
    """ "12.3x"."""
    return f"{a / b:.1f}x"
