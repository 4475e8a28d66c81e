"""A number, text or truth of NumPy is taken wherever Python's is, and means the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Column, Integer, MetaData, Table, create_engine

from bloomtide import History, Monitor, distributed
from bloomtide.errors import BloomtideError
from bloomtide.guard import DatabaseGuard
from bloomtide.plain import plain
from tests.conformance.scalars import CALLS, OPENINGS, OTHERS, USUAL, Call, parameters_of, public


def spelled(value: Any) -> Iterator[Any]:
    """The same value as NumPy spells it."""
    if isinstance(value, bool):
        yield np.bool_(value)
    elif isinstance(value, int):
        for kind in (np.int64, np.uint64, np.int32, np.uint32, np.int16, np.uint8):
            if np.iinfo(kind).min <= value <= np.iinfo(kind).max:
                yield kind(value)
    elif isinstance(value, float):
        for small in (np.float64, np.float32, np.float16):
            with np.errstate(over="ignore"):
                same = float(small(value)) == value
            if same:
                yield small(value)
    elif isinstance(value, str):
        yield np.str_(value)
    elif isinstance(value, (list, tuple)):
        yield [next(spelled(item)) for item in value]
        yield np.array(value)


NO_WHOLE_NUMBERS = (
    np.float64(2.5),
    np.float32(0.5),
    np.float64(2.0),
    np.float64(-1.0),
    np.float64("nan"),
)
"""Floats where mostly whole numbers, texts or truths belong."""


def names_the_parameter(error: Exception, name: str) -> bool:
    """Whether an error is one of ours, or Python's own about this argument of the call."""
    if isinstance(error, BloomtideError):
        return True
    notes = getattr(error, "__notes__", [])
    return isinstance(error, TypeError) and any(name in text for text in (str(error), *notes))


def seen(answer: Any, made: Any) -> Any:
    """Everything that can be compared of an answer and of what gave it."""
    if hasattr(answer, "to_bytes") and not isinstance(answer, (int, np.generic)):
        answer = answer.to_bytes()
    elif isinstance(answer, (np.ndarray, np.generic)):
        answer = answer.tolist()
    elif isinstance(answer, (History, Monitor)):
        answer.close()
        answer = None
    elif isinstance(answer, list):
        answer = [plain(item) for item in answer]
    left = made.to_bytes() if hasattr(made, "to_bytes") else None
    if isinstance(made, (History, Monitor)):
        made.close()
    return repr(answer).partition(" object at ")[0], left


@pytest.mark.parametrize("call", CALLS, ids=[f"{i}-{c.label}" for i, c in enumerate(CALLS)])
def test_what_numpy_spells_means_the_same(call: Call, tmp_path: Path) -> None:
    paths = (tmp_path / str(number) for number in range(10_000))
    wanted = seen(*call.run(next(paths), call.arguments))
    for name, value in call.arguments.items():
        for other in spelled(value):
            said = f"{name}={type(other).__name__}({other!r})"
            try:
                got = seen(*call.run(next(paths), call.arguments | {name: other}))
            except (BloomtideError, TypeError, ValueError) as error:
                raise AssertionError(f"{call.label}: {said} is refused: {error!r}") from error
            assert got == wanted, f"{call.label}: {said} means something else"


@pytest.mark.parametrize("call", CALLS, ids=[f"{i}-{c.label}" for i, c in enumerate(CALLS)])
def test_a_float_is_taken_or_refused_by_name(call: Call, tmp_path: Path) -> None:
    paths = (tmp_path / str(number) for number in range(10_000))
    unnamed = []
    for name, value in call.arguments.items():
        if not isinstance(value, (bool, int, float, str)):
            continue
        for other in NO_WHOLE_NUMBERS:
            opened: tuple[Any, ...] = ()
            try:
                opened = call.run(next(paths), call.arguments | {name: other})
            except Exception as error:  # noqa: BLE001 - any may come
                if not names_the_parameter(error, name):
                    unnamed.append(f"{name}={other!r}: {error!r}")
            for thing in opened:
                if isinstance(thing, (History, Monitor)):
                    thing.close()
    assert not unnamed


def open_and_close(call: Call, path: Path, arguments: dict[str, Any]) -> None:
    if call.owner is DatabaseGuard:
        table = Table("t", MetaData(), Column("id", Integer, primary_key=True))
        engine = create_engine(f"sqlite:///{path}.db")
        try:
            DatabaseGuard(engine, table.c.id, **arguments).close()
        finally:
            engine.dispose()
        return
    if call.owner is distributed.write_shard:
        distributed.write_shard(path, **arguments)
        return
    named = call.owner is not Monitor or "sync" in arguments
    made = call.owner.open(*((path,) if named else ()), **arguments)
    made.close()
    if named:
        # What was written must be read again, with the same words.
        again = {k: v for k, v in arguments.items() if k != "mode"}
        if call.owner is History or call.owner is Monitor:
            call.owner.open(path, **again).close()


@pytest.mark.parametrize("call", OPENINGS, ids=[f"{i}-{c.label}" for i, c in enumerate(OPENINGS)])
def test_what_is_opened_takes_a_float_or_refuses_it_by_name(call: Call, tmp_path: Path) -> None:
    paths = (tmp_path / str(number) for number in range(10_000))
    unnamed = []
    for name, value in call.arguments.items():
        if not isinstance(value, (bool, int, float, str)):
            continue
        for other in NO_WHOLE_NUMBERS:
            try:
                open_and_close(call, next(paths), call.arguments | {name: other})
            except Exception as error:  # noqa: BLE001 - any may come
                if not names_the_parameter(error, name):
                    unnamed.append(f"{name}={other!r}: {error!r}")
    assert not unnamed


@pytest.mark.parametrize("call", OPENINGS, ids=[f"{i}-{c.label}" for i, c in enumerate(OPENINGS)])
def test_what_is_opened_takes_what_numpy_spells(call: Call, tmp_path: Path) -> None:
    paths = (tmp_path / str(number) for number in range(10_000))
    open_and_close(call, next(paths), call.arguments)
    for name, value in call.arguments.items():
        for other in spelled(value):
            said = f"{name}={type(other).__name__}({other!r})"
            try:
                open_and_close(call, next(paths), call.arguments | {name: other})
            except Exception as error:
                raise AssertionError(f"{call.label}: {said}: {error!r}") from error


def test_every_parameter_of_every_public_class_is_tried() -> None:
    tried: dict[str, set[str]] = {}
    for call in (*CALLS, *OPENINGS):
        tried.setdefault(call.label, set()).update(call.arguments)
    missing = [
        f"{label}({name})"
        for label, thing in public()
        for name in parameters_of(thing)
        if name not in OTHERS and name not in tried.get(label, set())
    ]
    assert not missing, missing
    assert not OTHERS & USUAL.keys()
