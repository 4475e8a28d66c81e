"""Steps of a history: plain data, each of which can be left out without making another meaningless.

A verb has two functions: `draw` chooses the arguments, `do` carries a step out. Values are given by
their position in the column's kind, rows as dictionaries from `id`, `k`, `j`, `note`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.guard_histories.schema import Col, Schema

if TYPE_CHECKING:
    pass

Args = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that somebody does. `slot` is who: a session or a connection of the engine."""

    verb: str
    slot: str
    args: Args = field(default_factory=dict)

    def __str__(self) -> str:
        words = ", ".join(f"{name}={value!r}" for name, value in self.args.items())
        return f"[{self.slot}] {self.verb}({words})"


@dataclass(frozen=True, slots=True)
class History:
    """What a seed stands for."""

    seed: int
    schema: Schema
    options: Args
    steps: tuple[Step, ...]
    rows: tuple[Args, ...] = ()
    """What the table has before the guard is made."""


@dataclass(frozen=True, slots=True)
class Verb:
    """How a step is drawn and done."""

    name: str
    weight: Callable[[Draw], float]
    draw: Callable[[Draw], Args]
    do: Callable[..., None]


VERBS: dict[str, Verb] = {}


def verb(
    weight: float | Callable[[Draw], float], draw: Callable[[Draw], Args] = lambda d: {}
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Registers a function `do(play, slot, **args)` under its name."""

    def register(do: Callable[..., None]) -> Callable[..., None]:
        name = do.__name__
        known = weight if callable(weight) else lambda d: weight
        VERBS[name] = Verb(name, known, draw, do)
        return do

    return register


class Draw:
    """Draws arguments, and remembers which values no step has used yet."""

    def __init__(self, rnd: random.Random, schema: Schema, options: Args) -> None:
        self.rnd, self.schema, self.options = rnd, schema, options
        self.simple = False
        """For guards that know nothing of threads."""
        self.unused = {col.logical: self._shuffled(col) for col in schema.columns}
        self.used: dict[str, list[int]] = {col.logical: [] for col in schema.columns}
        self.ids = 0

    def _shuffled(self, col: Col) -> list[int]:
        found = list(range(max(len(col.of.values) - 3, 1)))
        self.rnd.shuffle(found)
        return found

    def chance(self, probability: float) -> bool:
        return self.rnd.random() < probability

    def pick(self, **weights: float) -> str:
        names = list(weights)
        return self.rnd.choices(names, [weights[name] for name in names])[0].replace("_", " ")

    @property
    def sqlite(self) -> bool:
        return self.schema.database == "sqlite"

    @property
    def outside(self) -> bool:
        """Others may write: the guard follows them."""
        return bool(self.options.get("outbox"))

    def fresh(self, logical: str = "k") -> int:
        """A value, new as a rule."""
        unused, used = self.unused[logical], self.used[logical]
        if unused and (not used or self.chance(0.75)):
            used.append(unused.pop())
            return used[-1]
        return self.rnd.choice(used)

    def known(self, logical: str = "k") -> int:
        """A value that some step has written."""
        used = self.used[logical]
        return self.rnd.choice(used) if used and self.chance(0.9) else self.fresh(logical)

    def row(self) -> Args:
        s, row = self.schema, dict[str, Any]()
        if s.primary or self.chance(0.6):
            self.ids += 1
            row["id"] = self.ids if self.chance(0.95) else self.rnd.randint(1, self.ids)
        for col in s.columns:
            if col.generated or ((col.server or col.client) and self.chance(0.5)):
                continue
            if s.numbered and self.chance(0.4):
                continue
            if col.nullable and self.chance(0.05):
                row[col.logical] = None
                continue
            row[col.logical] = self.fresh(col.logical)
        row["note"] = self.rnd.randint(0, 99)
        return row

    def rows(self, most: int = 3) -> list[Args]:
        return [self.row() for _ in range(self.rnd.choice([1, 1, 2, most]))]

    def where(self) -> Args:
        """Which rows an UPDATE or DELETE meets."""
        by = self.pick(k=6, id=3, all=0.7, note=0.7, several=1)
        if by == "k":
            return {
                "by": "k",
                **{col.logical: self.known(col.logical) for col in self.schema.columns},
            }
        if by == "several":
            return {"by": "several", "k": [self.known() for _ in range(2)]}
        if by == "id":
            return {"by": "id", "id": self.rnd.randint(1, max(self.ids, 1))}
        return {"by": by, "note": 50}

    def change(self) -> Args:
        """What an UPDATE sets."""
        found: Args = {}
        for col in self.schema.columns:
            if not col.generated and self.chance(0.75):
                found[col.logical] = self.fresh(col.logical)
        if not found or self.chance(0.2):
            found["note"] = self.rnd.randint(0, 99)
        return found

    def target(self, **more: float) -> str:
        """By which description a program writes."""
        s = self.schema
        words = {
            "main": 8.0,
            "reflected": 0.8 if self.sqlite else 0.3,
            "light": 1.2,
            "keyed": 1.2,
            "swapped_keys": 0.6,
            "defaults": 0.7,
            "onupdate": 0.7,
            "qualified": 0.8,
        }
        if self.sqlite:
            words["cased"] = 1.2
        if s.orm:
            words["entity"] = 3
        words["translated"] = 0.6
        if s.view:
            words["view"] = 3
        if s.inherited:
            words["child"] = 5
        if s.partitioned:
            words["part0"] = 1.5
            words["part1"] = 1.5
        if s.trigger == "from_u" or s.rule:
            words["u"] = 6
        return self.pick(**(words | more))
