"""Counts that fade: a filter, and a filter with a hot list, beside exact sums of all events.

An event of epoch e counts c * decay^(E - e) in a question about epoch E. The model keeps, for each
key, all its events; for each cell, the decayed sum of what was put there, which bounds every count
from above. `rounding="strict"` is never below the sum, `"expiring"` at most by unit / (1 - decay).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.oracle.streams import Key
from benchmarks.oracle.trial import Trial, Verb, same_key, sound
from bloomtide import TimeDecayingBloomFilter
from bloomtide.errors import BloomtideError, IncompatibleError, KeyTypeError, NullKeyError

HOUR, DAY = 3600.0, 86_400.0
NOT_LOW = "a count is never below the exact decayed sum"
NOT_HIGH = "a count is at most the decayed sum of its cells, and what rounding adds"
NOT_ABOVE = "`lower` is above the truth as rarely as `confidence` says"
TWINS = "optimized answers exactly as basic"
ASIDE = "an event that is set aside is part of every answer about its own time or a later one"


class Sums:
    """The events of one key: how many in each epoch."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}

    def add(self, epoch: int, count: int) -> None:
        self.counts[epoch] = self.counts.get(epoch, 0) + count

    def at(self, epoch: int, decay: float) -> float:
        return math.fsum(c * decay ** (epoch - e) for e, c in self.counts.items() if e <= epoch)


