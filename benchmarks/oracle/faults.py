"""Errors planted around sound structures, each of which the oracle must find.

`Faulty` passes every call on to the structure, but for those that the fault changes. What a fault
keeps is shared by all structures of one trial, so that a copy or a loaded file has the same fault.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.oracle.trial import Plant, Trial
from bloomtide.errors import BloomtideError

Change = Callable[..., Any]
Changes = dict[str, Change]


class Faulty:
    """A structure with an error."""

    def __init__(self, inner: Any, changes: Changes) -> None:
        self.inner = inner
        self.changes = changes

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        return functools.partial(self.changes[name], self.inner) if name in self.changes else found

    def __contains__(self, key: Any) -> bool:
        change = self.changes.get("__contains__")
        return bool(change(self.inner, key)) if change else key in self.inner

    def __len__(self) -> int:
        return len(self.inner)

    def __ior__(self, other: Any) -> Faulty:
        change = self.changes.get("merge")
        if change:
            change(self.inner, other)
        else:
            self.inner |= other
        return self

    def __iand__(self, other: Any) -> Faulty:
        if "__iand__" not in self.changes:
            self.inner &= other
        return self


@dataclass(frozen=True, slots=True)
class Fault:
    """One error, and the trial that must find it."""

    name: str
    trial: type[Trial]
    changes: Callable[[], Changes]

    def plant(self) -> Plant:
        """Wraps structures, with what the fault keeps begun anew."""
        changes = self.changes()
        return lambda made: Faulty(made, changes)


def every(number: int) -> Callable[[], bool]:
    """True at every so many calls."""
    calls = iter(range(1, 1 << 62))
    return lambda: next(calls) % number == 0


def rows(keys: Any) -> list[Any]:
    """The keys of a batch in any form."""
    if hasattr(keys, "to_pylist"):
        return list(keys.to_pylist())
    return list(keys.tolist() if isinstance(keys, np.ndarray) else keys)


# --- changes that several structures take


def drops(number: int) -> Changes:
    """Every so many keys of batches do not go in."""
    due = every(number)

    def add_many(inner: Any, keys: Any, *columns: Any, **words: Any) -> Any:
        taken = rows(keys)
        if (
            columns
            or words.get("nulls")
            or not all(isinstance(k, str | bytes | int) for k in taken)
        ):
            return inner.add_many(taken, *columns, **words)
        kept = np.array([not due() for _ in taken])
        answers = np.zeros(len(taken), bool)
        answers[kept] = inner.add_many(
            [k for k, keep in zip(taken, kept, strict=True) if keep], **words
        )
        return answers

    return {"add_many": add_many}


def drops_calls(number: int, answer: Any = False) -> Changes:
    """Every so many single adds do nothing."""
    due = every(number)
    return {"add": lambda inner, *a, **w: answer if due() else inner.add(*a, **w)}


def drops_rows(number: int) -> Changes:
    """Every so many rows of a batch with counts and times do not go in."""

    def add_many(inner: Any, keys: Any, *columns: Any, **words: Any) -> Any:
        taken = rows(keys)
        if len(taken) > number:
            words = {n: rows(w)[:-1] if n == "at" else w for n, w in words.items()}
            return inner.add_many(taken[:-1], *(column(c)[:-1] for c in columns), **words)
        return inner.add_many(taken, *columns, **words)

    return {"add_many": add_many}


def column(values: Any) -> Any:
    """A column that can be cut; one instant stays."""
    return (
        rows(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    )


def older(verb: str) -> Changes:
    """What was there before the last batch is written."""
    kept: list[bytes] = []

    def add_many(inner: Any, *arguments: Any, **words: Any) -> Any:
        kept.append(inner.to_bytes())
        return inner.add_many(*arguments, **words)

    def to_bytes(inner: Any) -> bytes:
        return kept[-1] if kept else bytes(inner.to_bytes())

    def save(inner: Any, path: Any) -> None:
        path.write_bytes(to_bytes(inner))

    writes: Changes = {"to_bytes": to_bytes, "save": save}
    return {"add_many": add_many, verb: writes[verb]}


def lies(verb: str, number: int, change: Callable[[Any], Any]) -> Changes:
    """Every so many answers of a verb are changed."""
    due = every(number)

    def answer(inner: Any, *arguments: Any, **words: Any) -> Any:
        if verb == "__contains__":
            found: Any = arguments[0] in inner
        else:
            found = getattr(inner, verb)(*arguments, **words)
        return change(found) if due() else found

    return {verb: answer}


def field(name: str, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Changes a field of a record, if it has a value."""

    def changed(record: Any) -> Any:
        value = getattr(record, name)
        return record if value is None else dataclasses.replace(record, **{name: change(value)})

    return changed


