"""From a seed to a history."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from benchmarks.guard_histories import control, texts, writes
from benchmarks.guard_histories.schema import Schema, draw_schema
from benchmarks.guard_histories.steps import VERBS, Args, Draw, History, Step
from benchmarks.guard_histories.values import KINDS

VERB_FILES = (writes, texts, control)
"""They register the verbs."""
ANYBODY = (
    "settle",
    "build",
    "build_amid",
    "new_guard",
    "distrust",
    "outside",
    "drop_triggers",
    "outside_schema",
    "neighbour",
    "race",
    "two_phases",
)
"""Verbs for which it does not matter whose slot they are given."""


def draw_options(rnd: random.Random, schema: Schema) -> Args:
    """Options of the guard. `outbox` is read when the machine says so."""
    unique = schema.primary or all(col.unique for col in schema.columns)
    choice = rnd.random()
    if (
        schema.trigger
        or schema.rule
        or any(col.server or col.generated or col.cascade for col in schema.columns)
    ):
        return {"outbox": "60s"} if choice < 0.6 else {}
    if unique and choice < 0.6:
        return {"removals": "commit"}
    if choice > 0.86:
        return {"outbox": "60s"}
    if choice > 0.8:
        return {"shared": "folder"}
    if choice > 0.76 and not schema.hazards:
        return {"refresh": "5m"}
    return {}


SIMPLE = (
    "integer",
    "small",
    "big",
    "string",
    "text",
    "unicode",
    "char",
    "bytes",
    "prefixed",
    "lower",
    "nocase",
)
"""Kinds that the stand-in can compare."""


def draw_history(
    seed: int,
    database: str,
    *,
    simple: bool = False,
    kind: str | None = None,
    hazard: str | None = None,
    options: Args | None = None,
) -> History:
    """The same for the same seed. The words steer it to where a planted fault shows."""
    rnd = random.Random(f"{database} {seed}")
    kinds = tuple(
        one for one in KINDS if (one.name in SIMPLE or not simple) and kind in (None, one.name)
    )
    schema = draw_schema(rnd, database, kinds, hazard)
    if options and "removals" in options:
        columns = tuple(replace(col, unique=not schema.primary) for col in schema.columns[:1])
        schema = replace(schema, columns=columns)
    options = draw_options(rnd, schema) if options is None else options
    if simple:
        options.pop("shared", None)
    draw = Draw(rnd, schema, options)
    draw.simple = simple
    rows = tuple(draw.row() for _ in range(rnd.choice([0, 2, 3, 4])))
    weights = {name: verb.weight(draw) for name, verb in VERBS.items()}
    orm = [name for name in weights if name.startswith("orm_")]
    steps: list[Step] = []
    slot = draw.pick(s=4, c=4, i=1, w=0 if database == "sqlite" else 1)
    for _ in range(rnd.choice([4, 8, 12, 20] if database == "sqlite" else [4, 6, 8, 14])):
        if rnd.random() < 0.12:
            slot = draw.pick(
                s=4,
                p=1,
                c=4,
                i=1,
                j=0.5,
                n=2 if "shared" in options else 0,
                w=0 if database == "sqlite" else 1,
            )
        likely = dict(weights)
        if slot not in ("s", "p", "j"):
            for name in orm:
                likely[name] = 0.0
        if slot == "i":
            for name in ("savepoint", "rollback", "two_phases", "commit"):
                likely[name] = 0.0
        name = rnd.choices(list(likely), list(likely.values()))[0]
        args: dict[str, Any] = VERBS[name].draw(draw)
        if name in ("change_schema", "outside_schema") and rnd.random() < 0.5:
            who = "-" if name in ANYBODY else slot
            steps += [
                Step(name, who, args | {"part": "first"}),
                Step("commit", slot),
                Step("settle", "-"),
            ]
            args = args | {"part": "last"}
        steps.append(Step(name, "-" if name in ANYBODY else slot, args))
        if name == "commit" and rnd.random() < 0.4:
            steps.append(Step("settle", "-"))
    return History(seed, schema, options, tuple(steps), rows)