class DecayTrial(Trial):
    """`TimeDecayingBloomFilter` in every form."""

    structure = "TimeDecayingBloomFilter"
    wrong_clocks = False

    def __init__(self, *arguments: Any) -> None:
        self.words: dict[str, Any] = {}
        self.sums: dict[bytes | int, Sums] = {}
        self.spelling: dict[bytes | int, Key] = {}
        self.places: dict[bytes | int, list[int]] = {}
        self.cell_sums: dict[int, tuple[int, float]] = {}
        self.merged = False
        self.now = 0.0
        super().__init__(*arguments)
        self.epoch: float = sound(self.made).epoch
        self.decay: float = sound(self.made).decay
        self.unit = 2.0 ** -self.words["fraction_bits"]
        self.twin = self.make_twin()

    def make(self) -> Any:
        if not self.words:
            self.words = self.draw_words()
        return TimeDecayingBloomFilter(**self.words, clock=self.clock)

    def make_twin(self) -> Any:
        """The same in the other storage."""
        other = {"basic": "optimized", "optimized": "basic"}[self.words["storage"]]
        return TimeDecayingBloomFilter(**{**self.words, "storage": other}, clock=self.clock)

    def clock(self) -> float:
        return self.now

    def draw_words(self) -> dict[str, Any]:
        fade: list[dict[str, Any]] = [
            {"half_life": "1h"},
            {"half_life": 600.0, "epoch": 300.0},
            {"half_life": "2h", "epoch": 60},
            {"decay": 0.9, "epoch": "5m"},
            {"decay": 0.5, "epoch": 1800.0, "origin": 1e9 + 7},
        ]
        words = fade[int(self.draw.integers(len(fade)))]
        bits = int(self.draw.choice([16, 32, 32]))
        words |= {
            "storage": str(self.draw.choice(["basic", "optimized"])),
            "rounding": str(self.draw.choice(["strict", "strict", "expiring"])),
            "policy": str(self.draw.choice(["plain", "plain", "conservative"])),
            "counter_bits": bits,
            "fraction_bits": int(self.draw.choice([3, 8] if bits == 16 else [3, 8, 12])),
            "layout": [None, "blocked", "classic"][int(self.draw.integers(3))],
        }
        if not self.wrong_clocks:
            words["max_jump"] = math.inf
        if self.draw.random() < 0.3:
            return words | {"cells": 1280, "hashes": 4}
        return words | {"capacity": int(self.draw.choice([300, 5000])), "error_rate": 0.01}

    # --- the model

    def number(self, at: float) -> int:
        """The epoch of an instant."""
        return math.floor((at - float(sound(self.made).origin)) / self.epoch)

    def put(self, key: Key, count: int, at: float) -> bool:
        """An event; whether the key was in."""
        same, epoch = same_key(key), self.number(at)
        known = same in self.sums
        if not known:
            self.sums[same] = Sums()
        elif self.wrong_clocks:
            # What is set aside has not happened yet.
            time = self.made.time
            now = min(epoch, epoch if time is None else self.number(time + self.epoch / 2))
            known = min(self.sums[same].counts) <= now
        self.sums[same].add(epoch, count)
        self.spelling[same] = key
        if same not in self.places:
            self.places[same] = sound(self.made).positions(key)
        for place in self.places[same]:
            old, value = self.cell_sums.get(place, (epoch, 0.0))
            new = max(old, epoch)
            value = value * self.decay ** (new - old) + count * self.decay ** (new - epoch)
            # A late event is rounded up once, by a unit.
            self.cell_sums[place] = (new, value + self.unit * (epoch < new))
        return known

    def cell_bound(self, key: Key, epoch: int) -> float:
        """The most that the key's smallest cell may hold."""
        places = self.places.get(same_key(key)) or sound(self.made).positions(key)
        return min(
            value * math.pow(self.decay, epoch - at)
            for at, value in (self.cell_sums.get(place, (epoch, 0.0)) for place in places)
        )

    def slack(self) -> float:
        """What rounding adds at most, or takes."""
        return float(self.unit / (1 - self.decay) + self.unit)

    # --- verbs

    def verbs(self) -> dict[Verb, float]:
        return {
            self.add_one: 4, self.add_batch: 4, self.add_at_now: 0.5, self.bad_batch: 1,
            self.use_wrongly: 0.1, self.restore: 1, self.merge: 0.4, self.clear: 0.02,
            self.advance: 0.3, self.jump: 0.1,
        }  # fmt: skip

    def rows(self, most: int) -> tuple[list[Key], list[int], list[float]]:
        """Events in about the order of their times; some are late."""
        keys, times = self.next_rows(most)
        counts, _ = self.weights(len(keys))
        late = self.draw.random(len(times)) < 0.1
        ages = self.draw.exponential(3 * self.epoch, len(times)) * late
        instants = (np.array(times) + self.shift - ages).round(3).tolist()
        self.now = max(self.now, max(instants))
        return keys, counts, instants

    shift = 0.0

    def each(self) -> list[Any]:
        return [self.made, self.twin]

    def add_one(self) -> None:
        keys, counts, times = self.rows(5)
        for key, count, at in zip(keys, counts, times, strict=True):
            known = self.put(key, count, at)
            new = self.made.add(key, count, at)
            self.holds(self.twin.add(key, count, at) == new, TWINS, key)
            if self.words["rounding"] == "strict":
                self.holds(not (new and known), "True only if it was certainly absent before", key)

    def add_batch(self) -> None:
        keys, counts, times = self.rows(int(self.draw.choice([20, 800])))
        if self.draw.random() < 0.3:
            times = [max(times)] * len(times)
        given: Any = np.array(times) if self.draw.random() < 0.5 else times
        known = [self.put(*row) for row in zip(keys, counts, times, strict=True)]
        form = list(keys) if self.draw.random() < 0.5 else self.form(keys)
        new = self.made.add_many(form, counts, given, threads=self.threads()).tolist()
        self.holds(self.twin.add_many(keys, counts, given).tolist() == new, TWINS)
        if self.words["rounding"] == "strict":
            wrong = [key for key, n, k in zip(keys, new, known, strict=True) if n and k]
            self.holds(not wrong, "True only if it was certainly absent before", wrong[:3])

    def add_at_now(self) -> None:
        """Without `at` an event happens now, by the clock."""
        keys, times = self.next_rows(5)
        self.now = max(self.now, times[-1] + self.shift)
        for key in keys:
            self.put(key, 1, self.now)
            for made in self.each():
                made.add(key)

    def jump(self) -> None:
        """Silence for a while."""
        self.done += 1
        self.shift += float(self.draw.choice([HOUR, 10 * HOUR, 3 * DAY]))

    def advance(self) -> None:
        self.done += 1
        for made in self.each():
            made.advance(self.now)

    def merge(self) -> None:
        """Counts added, at the later of both times."""
        self.merged = True
        keys, counts, times = self.rows(100)
        for number, made in enumerate(self.each()):
            other = self.make() if number == 0 else self.make_twin()
            other.add_many(keys, counts, times)
            before = max(t for t in (made.time, other.time) if t is not None)
            made.merge(other)
            self.holds(made.time == before, "a merge is at the later of both times", made.time)
        for row in zip(keys, counts, times, strict=True):
            self.put(*row)
        wrong = TimeDecayingBloomFilter(**{**self.words, "seed": 99}, clock=self.clock)
        self.refused(lambda: self.made.merge(wrong), IncompatibleError)

    def bad_batch(self) -> None:
        keys, counts, times = self.rows(20)
        wrong_times: list[Any] = [
            times[:-1],
            [*times[:-1], math.nan],
            [*times[:-1], "yesterday"],
            "noon",
        ]
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
        self.twin.add_many(keys[:row], counts[:row], times[:row])
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
        for count in (0, -1, 1.5, "1", None):
            self.refused(lambda count=count: self.made.add("a", count, at=self.now))  # type: ignore[misc]
        wrong_instants: list[Any] = [math.nan, math.inf, "soon", []]
        for at in wrong_instants:
            self.refused(lambda at=at: self.made.add("a", at=at))  # type: ignore[misc]
            self.refused(lambda at=at: self.made.count("a", at=at))  # type: ignore[misc]

    def clear(self) -> None:
        self.done += 1
        for made in self.each():
            made.clear()
            self.holds(made.time is None, "clear forgets the time")
            self.holds(not made.cells(self.now).any(), "clear forgets every key")
        self.sums.clear()
        self.spelling.clear()
        self.cell_sums.clear()

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

    def compare(self) -> None:
        for made in self.each():
            made.validate()
        time = self.made.time
        if time is None:
            return
        self.holds(self.twin.time == time, TWINS, self.twin.time, time)
        if not self.wrong_clocks and self.sums:
            latest = max(max(sums.counts) for sums in self.sums.values())
            self.holds(
                self.number(time + self.epoch / 2) >= latest, "a later event moves the time on"
            )
        for later in (0.0, self.epoch, 20 * self.epoch, 400 * self.epoch):
            self.compare_at(time + later + self.epoch / 2)
        self.compare_rates(time + self.epoch / 2)
        plan = TimeDecayingBloomFilter.plan(**self.words)
        if plan.capacity is not None and len(self.sums) <= plan.capacity and not self.merged:
            found = sound(self.made).stats(time).bytes
            self.holds(found <= plan.bytes_at_most, "`bytes_at_most` is what no stream exceeds",
                       found, plan.bytes_at_most)  # fmt: skip

    def compare_at(self, at: float) -> None:
        epoch, strict = self.number(at), self.words["rounding"] == "strict"
        known = [self.spelling[same] for same in self.some(list(self.sums), 250)]
        counts = self.made.count_many(known, at, threads=self.threads())
        self.holds((self.twin.count_many(known, at) == counts).all(), TWINS)
        over = 0
        for key, count in zip(known, counts.tolist(), strict=True):
            true = self.sums[same_key(key)].at(epoch, self.decay)
            margin = 1e-9 * max(true, 1.0) + (0.0 if strict else self.slack())
            if count < true - margin:
                flagged = self.made.estimate(key, at=at)
                self.holds(flagged.saturated, NOT_LOW, key, count, true, at)
            else:
                self.holds(True, NOT_LOW)
            over += count > true + self.slack() + self.unit * 2
            if not self.wrong_clocks:
                most = self.cell_bound(key, epoch) * (1 + 1e-9) + self.slack()
                self.holds(count <= most, NOT_HIGH, key, count, most, true)
        if "capacity" in self.words and len(self.sums) < self.words["capacity"]:
            # Late events of a key round up once each, so only the share far above counts.
            self.spread_of_wrong(known, counts, epoch)
        for key in known[:12]:
            self.bounds(key, at, epoch)
        lower = [(self.made.estimate(key, at=at).lower or 0.0, key) for key in known[:40]]
        high = sum(
            low > self.sums[same_key(key)].at(epoch, self.decay) * (1 + 1e-9) for low, key in lower
        )
        self.not_more_wrong(len(lower), high, 2 * (1 - 0.95), NOT_ABOVE)

    def spread_of_wrong(self, known: list[Key], counts: Any, epoch: int) -> None:
        """At the capacity, counts are too high for the share of keys that `error_rate` allows."""
        wrong = sum(
            count > self.sums[same_key(key)].at(epoch, self.decay) * (1 + 1e-9) + self.slack()
            + self.unit * sum(self.sums[same_key(key)].counts.values())
            for key, count in zip(known, counts.tolist(), strict=True)
        )  # fmt: skip
        self.not_more_wrong(
            len(known),
            wrong,
            1.5 * self.words["error_rate"],
            "counts are too large for the share of keys that error_rate allows",
        )

    def bounds(self, key: Key, at: float, epoch: int) -> None:
        true = self.sums[same_key(key)].at(epoch, self.decay)
        found = self.made.estimate(key, at=at)
        self.holds(found.upper is None or found.upper >= true * (1 - 1e-9),
                   "the true count is certainly at most `upper`", key, found, true)  # fmt: skip
        self.holds(found.value == self.made.count(key, at), "`value` is what `count` returns", key)
        self.holds(
            (found.upper is None) == found.saturated, "`upper` is None when `saturated`", key
        )
        there = bool(self.made.contains_many([key], at)[0])
        self.holds(there == (found.value > 0), "a key is in while it has a count", key, found)
        if self.words["rounding"] == "strict" and true > 0:
            self.holds(there, "under strict rounding a key stays present", key)

    def compare_rates(self, at: float) -> None:
        keys = [self.spelling[same] for same in self.some(list(self.sums), 20)]
        if not keys:
            return
        counts = self.made.count_many(keys, at)
        rates = self.made.rate_many(keys, "1h", at)
        must = counts * (1 - self.decay) * HOUR / self.epoch
        self.holds(np.allclose(rates, must, rtol=1e-9, atol=0),
                   "rate is (1 - lambda) times the count for each epoch", rates, must)  # fmt: skip
        self.holds(self.made.rate(keys[0], "1h", at) == rates[0], "rate_many answers as rate")
        stats = self.made.stats(at)
        for key in self.absent(20):
            places = sound(self.made).positions(key)
            none = min(self.cell_sums.get(place, (0, 0.0))[1] for place in places) == 0
            if none and not self.wrong_clocks:
                self.holds(self.made.count(key, at) == 0, "a key with an empty cell counts 0", key)
        self.holds(stats.kind == "tbf", "stats() names its kind", stats.kind)