def first(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Changes the first of an answer, if there is one."""

    def changed(found: Any) -> Any:
        if len(found):
            found = found.copy()
            found[0] = change(found[0])
        return found

    return changed


def swapped(found: Any) -> Any:
    """Exchanges the first two answers that differ."""
    found = found.copy()
    differ: Any = np.flatnonzero(found != found[:1])
    if len(differ):
        found[[0, differ[0]]] = found[[differ[0], 0]]
    return found


def nothing(*verbs: str) -> Changes:
    """These verbs do nothing."""
    return {verb: lambda inner, *a, **w: None for verb in verbs}


def twice(*verbs: str) -> Changes:
    """These verbs are done twice."""

    def make(verb: str) -> Change:
        def change(inner: Any, *arguments: Any, **words: Any) -> Any:
            with contextlib.suppress(BloomtideError):
                getattr(inner, verb)(*arguments, **words)
            return getattr(inner, verb)(*arguments, **words)

        return change

    return {verb: make(verb) for verb in verbs}


def shared_copy() -> Changes:
    """A copy is the structure itself."""
    return {"copy": lambda inner: inner}


def goes_on_after_a_bad_key() -> Changes:
    """The keys behind a bad one go in too."""

    def add_many(inner: Any, keys: Any, *columns: Any, **words: Any) -> Any:
        taken = (
            rows(keys)
            if not isinstance(keys, str | bytes | dict) and isinstance(keys, Iterable)
            else keys
        )
        try:
            return inner.add_many(taken, *columns, **words)
        except BloomtideError as error:
            index = getattr(error, "index", None)
            if index is not None and not columns:
                for key in taken[index + 1 :]:
                    inner.add(key)
            raise

    return {"add_many": add_many}


def added_is_off(verb: str = "add_many") -> Changes:
    """An error says one row too few."""

    def change(inner: Any, *arguments: Any, **words: Any) -> Any:
        try:
            return getattr(inner, verb)(*arguments, **words)
        except BloomtideError as error:
            if getattr(error, "added", None):
                error.added -= 1  # type: ignore[attr-defined]
            raise

    return {verb: change}


def half_done() -> Changes:
    """A batch with a wrong column is begun."""

    def add_many(inner: Any, keys: Any, *columns: Any, **words: Any) -> Any:
        try:
            return inner.add_many(keys, *columns, **words)
        except BloomtideError:
            if not isinstance(keys, str | bytes | int) and keys is not None and len(rows(keys)):
                time = {"at": inner_time(inner)} if hasattr(inner, "feed") else {}
                inner.add(rows(keys)[0], **time)
            raise

    return {"add_many": add_many}


def inner_time(inner: Any) -> Any:
    """An instant that a store takes."""
    return inner.stats().last or 1.5e9


def asks_and_adds() -> Changes:
    """A question adds its keys."""

    def contains_many(inner: Any, keys: Any, *a: Any, **words: Any) -> Any:
        taken = rows(keys)
        found = inner.contains_many(taken, *a, **words)
        inner.add_many(taken[-1:], *a)
        return found

    return {"contains_many": contains_many}


def clear_keeps_one() -> Changes:
    """Something is left after `clear`."""

    def clear(inner: Any) -> None:
        inner.clear()
        inner.add("left")

    return {"clear": clear}


# --- changes of one structure


def counts_one_less(number: int) -> Changes:
    due = every(number)
    return {
        "add": lambda inner, key, count=1, **w: inner.add(
            key, count - 1 if isinstance(count, int) and count > 1 and due() else count, **w
        )
    }


def weights_swapped() -> Changes:
    """The first two weights of a batch go to each other's keys."""

    def add_many(inner: Any, keys: Any, given: Any = None, *a: Any, **words: Any) -> Any:
        if given is not None and len(given) > 1 and all(isinstance(n, int) for n in rows(given)):
            weights = rows(given)
            weights[0], weights[1] = weights[1], weights[0]
            return inner.add_many(keys, weights, *a, **words)
        return inner.add_many(keys, given, *a, **words)

    return {"add_many": add_many}


def merge_loses_one() -> Changes:
    """After a merge a counter is too low."""
    last: list[Any] = []

    def add(inner: Any, key: Any, *a: Any, **words: Any) -> Any:
        found = inner.add(key, *a, **words)
        last.append(key)
        return found

    def merge(inner: Any, other: Any) -> None:
        inner.merge(other)
        if last and inner.policy == "plain":
            with contextlib.suppress(BloomtideError):
                inner.remove(last[-1])

    return {"add": add, "merge": merge}


def refusals_swallowed() -> Changes:
    """A removal that must be refused is answered."""

    def remove(inner: Any, *a: Any, **words: Any) -> Any:
        try:
            return inner.remove(*a, **words)
        except BloomtideError:
            return None

    return {"remove": remove}


def cuts_and_adds() -> Changes:
    def repartition(inner: Any, cut: Any) -> None:
        inner.repartition(cut)
        inner.add("one more")

    return {"repartition": repartition}


def threads_lose_the_last() -> Changes:
    def add_many(inner: Any, keys: Any, *a: Any, **words: Any) -> Any:
        taken = rows(keys) if words.get("threads", 1) > 1 else keys
        if words.get("threads", 1) > 1 and len(taken) > 50 and not a:
            return np.append(inner.add_many(taken[:-1], **words), False)
        return inner.add_many(taken, *a, **words)

    return {"add_many": add_many}


def late_dropped(answer: Any = True) -> Changes:
    """Late events are forgotten."""

    def add(inner: Any, key: Any, *a: Any, **words: Any) -> Any:
        at = a[-1] if a else None
        time = getattr(inner, "time", None) or (inner.hot.time if hasattr(inner, "hot") else None)
        if isinstance(at, float) and time is not None and at < time - 1.0:
            return answer
        return inner.add(key, *a, **words)

    return {"add": add}


def late_counts_whole() -> Changes:
    """Late events count as of now."""

    def add(inner: Any, key: Any, *a: Any, **words: Any) -> Any:
        if len(a) == 2 and inner.time is not None and isinstance(a[1], float) and a[1] < inner.time:
            a = (a[0], inner.time)
        return inner.add(key, *a, **words)

    return {"add": add}


def believes_all() -> Changes:
    """One event far ahead moves the time."""

    def add(inner: Any, key: Any, *a: Any, **words: Any) -> Any:
        at = words.get("at", a[-1] if a else None)
        found = inner.add(key, *a, **words)
        if isinstance(at, float) and inner.time is not None and at > inner.time + 86_400:
            with contextlib.suppress(BloomtideError):
                inner.advance(at)
        return found

    return {"add": add}


def aside_lost() -> Changes:
    """Events far ahead are dropped."""

    def add(inner: Any, key: Any, *a: Any, **words: Any) -> Any:
        at = words.get("at", a[-1] if a else None)
        if isinstance(at, float) and inner.time is not None and at > inner.time + 86_400:
            return True
        return inner.add(key, *a, **words)

    return {"add": add}


def times_shifted() -> Changes:
    """The times of a batch are one row off."""

    def add_many(inner: Any, keys: Any, given: Any = None, at: Any = None, **words: Any) -> Any:
        if isinstance(at, np.ndarray):
            at = np.roll(at, 1)
        return inner.add_many(keys, given, at, **words)

    return {"add_many": add_many}


def asks_later(verb: str, seconds: float) -> Changes:
    """A question is about a later time than asked."""

    def ask(inner: Any, key: Any, at: Any = None, **words: Any) -> Any:
        later = at + seconds if isinstance(at, float) else at
        return getattr(inner, verb)(key, later, **words)

    return {verb: ask}


def never_forgets() -> Changes:
    """What was ever added is remembered."""
    seen: set[Any] = set()

    def add_many(inner: Any, keys: Any, *a: Any, **words: Any) -> Any:
        taken = rows(keys) if not isinstance(keys, str) else keys
        found = inner.add_many(taken, *a, **words)
        seen.update(taken)
        return found

    def contains_many(inner: Any, keys: Any, *a: Any, **words: Any) -> Any:
        return inner.contains_many(keys, *a, **words) | np.array([key in seen for key in keys])

    return {"add_many": add_many, "contains_many": contains_many}


def list_is_not_told() -> Changes:
    return {"add": lambda inner, key, *a, **w: inner.filter.add(key, *a, **w)}


def feed_loses_a_line() -> Changes:
    due = every(40)
    return {"feed": lambda inner, data: inner.feed(data.partition(b"\n")[2] if due() else data)}
