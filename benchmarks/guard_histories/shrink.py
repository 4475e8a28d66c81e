"""The smallest part of a history that still fails, and what to say of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from benchmarks.guard_histories.ground import Ground
from benchmarks.guard_histories.play import Outcome, Plant, Play
from benchmarks.guard_histories.steps import History, Step


def fails(history: History, ground: Ground, plant: Plant | None = None) -> Outcome | None:
    """What came of it, if it fails."""
    outcome = Play(history, ground, plant).run()
    return outcome if outcome.wrong else None


def shrink(
    history: History, ground: Ground, plant: Plant | None = None, most: int = 250
) -> History:
    """Leaves out steps, parts of steps, and properties of the schema while it still fails."""
    tried = 0

    def still(candidate: History) -> bool:
        nonlocal tried
        tried += 1
        return tried <= most and fails(candidate, ground, plant) is not None

    outcome = fails(history, ground, plant)
    if outcome is None or outcome.wrong is None:
        return history
    history = replace(history, steps=history.steps[: outcome.wrong.step + 1])
    size = max(len(history.steps) // 2, 1)
    while size:
        place = 0
        while place < len(history.steps):
            steps = history.steps[:place] + history.steps[place + size :]
            candidate = replace(history, steps=steps)
            if still(candidate):
                history = candidate
            else:
                place += size
        size //= 2
    for row in history.rows:
        candidate = replace(
            history, rows=tuple(other for other in history.rows if other is not row)
        )
        if still(candidate):
            history = candidate
    for simplify in (_options, _columns, _schema, _steps):
        for candidate in simplify(history):
            if still(candidate):
                history = candidate
    return history


OTHERS = ("outside", "outside_schema", "drop_triggers", "neighbour")
"""Verbs that are only right with the options they were drawn for."""


def _options(history: History) -> Iterator[History]:
    if not any(step.verb in OTHERS for step in history.steps):
        yield replace(history, options={})


def _columns(history: History) -> Iterator[History]:
    columns = history.schema.columns
    if len(columns) == 1:
        for kind in ("integer", "string"):
            yield replace(
                history, schema=replace(history.schema, columns=(replace(columns[0], kind=kind),))
            )
    for word in ("client", "server", "generated", "cascade"):
        plain = tuple(replace(col, **{word: None}) for col in columns)  # type: ignore[arg-type]
        if plain != columns:
            yield replace(history, schema=replace(history.schema, columns=plain))


PLAIN: dict[str, Any] = {
    "table": "t",
    "namespace": None,
    "trigger": None,
    "rule": False,
    "view": False,
    "partitioned": False,
    "inherited": False,
    "wal": False,
    "orm": False,
    "renamed": False,
    "primary": False,
}


def _schema(history: History) -> Iterator[History]:
    for word, value in PLAIN.items():
        if getattr(history.schema, word) != value:
            yield replace(history, schema=replace(history.schema, **{word: value}))


def _steps(history: History) -> Iterator[History]:
    for place, step in enumerate(history.steps):
        for args in _simpler(step):
            steps = (
                *history.steps[:place],
                Step(step.verb, step.slot, args),
                *history.steps[place + 1 :],
            )
            yield replace(history, steps=steps)


def _simpler(step: Step) -> Iterator[dict[str, Any]]:
    args = step.args
    if len(args.get("rows", ())) > 1:
        yield args | {"rows": args["rows"][:1]}
    if args.get("target", "main") != "main":
        yield args | {"target": "main"}
    if args.get("style", "values") != "values":
        yield args | {"style": "values"}
    if len(args.get("steps", ())) > 1:
        for left in range(len(args["steps"])):
            yield args | {"steps": args["steps"][:left] + args["steps"][left + 1 :]}


def signature(history: History) -> str:
    """Failures with the same one are taken for the same."""
    parts = []
    for step in history.steps:
        words = [
            str(step.args[name])
            for name in ("target", "style", "how", "what", "then", "order", "end")
            if name in step.args
        ]
        parts.append(f"{step.verb}({', '.join(words)})")
    s = history.schema
    kinds = "/".join(col.kind for col in s.columns)
    traits = [
        f"{word}"
        for word in PLAIN
        if getattr(s, word) not in (PLAIN[word], None) and word not in ("table", "orm")
    ]
    traits += [
        f"{word} {getattr(col, word)}"
        for col in s.columns
        for word in ("client", "server", "generated", "cascade")
        if getattr(col, word)
    ]
    key = ["key="] if any(col.key != col.name for col in s.columns) else []
    return " > ".join(parts) + f" | {kinds} {' '.join(traits + key)} | {sorted(history.options)}"


def describe(history: History, ground: Ground, plant: Plant | None = None) -> str:
    """Seed, schema, statements, the wrong answer."""
    lines = [
        f"seed {history.seed}, {history.schema.database}, options {history.options}",
        repr(history.schema),
    ]
    Play(history, ground, plant, log=lines.append).run()
    return "\n".join(lines)