class WrongClockTrial(DecayTrial):
    """Times that are wrong by days: nothing is lost, and one of them moves nothing."""

    structure = "TimeDecayingBloomFilter, wrong clocks"

    def clock(self) -> float:
        return self.now + 1000 * DAY

    def verbs(self) -> dict[Verb, float]:
        verbs = super().verbs()
        for verb in (self.add_at_now, self.advance, self.use_wrongly):
            del verbs[verb]
        return verbs | {self.add_ahead: 1, self.add_impossible: 0.3}

    wrong_clocks = True

    def draw_words(self) -> dict[str, Any]:
        # No counter may be full: what is set aside goes in later, and the flags with it.
        return super().draw_words() | {"rounding": "strict", "counter_bits": 32}

    votes = 99

    def rows(self, most: int) -> tuple[list[Key], list[int], list[float]]:
        """An event near the stream's time takes a vote back; one far ahead is a vote itself."""
        keys, counts, times = super().rows(most)
        far = 2 * max(math.log(0.5) / math.log(self.decay) * self.epoch, self.epoch)
        time = self.made.time
        if time is None or max(times) > time + far:
            self.votes = 99
        else:
            self.votes = max(0, self.votes - sum(at > time - far for at in times))
        return keys, counts, times

    def add_ahead(self) -> None:
        """A clock some days ahead: the event counts at its own time."""
        if self.made.stats(self.now).aside > 900 or len(self.sums) < 20:
            return
        [key], [at] = self.next_rows(1)
        before = self.made.time
        far = (self.made.time or at) + float(self.draw.choice([2 * DAY, 30 * DAY, 500 * DAY]))
        far = min(far, self.clock() - DAY)
        self.put(key, 3, far)
        for made in self.each():
            made.add(key, 3, at=far)
        # Three votes say what "now" means.
        if self.votes < 2:
            self.holds(self.made.time == before, "one event far ahead moves nothing", before,
                       self.made.time)  # fmt: skip
        self.votes += 1
        count = self.made.count(key, far)
        true = self.sums[same_key(key)].at(self.number(far), self.decay)
        self.holds(count >= true - 1e-9 * true, ASIDE, key, count, true, far, self.made.time)

    def add_impossible(self) -> None:
        """Later than the clock by more than a day: it counts as of the clock."""
        [key], _ = self.next_rows(1)
        told = self.made.stats(self.made.time).ahead if self.made.time else 0
        self.votes += 1
        self.put(key, 1, self.clock())
        for made in self.each():
            made.add(key, 1, at=self.clock() + 3 * DAY)
        if self.made.time is not None:
            self.holds(self.made.stats(self.made.time).ahead >= told, "`ahead` counts it")
            true = self.sums[same_key(key)].at(self.number(self.clock()), self.decay)
            self.holds(self.made.count(key, self.clock()) >= true * (1 - 1e-9), NOT_LOW, key)

    def clear(self) -> None:
        if self.made.time is not None:
            super().clear()

    def merge(self) -> None:
        self.merged = True
        keys, counts, times = self.rows(100)
        for number, made in enumerate(self.each()):
            other = self.make() if number == 0 else self.make_twin()
            other.add_many(keys, counts, times)
            made.merge(other)
        for row in zip(keys, counts, times, strict=True):
            self.put(*row)
