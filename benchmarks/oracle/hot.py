"""Lists of the hottest keys, alone and beside a filter: bounds against exact decayed sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.oracle.streams import Key
from benchmarks.oracle.trial import Trial, Verb, same_key, sound
from bloomtide import HotList, TimeDecayingBloomFilter
from bloomtide.errors import BloomtideError, IncompatibleError, KeyTypeError, NullKeyError

HOUR, DAY = 3600.0, 86_400.0
BOUNDS = "lower <= true decayed count <= count"
LISTED = "every key whose decayed count is above total() / k is listed"
EXACT = 1e-9
"""What the sums of the model may be off, as a share."""


class HotTrial(Trial):
    """`HotList`: with and without decay, continuous and in epochs."""

    structure = "HotList"
    block = 1500

    def __init__(self, *arguments: Any) -> None:
        self.words: dict[str, Any] = {}
        self.numbers: dict[bytes | int, int] = {}
        self.spelling: list[Key] = []
        self.events: list[tuple[int, float, float]] = []
        self.now = 0.0
        self.shift = 0.0
        self.first_times: list[float] = []
        super().__init__(*arguments)

    def make(self) -> Any:
        if not self.words:
            kinds: list[dict[str, Any]] = [
                {}, {"half_life": "1h"}, {"half_life": 60}, {"half_life": "1h", "epoch": "6m"},
                {"half_life": "10m", "epoch": 600, "origin": 12345.0},
            ]  # fmt: skip
            self.words = {"k": int(self.draw.choice([1, 5, 50, 2000])), "max_jump": math.inf,
                          **kinds[int(self.draw.integers(len(kinds)))]}  # fmt: skip
            if self.words.get("half_life") is None:
                del self.words["max_jump"]
        return HotList(**self.words, clock=self.clock)

    def clock(self) -> float:
        return self.now + 1000 * DAY

    # --- the model

    def put(self, key: Key, count: int, at: float) -> None:
        same = same_key(key)
        if same not in self.numbers:
            self.numbers[same] = len(self.spelling)
            self.spelling.append(key)
        self.events.append((self.numbers[same], float(count), at))

    def half_life(self) -> float | None:
        """Seconds, or None if nothing decays."""
        found: float | None = sound(self.made).half_life
        return found

    def steps(self, times: Any) -> Any:
        """Instants as counts see them: with an epoch, when it began."""
        epoch, origin = sound(self.made).epoch, sound(self.made).origin
        if epoch is None:
            return times
        return np.floor((times - (origin or 0.0)) / epoch) * epoch + (origin or 0.0)

    def truth(self, at: float) -> Any:
        """The decayed count of each key."""
        if not self.events:
            return np.zeros(0)
        numbers, counts, times = (np.array(column) for column in zip(*self.events, strict=True))
        half = self.half_life()
        if half is not None:
            ages = self.steps(np.array([at]))[0] - self.steps(times)
            counts = np.where(ages >= 0, counts * 2.0 ** (-np.maximum(ages, 0) / half), 0.0)
        return np.bincount(numbers, counts, len(self.spelling))

    # --- verbs

    def verbs(self) -> dict[Verb, float]:
        return {
            self.add_one: 4, self.add_batch: 4, self.bad_batch: 0.5, self.use_wrongly: 0.1,
            self.restore: 1, self.merge: 0.4, self.clear: 0.02, self.advance: 0.2, self.jump: 0.1,
        }  # fmt: skip

    def rows(self, most: int) -> tuple[list[Key], list[int], list[float]]:
        """Events in about the order of their times; some are late."""
        keys, times = self.next_rows(most)
        counts, _ = self.weights(len(keys))
        late = self.draw.random(len(times)) < 0.1
        ages = self.draw.exponential(2 * HOUR, len(times)) * late
        instants = (np.array(times) + self.shift - ages).round(3).tolist()
        self.now = max(self.now, max(instants))
        return keys, counts, instants

    def add_one(self) -> None:
        for row in zip(*self.rows(5), strict=True):
            self.made.add(*row)
            self.put(*row)

    def add_batch(self) -> None:
        keys, counts, times = self.rows(int(self.draw.choice([20, 1500])))
        self.made.add_many(self.form(keys), counts, np.array(times))
        for row in zip(keys, counts, times, strict=True):
            self.put(*row)

    def bad_batch(self) -> None:
        keys, counts, times = self.rows(20)
        wrong_times: list[Any] = [times[:-1], [*times[:-1], math.nan], "noon"]
        for at in wrong_times:
            self.refuse_batch(keys, counts, at)
        for weights in (counts[:-1], [*counts[:-1], 0], [*counts[:-1], 1.5]):
            self.refuse_batch(keys, weights, times)
        row = int(self.draw.integers(len(keys)))
        given = [*keys[:row], 3.5, *keys[row + 1 :]]
        error: Any = self.refusal(lambda: self.made.add_many(given, counts, times), KeyTypeError)
        self.holds(
            (error.index, error.added) == (row, row),
            "the keys before a bad one went in, and `added` says how many",
            row,
            error,
        )
        for event in zip(keys[:row], counts, times, strict=False):
            self.put(*event)

    def refuse_batch(self, keys: list[Key], counts: Any, at: Any) -> None:
        """A batch with a wrong column changes nothing."""
        self.refused(lambda: self.made.add_many(keys, counts, at), BloomtideError, TypeError)

    def use_wrongly(self) -> None:
        self.done += 1
        for key in self.bad_keys():
            self.refused(lambda key=key: self.made.add(key), KeyTypeError, NullKeyError)  # type: ignore[misc]
            self.refused(lambda key=key: self.made.count(key), KeyTypeError, NullKeyError)  # type: ignore[misc]
        for count in (0, -1, 1.5, "1", None, 2**64 - 1, 2**70):
            self.refused(lambda count=count: self.made.add("a", count, at=self.now))  # type: ignore[misc]
        wrong_instants: list[Any] = [math.nan, math.inf, "soon", []]
        for at in wrong_instants:
            self.refused(lambda at=at: self.made.add("a", at=at))  # type: ignore[misc]
        for number in (-1, 1.5, "a"):
            self.refused(lambda n=number: self.made.top(n))  # type: ignore[misc]

    def jump(self) -> None:
        self.done += 1
        self.shift += float(self.draw.choice([HOUR, 10 * HOUR, 30 * DAY]))

    def advance(self) -> None:
        self.done += 1
        self.made.advance(self.now)
        self.holds(
            (self.made.time or 0.0) >= self.steps(self.now),
            "the time is at least this",
            self.made.time,
        )

    def other(self) -> Any:
        """An empty one that can be merged."""
        return sound(self.make())

    def merge(self) -> None:
        keys, counts, times = self.rows(200)
        other = self.other()
        other.add_many(keys, counts, times)
        if self.draw.random() < 0.5 or not hasattr(sound(self.made), "__or__"):
            self.made.merge(other)
        else:
            before = sound(self.made).copy()
            both = before | other
            self.made.merge(other)
            self.holds(both == sound(self.made), "`a | b` is `a.merge(b)` of a copy")
        for row in zip(keys, counts, times, strict=True):
            self.put(*row)
        wrong = HotList(**{**self.words, "k": self.words["k"], "seed": 3}, clock=self.clock)
        self.refused(lambda: self.made.merge(wrong), IncompatibleError, TypeError, BloomtideError)

    def clear(self) -> None:
        self.done += 1
        self.made.clear()
        self.events.clear()
        self.numbers.clear()
        self.spelling.clear()
        self.holds(not len(self.listed(self.now)), "clear forgets every key")

    def reopened(self, data: bytes) -> Any:
        return type(sound(self.made)).from_bytes(data, clock=self.clock)

    def loaded(self, path: Any) -> Any:
        return type(sound(self.made)).load(path, clock=self.clock)

    def ways(self) -> list[str]:
        return ["copy", "deep copy", "bytes", "file"]

    def kept(self, after: Any, before: Any) -> Any:
        data = after.to_bytes()
        before.add("independent", at=self.now)
        self.holds(after.to_bytes() == data, "a copy is independent of what it was made from")
        return after

    # --- comparison

    def listed(self, at: float) -> list[Any]:
        found: list[Any] = self.made.top(at=at)
        return found

    def at_least(self) -> float | None:
        """The time of the list."""
        found: float | None = self.made.time
        return found

    def compare(self) -> None:
        self.validate()
        time = self.at_least()
        if time is None or not self.events:
            return
        for later in (0.0, HOUR, 40 * HOUR):
            self.compare_at(time + later)

    def validate(self) -> None:
        self.made.validate()
        self.holds(len(self.made) <= self.words["k"], "a list has at most k keys", len(self.made))
        self.holds(round(self.made.stats().items) == len(self.made), "stats() tells keys listed")

    def places(self) -> int:
        """How many keys the list has at most."""
        found: int = self.words["k"]
        return found

    def aside(self) -> int:
        """How many events are set aside."""
        found: int = self.made.stats().aside
        return found

    def total(self, at: float) -> float:
        found: float = self.made.total(at)
        return found

    def compare_at(self, at: float) -> None:
        truth = self.truth(at)
        total, items, k = self.total(at), self.listed(at), self.places()
        self.holds(math.isclose(total, truth.sum(), rel_tol=EXACT, abs_tol=1e-300),
                   "total() is the decayed count of all events", total, truth.sum())  # fmt: skip
        counts = [item.count for item in items]
        self.holds(counts == sorted(counts, reverse=True), "top() has the hottest keys first")
        # What is set aside is listed beside the k, at its own time or later.
        most = k + self.aside()
        self.holds(len(items) <= most, "a list has at most k keys", len(items), most)
        names = set()
        for item in items:
            number = self.numbers.get(same_key(item.key))
            self.holds(number is not None, "a listed key was added", item)
            true = truth[number]
            names.add(number)
            self.holds(
                item.lower <= true * (1 + EXACT) + 1e-300
                and true <= item.count * (1 + EXACT) + 1e-300,
                BOUNDS,
                item,
                true,
            )
            if total > 1e-200:
                self.holds(math.isclose(item.share, item.count / total, rel_tol=1e-6),
                           "`share` is count as a share of all events", item, total)  # fmt: skip
        self.holds(len(names) == len(items), "a key is listed once")
        hot = np.flatnonzero(truth > total / k * (1 + EXACT))
        self.holds(set(hot.tolist()) <= names, LISTED, at, hot[:5])
        smallest = counts[-1] if len(items) >= k else 0.0
        for number in self.draw.choice(len(truth), min(60, len(truth)), replace=False).tolist():
            key, true = self.spelling[number], truth[number]
            self.one_key(key, true, at)
            if number not in names:
                self.holds(
                    true <= smallest * (1 + EXACT),
                    "a key that is not listed has at most the smallest count in the list",
                    key,
                    true,
                    smallest,
                )
        some = int(self.draw.integers(1, 10))
        self.holds([i.key for i in self.made.top(some, at)] == [i.key for i in items[:some]],
                   "top(n) is the beginning of top()")  # fmt: skip

    def one_key(self, key: Key, true: float, at: float) -> None:
        found = self.made.estimate(key, at)
        self.holds(found.lower <= true * (1 + EXACT) + 1e-300
        and true <= found.upper * (1 + EXACT) + 1e-300,
                   BOUNDS, key, found, true)  # fmt: skip
        self.holds(self.made.count(key, at) >= true * (1 - EXACT), "count is at least the key's "
                   "decayed count", key, true)  # fmt: skip


class WrongClockHotTrial(HotTrial):
    """A clock some days ahead, now and then: all bounds hold at every time."""

    structure = "HotList, wrong clocks"

    def make(self) -> Any:
        if not self.words:
            super().make()
            self.words = {"half_life": "1h", **self.words}
            self.words.pop("max_jump", None)
        return HotList(**self.words, clock=self.clock)

    def verbs(self) -> dict[Verb, float]:
        return super().verbs() | {self.add_ahead: 1, self.use_wrongly: 0, self.advance: 0}

    def use_wrongly(self) -> None:
        return None

    def add_ahead(self) -> None:
        if self.made.stats().aside > 900 or len(self.events) < 20:
            return
        [key], [at] = self.next_rows(1)
        far = (self.made.time or at) + float(self.draw.choice([2 * DAY, 30 * DAY, 500 * DAY]))
        far = min(far, self.clock() - DAY)
        before, told = self.made.time, self.made.stats().aside
        self.made.add(key, 3, far)
        self.put(key, 3, far)
        if told == 0 and self.made.stats().aside == 1 and self.done > 100:
            self.holds(self.made.time == before, "one event far ahead moves nothing")
        number = self.numbers[same_key(key)]
        self.one_key(key, self.truth(far)[number], far)


class HotFilterTrial(HotTrial):
    """A filter and a list in step: counts by the filter, bounds by the list."""

    structure = "HotFilter"

    def make(self) -> Any:
        if not self.words:
            self.words = {
                "half_life": [600.0, "1h"][int(self.draw.integers(2))],
                "storage": str(self.draw.choice(["basic", "optimized"])),
                "max_jump": math.inf,
            }
            self.size = int(self.draw.choice([5, 60]))
        filter = TimeDecayingBloomFilter(3000, 0.001, **self.words, clock=self.clock)
        return filter.with_hot_list(self.size)

    def verbs(self) -> dict[Verb, float]:
        verbs = super().verbs()
        del verbs[self.use_wrongly], verbs[self.bad_batch]
        return verbs

    def half_life(self) -> float | None:
        found: float = sound(self.made).filter.half_life
        return found

    def steps(self, times: Any) -> Any:
        epoch = sound(self.made).filter.epoch
        return np.floor(times / epoch) * epoch

    def reopened(self, data: bytes) -> Any:
        return type(sound(self.made)).from_bytes(data)

    def loaded(self, path: Any) -> Any:
        return type(sound(self.made)).load(path)

    def ways(self) -> list[str]:
        return ["copy", "bytes", "file"]

    def advance(self) -> None:
        self.done += 1
        self.made.advance(self.now)

    def merge(self) -> None:
        keys, counts, times = self.rows(200)
        other = self.other()
        other.add_many(keys, counts, times)
        self.made.merge(other)
        for row in zip(keys, counts, times, strict=True):
            self.put(*row)

    def at_least(self) -> float | None:
        found: float | None = sound(self.made).hot.time
        return found

    def total(self, at: float) -> float:
        found: float = sound(self.made).hot.total(at)
        return found

    def validate(self) -> None:
        both = sound(self.made)
        both.filter.validate()
        both.hot.validate()
        self.holds(both.hot.k == self.size, "the list has k places", both.hot.k)
        self.holds(both.filter.time == self.steps(both.hot.time or 0.0) or both.hot.time is None,
                   "filter and list are in step", both.filter.time, both.hot.time)  # fmt: skip

    def places(self) -> int:
        return self.size

    def aside(self) -> int:
        return 0
