"""Filters that count: every counter of the model is known, from `positions(key)` and the pages.

An add raises all counters of a key, or under `"conservative"` those below its new count; a removal
lowers all of them or none; a full counter of a `CountingBloomFilter` never moves again.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.oracle.streams import Key
from benchmarks.oracle.trial import Trial, Verb, same_key, sound
from bloomtide import (
    CountingBloomFilter,
)
from bloomtide.errors import (
    AbsentKeyError,
    IncompatibleError,
    KeyTypeError,
    NullKeyError,
    UnsupportedError,
)

NOT_LOW = "count is at least the true count"
SMALLEST = "a key's count is the smallest of its counters"
CERTAIN = "add is True only if the key was certainly absent before"
ALL_OR_NONE = "remove takes a key out of all of its counters or of none"
STUCK = "`saturated`: the smallest counter is stuck"
STOPS = "remove_many stops at the first key that cannot be removed, and `added` says how many were"


class CountTrial(Trial):
    """What all filters that count are asked."""

    widest: int
    """The value at which a counter sticks."""

    def __init__(self, *arguments: Any) -> None:
        self.truth: dict[bytes | int, int] = {}
        self.spelling: dict[bytes | int, Key] = {}
        self.places: dict[bytes | int, list[int]] = {}
        self.words: dict[str, Any] = {}
        self.occurrences = 0
        self.only_added = True
        super().__init__(*arguments)
        self.cells = [0] * sound(self.made).stats().cells

    @property
    def plain(self) -> bool:
        return bool(self.words["policy"] == "plain")

    def words_of_all(self) -> dict[str, Any]:
        """Parameters that all of them take."""
        words: dict[str, Any] = {
            "policy": str(self.draw.choice(["plain", "plain", "conservative"]))
        }
        if self.draw.random() < 0.5:
            words |= {"cells": 128 * int(self.draw.choice([1, 20, 300])),
                      "hashes": int(self.draw.choice([1, 2, 4, 8]))}  # fmt: skip
            words["layout"] = str(self.draw.choice(["blocked", "classic"]))
        else:
            words |= {"capacity": int(self.draw.choice([100, 2000, 8000])),
                      "error_rate": float(self.draw.choice([0.1, 0.01, 1e-3]))}  # fmt: skip
            words["layout"] = [None, "blocked", "classic"][int(self.draw.integers(3))]
        words["seed"] = int(self.draw.integers(3))
        return words

    # --- the model

    def at(self, key: Key) -> list[int]:
        """The counters of a key."""
        same = same_key(key)
        if same not in self.places:
            self.places[same] = sound(self.made).positions(key)
        return self.places[same]

    def value(self, key: Key) -> int:
        """What the count must be."""
        cells = self.cells
        return min(cells[place] for place in self.at(key))

    def put(self, key: Key, count: int = 1) -> bool:
        """Adds to the model; what `add` must answer."""
        same, cells, widest = same_key(key), self.cells, self.widest
        self.truth[same] = self.truth.get(same, 0) + count
        self.occurrences += count
        self.spelling[same] = key
        places = self.at(key)
        least = min(cells[place] for place in places)
        for place in places:
            raised = cells[place] + count if self.plain else max(cells[place], least + count)
            cells[place] = min(raised, widest)
        return least == 0

    def can_take(self, key: Key, count: int) -> bool:
        """Whether no counter shows that the key was not there so often."""
        return all(self.cells[p] >= count or self.cells[p] == self.widest for p in self.at(key))

    def take(self, key: Key, count: int) -> None:
        """Removes from the model."""
        self.only_added = False
        same = same_key(key)
        for place in self.at(key):
            if self.cells[place] != self.widest:
                self.cells[place] -= count
        self.truth[same] = self.truth.get(same, 0) - count
        if self.truth[same] <= 0:
            del self.truth[same], self.spelling[same]

    def answered(self, key: Key, new: Any, must: bool, known: bool) -> None:
        """The answer of an add."""
        self.holds(not (new and known), CERTAIN, key)
        self.holds(bool(new) == must, CERTAIN, key, bool(new), must)

    # --- verbs

    def verbs(self) -> dict[Verb, float]:
        verbs: dict[Verb, float] = {
            self.add_one: 4, self.add_batch: 4, self.add_weights: 3, self.add_mapping: 0.5,
            self.add_by_threads: 0.3, self.bad_batch: 1, self.use_wrongly: 0.1,
            self.restore: 1, self.merge: 0.5, self.clear: 0.03,
        }  # fmt: skip
        if self.plain:
            verbs |= {self.remove_one: 3, self.remove_batch: 2, self.remove_too_many: 1}
        else:
            verbs |= {self.remove_is_refused: 0.1}
        return verbs

    def add_one(self) -> None:
        for key in self.next_rows(8)[0]:
            count = 1 if self.draw.random() < 0.7 else int(self.draw.integers(1, 40))
            known = self.truth.get(same_key(key), 0) > 0
            must = self.put(key, count)
            self.answered(key, self.made.add(key, count), must, known)
            self.check_count(key, self.made.count(key))

    def check_count(self, key: Key, count: int) -> None:
        """One count."""
        same = same_key(key)
        self.holds(count == self.value(key), SMALLEST, key, count, self.value(key))
        if count < self.truth.get(same, 0):
            self.holds(self.made.estimate(key).saturated, NOT_LOW, key, count, self.truth[same])
        else:
            self.holds(True, NOT_LOW)

    def add_batch(self) -> None:
        keys = self.next_rows(int(self.draw.choice([30, 2000])))[0]
        self.check_batch(keys, [1] * len(keys),
                         self.made.add_many(self.form(keys), threads=self.threads()))  # fmt: skip

    def add_weights(self) -> None:
        keys = self.next_rows(int(self.draw.choice([30, 500])))[0]
        counts, given = self.weights(len(keys))
        answers = self.made.add_many(list(keys), given, threads=self.threads())
        self.check_batch(keys, counts, answers)

    def add_mapping(self) -> None:
        keys = list({same_key(key): key for key in self.next_rows(40)[0]}.values())
        counts, _ = self.weights(len(keys))
        given: Any = dict(zip(keys, counts, strict=True))
        if all(isinstance(key, str) for key in keys) and self.draw.random() < 0.5:
            given = pa.table({"key": keys, "count": counts})
        self.check_batch(keys, counts, self.made.add_many(given))

    def check_batch(self, keys: list[Key], counts: list[int], answers: Any) -> None:
        self.holds(len(answers) == len(keys), "one answer for each key")
        for key, count, new in zip(keys, counts, answers.tolist(), strict=True):
            known = self.truth.get(same_key(key), 0) > 0
            must = self.put(key, count)
            self.answered(key, new, must, known)

    def add_by_threads(self) -> None:
        parts = [self.next_rows(100)[0] for _ in range(4)]
        if not self.plain:
            for part in parts:
                self.check_batch(part, [1] * len(part), self.made.add_many(part))
            return
        workers = [threading.Thread(target=self.made.add_many, args=(part,)) for part in parts]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for part in parts:
            for key in part:
                self.put(key)

    def remove_one(self) -> None:
        for same in self.some(list(self.truth), 5):
            key = self.spelling[same]
            most = min(self.truth[same], self.value(key), 2**62)
            count = int(self.draw.integers(1, most + 1)) if self.draw.random() < 0.5 else most
            self.done += 1
            self.made.remove(key, count)
            self.take(key, count)
            self.check_count(key, self.made.count(key))

    def remove_batch(self) -> None:
        """Removes some that are there; in the end perhaps one that is not."""
        chosen = self.some(list(self.truth), 40)
        keys: list[Key] = [self.spelling[same] for same in chosen]
        mosts = [min(self.truth[same], 2**62) for same in chosen]
        counts = [int(self.draw.integers(1, most + 1)) for most in mosts]
        if not all(self.can_take(key, count) for key, count in zip(keys, counts, strict=True)):
            return
        self.done += len(keys)
        absent = self.absent(1)[0]
        if self.draw.random() < 0.5 or self.can_take(absent, 1):
            self.made.remove_many(self.form(keys), counts)
        else:
            given = [*keys, absent, *keys[:3]]
            error: Any = self.refusal(
                lambda: self.made.remove_many(given, [*counts, 1, 1, 1, 1][: len(given)]),
                AbsentKeyError,
            )
            self.holds(error.added == len(keys), STOPS, error.added, len(keys))
        for key, count in zip(keys, counts, strict=True):
            self.take(key, count)

    def remove_too_many(self) -> None:
        self.done += 1
        keys = [*self.absent(2), *(self.spelling[s] for s in self.some(list(self.truth), 2))]
        for key in keys:
            count = self.value(key) + 1
            if self.can_take(key, count):
                continue
            error: Any = self.refused(lambda k=key, c=count: self.made.remove(k, c), AbsentKeyError)  # type: ignore[misc]
            self.holds((error.estimate, error.requested) == (count - 1, count), ALL_OR_NONE, error)

    def remove_is_refused(self) -> None:
        self.done += 1
        self.refused(lambda: self.made.remove("a"), UnsupportedError)

    def bad_batch(self) -> None:
        """A bad key ends a batch where it is; bad weights change nothing."""
        keys: list[Any] = list(self.next_rows(20)[0])
        row = int(self.draw.integers(len(keys)))
        bad = list(self.bad_keys())
        wrong = bad[int(self.draw.integers(len(bad)))]
        counts, _ = self.weights(len(keys))
        given = [*keys[:row], wrong, *keys[row + 1 :]]
        kinds = (KeyTypeError, NullKeyError)
        error: Any = self.refusal(lambda: self.made.add_many(given, counts), *kinds)
        self.holds(
            (error.index, error.added) == (row, row),
            "the keys before a bad one went in, and `added` says how many",
            row,
            error,
        )
        for key, count in zip(keys[:row], counts, strict=False):
            self.put(key, count)
        for weights in (counts[:-1], [*counts, 1], [*counts[:-1], 0], [*counts[:-1], -1],
                        [*counts[:-1], 1.5], np.array([1.0] * len(keys))):  # fmt: skip
            self.refused(lambda w=weights: self.made.add_many(keys, w))  # type: ignore[misc]

    def use_wrongly(self) -> None:
        self.done += 1
        for key in self.bad_keys():
            self.refused(lambda key=key: self.made.add(key), KeyTypeError, NullKeyError)  # type: ignore[misc]
            self.refused(lambda key=key: self.made.count(key), KeyTypeError, NullKeyError)  # type: ignore[misc]
        for count in (0, -1, 1.5, "1", True, None):
            self.refused(lambda count=count: self.made.add("a", count))  # type: ignore[misc]
        for confidence in (0, 1, -1, 2, math.nan):
            self.refused(lambda c=confidence: self.made.estimate("a", confidence=c))  # type: ignore[misc]
        self.refused(lambda: self.made.add_many("text"))

    def merge(self) -> None:
        """Counters add up, under both policies."""
        self.only_added = False
        other = self.make()
        keys = self.next_rows(200)[0]
        counts, _ = self.weights(len(keys))
        other.add_many(list(keys), counts)
        cells = other.cells().tolist()
        how = int(self.draw.integers(3))
        if how == 0:
            self.made.merge(other)
        elif how == 1:
            self.made |= other
        else:
            before = sound(self.made).copy()
            both = before | other
            self.made.merge(other)
            self.holds(both == sound(self.made), "`a | b` is `a.merge(b)` of a copy")
        for key, count in zip(keys, counts, strict=True):
            same = same_key(key)
            self.truth[same] = self.truth.get(same, 0) + count
            self.spelling[same] = key
        self.cells = [min(a + b, self.widest) for a, b in zip(self.cells, cells, strict=True)]
        wrong = type(sound(self.made))(**{**self.words, "seed": 9999})
        self.refused(lambda: self.made.merge(wrong), IncompatibleError)

    def clear(self) -> None:
        self.done += 1
        self.made.clear()
        self.truth.clear()
        self.spelling.clear()
        self.cells = [0] * len(self.cells)
        self.holds(not sound(self.made).cells().any(), "clear forgets every key")

    # --- comparison

    def compare(self) -> None:
        self.made.validate()
        known = [self.spelling[same] for same in self.some(list(self.truth), 1500)]
        counts = self.made.count_many(self.form(known), threads=self.threads()).tolist()
        for key, count in zip(known, counts, strict=True):
            self.check_count(key, count)
        self.holds(self.made.contains_many(known).all(), "a key that is in is never absent")
        for key in known[:20]:
            self.holds(key in self.made, "a key that is in is never absent", key)
            self.holds(self.made.count(key) == self.made.count_many([key])[0],
                       "count_many answers as count", key)  # fmt: skip
            self.bounds(key, self.truth[same_key(key)])
        self.compare_cells()
        self.compare_absent()
        self.compare_memory()

    def bounds(self, key: Key, true: int) -> None:
        """`estimate` of one key."""
        found = self.made.estimate(key)
        self.holds(found.upper is None or found.upper >= true,
                   "the true count is certainly at most `upper`", key, found, true)  # fmt: skip
        self.holds(found.saturated == (found.upper is None),
                   "`upper` is None when `saturated`", key, found)  # fmt: skip
        self.holds(found.lower <= found.value == self.made.count(key),
                   "`value` is what `count` returns", key, found)  # fmt: skip
        stuck = self.value(key) == self.widest
        self.holds(found.saturated == stuck, STUCK, key, found)

    def compare_cells(self) -> None:
        """Every counter."""
        model = np.array(self.cells, dtype=np.uint64)
        found = self.made.cells().astype(np.uint64)
        different = np.flatnonzero(model != found)[:5]
        self.holds(not len(different), "every counter is what the page says",
                   different, found[different], model[different])  # fmt: skip
        stats = self.made.stats()
        used = np.count_nonzero(model)
        self.holds(abs(stats.fill - used / len(model)) < 1e-12,
                   "`fill` is the share of cells that are not zero", stats.fill)  # fmt: skip
        if stats.hashes and self.made.layout == "classic" and used < len(model):
            items = -(len(model) / stats.hashes) * math.log1p(-stats.fill)
            self.holds(math.isclose(stats.items, items, rel_tol=1e-9, abs_tol=1e-9),
                       "`items` is n = -(m/k) ln(1 - s)", stats.items, items)  # fmt: skip

    def compare_memory(self) -> None:
        """What a plan says of it, while keys were only added, and as many as it is made for."""
        made = sound(self.made)
        plan = type(made).plan(**{n: w for n, w in self.words.items() if n != "seed"})
        total = plan.total if plan.total is not None else self.occurrences
        keys = plan.capacity if plan.capacity is not None else len(self.truth)
        if self.only_added and self.occurrences <= total and len(self.truth) <= keys:
            found = made.stats().bytes
            if plan.error_rate is not None:
                error = made.stats().predicted_error
                self.holds(error <= 1.1 * plan.error_rate, "the share of wrong counts is at most "
                           "the error rate", error)  # fmt: skip
            self.holds(found <= plan.bytes_at_most, "`bytes_at_most` is what no stream exceeds",
                       found, plan.bytes_at_most)  # fmt: skip

    def compare_absent(self) -> None:
        """Keys that were never added."""
        asked = self.absent(400)
        rate = self.made.stats().predicted_error
        counts = self.made.count_many(asked).tolist()
        for key, count in zip(asked, counts, strict=True):
            must = min(self.cells[place] for place in sound(self.made).positions(key))
            self.holds(count == must, SMALLEST, key, count, must)
        self.asked_absent += len(asked)
        self.expected_wrong += rate * len(asked)
        self.wrong += sum(count > 0 for count in counts)
        if "capacity" in self.words:
            self.not_more_wrong(
                self.asked_absent, self.wrong, self.expected_wrong / self.asked_absent,
                "an absent key is counted with the chance that stats() tells",
            )  # fmt: skip
        if max(self.cells) < self.widest:
            some = asked[:40]
            above = sum(self.made.estimate(key).lower > 0 for key in some)
            self.not_more_wrong(
                len(some),
                above,
                0.05,
                "the true count is at least `lower` with the given confidence",
            )


class CountingTrial(CountTrial):
    """`CountingBloomFilter` with counters of 4 to 32 bits."""

    structure = "CountingBloomFilter"

    def make(self) -> Any:
        if not self.words:
            bits = int(self.draw.choice([4, 8, 16, 32]))
            self.words = {**self.words_of_all(), "counter_bits": bits}
        self.widest = 2 ** self.words["counter_bits"] - 1
        return CountingBloomFilter(**self.words)

    def compare_cells(self) -> None:
        super().compare_cells()
        stuck = sum(cell == self.widest for cell in self.cells)
        self.holds(self.made.stats().saturated == stuck,
                   "stats().saturated is how many counters are stuck")  # fmt: skip
