"""What a law is: a sentence, a small function, and the traits a structure must have for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.conformance.registry import Structure, Subject


@dataclass(frozen=True)
class Law:
    """A function whose name is the sentence that it checks."""

    check: Callable[[Subject], None]
    needs: frozenset[str]
    unless: frozenset[str]

    @property
    def name(self) -> str:
        """The sentence."""
        return self.check.__name__

    def covers(self, structure: Structure) -> bool:
        """Whether the structure promises what this law checks."""
        return self.needs <= structure.traits and not self.unless & structure.traits


LAWS: list[Law] = []
Check = Callable[[Subject], None]


def law(*needs: str, unless: tuple[str, ...] = ()) -> Callable[[Check], Check]:
    """Enter a function among the laws."""

    def enter(check: Check) -> Check:
        LAWS.append(Law(check, frozenset(needs), frozenset(unless)))
        return check

    return enter
