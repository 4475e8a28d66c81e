"""`RecentFilter`: what was seen within a time, beside the times of every key.

A key seen at s is remembered in a question about t if |t - s| <= within, and forgotten if
s < t - within * (1 + 1 / generations); between them both answers are right.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.oracle.streams import Key
from benchmarks.oracle.trial import Trial, Verb, same_key, sound
from bloomtide import RecentFilter
from bloomtide.errors import BloomtideError, KeyTypeError, NullKeyError, ParameterError

DAY = 86_400.0
REMEMBERED = "a key is remembered for `within` of time after it was last added"
FORGOTTEN = "a key is forgotten at most one piece of time later"


class RecentTrial(Trial):
    """Events in about the order of their times, late ones, and long silences."""

    structure = "RecentFilter"

    def __init__(self, *arguments: Any) -> None:
        self.words: dict[str, Any] = {}
        self.seen: dict[bytes | int, list[float]] = {}
        self.spelling: dict[bytes | int, Key] = {}
        self.shift = 0.0
        self.now = 0.0
        self.latest = -math.inf
        super().__init__(*arguments)

    def make(self) -> Any:
        if not self.words:
            self.words = {
                "capacity": int(self.draw.choice([200, 5000])),
                "error_rate": float(self.draw.choice([0.01, 1e-3])),
                "within": float(self.draw.choice([3600.0, 6 * 3600.0, 7 * DAY])),
                "generations": int(self.draw.choice([1, 4, 8])),
                "lateness": float(self.draw.choice([0.0, 1800.0])),
            }
        self.within = self.words["within"]
        self.longest = self.within * (1 + 1 / self.words["generations"])
        return RecentFilter(**self.words, clock=self.clock)

    def clock(self) -> float:
        return self.now

    # --- the model

    def verdict(self, key: Key, at: float) -> bool | None:
        """Whether the key must be seen (True), must be forgotten (False), or may be either."""
        times = self.seen.get(same_key(key), ())
        latest = max(self.latest, at)
        kept = latest - self.within - self.words["lateness"]
        # What came more than `within` after the event may be taken for "after it" or not.
        if any(abs(at - s) <= self.within and s >= kept for s in times):
            return True
        if any(s >= at - self.longest for s in times):
            return None
        return False

    def put(self, key: Key, at: float) -> None:
        same = same_key(key)
        times = self.seen.setdefault(same, [])
        times.append(at)
        if len(times) > 40:
            times.sort()
            del times[:20]
        self.spelling[same] = key
        self.latest = max(self.latest, at)

    def expect(self, key: Key, at: float, new: Any, *, refresh: bool = True) -> None:
        must = self.verdict(key, at)
        if must is True:
            self.holds(not new, REMEMBERED, key, at, self.seen[same_key(key)][-4:])
        elif must is False:
            self.asked_absent += 1
            self.wrong += not new
        # What is older than all pieces that are kept is judged, but not kept.
        if (refresh or new) and at >= self.latest - self.within - self.words["lateness"]:
            self.put(key, at)
        self.latest = max(self.latest, at)

    # --- verbs

    def verbs(self) -> dict[Verb, float]:
        return {
            self.add_one: 4, self.add_batch: 4, self.add_without_refresh: 1, self.add_now: 1,
            self.bad_batch: 0.5, self.use_wrongly: 0.1, self.restore: 0.5, self.clear: 0.02,
            self.advance: 0.3, self.jump: 0.15, self.ask_changes_nothing: 0.3,
        }  # fmt: skip

    def rows(self, most: int) -> tuple[list[Key], list[float]]:
        """Rows that move the time on by less than is believed of one event."""
        keys, times = self.next_rows(most)
        late = self.draw.random(len(times)) < 0.1
        ages = self.draw.exponential(self.within / 6, len(times)) * late
        instants = (np.array(times) + self.shift - ages).round(3)
        # The clock is at the first event after a silence: two clocks agree.
        self.now = max(self.now, float(instants.max()))
        self.settle(float(instants[0]))
        return keys, instants.tolist()

    def settle(self, at: float) -> None:
        """The clock tells the filter the time."""
        if at > self.latest:
            clock, self.now = self.now, at
            self.made.advance(at)
            self.now, self.latest = clock, at

    def add_one(self) -> None:
        for key, at in zip(*self.rows(4), strict=True):
            self.settle(at)
            self.expect(key, at, self.made.add(key, at))

    def add_batch(self) -> None:
        keys, times = self.rows(int(self.draw.choice([20, 400])))
        if self.draw.random() < 0.5:
            times = [max(times)] * len(times)
            self.settle(times[0])
        far = self.within / self.words["generations"]
        ordered = np.maximum.accumulate([self.latest, *times])
        if (np.diff(ordered) > far).any():
            # A silence within the batch: row by row, with the clock.
            for key, at in zip(keys, times, strict=True):
                self.settle(at)
                self.expect(key, at, self.made.add(key, at))
            return
        given: Any = times[0] if len(set(times)) == 1 else np.array(times)
        form = list(keys) if self.draw.random() < 0.5 else self.form(keys)
        answers = self.made.add_many(form, given).tolist()
        for key, at, new in zip(keys, times, answers, strict=True):
            self.expect(key, at, new)

    def add_without_refresh(self) -> None:
        """A remembered key keeps the time of its first sight."""
        for key, at in zip(*self.rows(30), strict=True):
            self.settle(at)
            self.expect(key, at, self.made.add(key, at, refresh=False), refresh=False)

    def add_now(self) -> None:
        keys, times = self.rows(5)
        self.settle(max(times))
        for key in keys:
            self.expect(key, self.now, self.made.add(key))
            self.holds(key in self.made, REMEMBERED, key)

    def ask_changes_nothing(self) -> None:
        self.done += 1
        before = sound(self.made).to_bytes()
        keys = [*self.some(list(self.spelling.values()), 20), *self.absent(5)]
        self.made.contains_many(keys, max(self.latest, self.now))
        self.holds(sound(self.made).to_bytes() == before, "a question changes nothing")

    def jump(self) -> None:
        self.done += 1
        self.shift += float(self.draw.choice([0.2, 0.9, 1.5, 30.0])) * self.within

    def advance(self) -> None:
        self.done += 1
        self.made.advance()
        self.latest = max(self.latest, self.now)

    def bad_batch(self) -> None:
        keys, times = self.rows(15)
        row = int(self.draw.integers(len(keys)))
        for given, at in (
            ([*keys[:row], 3.5, *keys[row + 1 :]], np.array(times)),
            ([*keys[:row], None, *keys[row + 1 :]], max(times)),
            (keys, np.array([*times, 1.0])),
            (keys, [*times[:-1], math.nan]),
            (keys, "noon"),
            ("text", max(times)),
        ):
            self.refused(lambda g=given, a=at: self.made.add_many(g, a), BloomtideError, TypeError)  # type: ignore[misc]

    def use_wrongly(self) -> None:
        self.done += 1
        for key in self.bad_keys():
            self.refused(lambda key=key: self.made.add(key), KeyTypeError, NullKeyError)  # type: ignore[misc]
        for words in ({"within": 0}, {"within": -1}, {"generations": 0}, {"lateness": -1},
                      {"error_rate": 2}, {"capacity": 0}):  # fmt: skip
            self.refusal(lambda w=words: RecentFilter(**{**self.words, **w}), ParameterError)  # type: ignore[misc]

    def clear(self) -> None:
        self.done += 1
        time = self.made.time
        self.made.clear()
        self.holds(self.made.time == time, "clear keeps the time")
        self.seen.clear()
        self.spelling.clear()

    def ways(self) -> list[str]:
        return ["copy", "deep copy", "bytes", "file"]

    def equal(self, one: Any, other: Any) -> bool:
        return bool(one.to_bytes() == other.to_bytes())

    def reopened(self, data: bytes) -> Any:
        return RecentFilter.from_bytes(data, clock=self.clock)

    def loaded(self, path: Any) -> Any:
        return RecentFilter.load(path, clock=self.clock)

    def kept(self, after: Any, before: Any) -> Any:
        data = after.to_bytes()
        before.add("independent", self.latest)
        self.holds(after.to_bytes() == data, "a copy is independent of what it was made from")
        return after

    # --- comparison

    def compare(self) -> None:
        self.made.validate()
        if not self.seen:
            return
        time = self.made.time
        self.holds(time is not None and math.isclose(time, self.latest, abs_tol=1e-3),
                   "`time` is the latest instant that is believed", time, self.latest)  # fmt: skip
        known = self.some(list(self.spelling.values()), 300)
        for at in (self.latest, self.latest + 0.5 * self.within, self.latest + 3 * self.within):
            # A question about a later time reads fewer pieces.
            found = self.made.contains_many(known, at).tolist()
            for key, said in zip(known, found, strict=True):
                must = self.verdict_asked(key, at)
                if must is True:
                    self.holds(said, REMEMBERED, key, at, self.seen[same_key(key)][-4:])
                elif must is False:
                    self.asked_absent += 1
                    self.wrong += said
            for key in known[:5]:
                self.holds(self.made.contains(key, at) == found[known.index(key)],
                           "contains_many answers as contains", key)  # fmt: skip
        asked = self.absent(300)
        self.asked_absent += len(asked)
        self.wrong += int(self.made.contains_many(asked, self.latest).sum())
        rate = self.words["error_rate"] * 1.3
        self.not_more_wrong(self.asked_absent, self.wrong, rate, FORGOTTEN)

    def verdict_asked(self, key: Key, at: float) -> bool | None:
        times = self.seen.get(same_key(key), ())
        kept = self.latest - self.within - self.words["lateness"]
        if any(abs(at - s) <= self.within and s >= kept for s in times):
            return True
        return None if any(s >= at - self.longest for s in times) else False
