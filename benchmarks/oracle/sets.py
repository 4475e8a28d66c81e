"""Filters that say whether a key was seen: in memory, in a shared file, and growing.

The model of a `BloomFilter` is the set of its bits, from `positions(key)`: every answer is known.
That of a `ScalableBloomFilter` is the set of its keys and the number of those it called new.
"""

from __future__ import annotations

import math
import threading
from typing import Any

from benchmarks.oracle.streams import Key
from benchmarks.oracle.trial import Trial, Verb, same_key, sound
from bloomtide import BloomFilter, ScalableBloomFilter
from bloomtide.errors import IncompatibleError, KeyTypeError, NullKeyError, ReadOnlyError

NO_LOSS = "a key that was added is never called new"
CERTAIN = "add is True only if the key was certainly absent before"
IN_ORDER = "a batch answers as adding one by one, in order"
RATE = "an absent key is called seen with the chance that stats() tells"
BEFORE_BAD = "the keys before a bad one went in, and `added` says how many"
SAME_FILTER = "merge makes exactly the filter of both key sets"


class SeenTrial(Trial):
    """What both filters are asked alike."""

    def __init__(self, *arguments: Any) -> None:
        self.keys: dict[bytes | int, Key] = {}
        super().__init__(*arguments)

    def predict(self, key: Key) -> bool | None:
        """Whether the filter must say "seen", if that is known; after that the key is in."""
        raise NotImplementedError

    def expect(self, key: Key, new: Any) -> None:
        """The answer of an `add` is right."""
        known = same_key(key) in self.keys
        self.holds(not (known and new), CERTAIN, key)
        predicted = self.predict(key)
        if predicted is not None:
            self.holds(bool(new) == (not predicted), IN_ORDER, key, bool(new), predicted)
        self.keys[same_key(key)] = key

    def add_one(self) -> None:
        for key in self.next_rows(8)[0]:
            self.expect(key, self.made.add(key))
            self.holds(key in self.made, NO_LOSS, key)

    def add_batch(self) -> None:
        keys = self.next_rows(int(self.draw.choice([30, 300, 3000])))[0]
        answers = self.made.add_many(self.form(keys), threads=self.threads())
        self.holds(len(answers) == len(keys), "one answer for each key")
        for key, new in zip(keys, answers.tolist(), strict=True):
            self.expect(key, new)

    def add_with_nulls(self) -> None:
        keys: list[Any] = list(self.next_rows(30)[0])
        row = int(self.draw.integers(len(keys) + 1))
        keys.insert(row, None)
        answers = self.made.add_many(keys, nulls="skip").tolist()
        self.holds(answers.pop(row) is False, "a skipped row answers False")
        del keys[row]
        for key, new in zip(keys, answers, strict=True):
            self.expect(key, new)

    def add_with_a_bad_key(self) -> None:
        keys: list[Any] = list(self.next_rows(30)[0])
        bad = list(self.bad_keys())
        row = int(self.draw.integers(len(keys) + 1))
        wrong = bad[int(self.draw.integers(len(bad)))]
        twin = sound(self.made).copy()
        given = [*keys[:row], wrong, *keys[row:]]
        kinds = (NullKeyError,) if wrong is None else (KeyTypeError,)
        error: Any = self.refusal(lambda: self.made.add_many(given), *kinds)
        self.holds((error.index, error.added) == (row, row), BEFORE_BAD, row, error)
        twin.add_many(keys[:row])
        self.holds(twin == self.copied(), BEFORE_BAD, row)
        for key in keys[:row]:
            self.predict(key)
            self.keys[same_key(key)] = key

    def copied(self) -> Any:
        """The filter in memory."""
        return sound(self.made)

    def add_by_threads(self) -> None:
        """Many Python threads at once; all keys are in after that."""
        parts = [self.next_rows(200)[0] for _ in range(4)]
        known = set(self.keys)
        answers: dict[int, list[bool]] = {}

        def work(part: int) -> None:
            answers[part] = self.made.add_many(parts[part]).tolist()

        workers = [threading.Thread(target=work, args=(part,)) for part in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for part, keys in enumerate(parts):
            for key, new in zip(keys, answers[part], strict=True):
                self.holds(not (new and same_key(key) in known), CERTAIN, key)
                self.holds(key in self.made, NO_LOSS, key)
        for keys in parts:
            for key in keys:
                self.predict(key)
                self.keys[same_key(key)] = key

    def use_wrongly(self) -> None:
        self.done += 1
        for key in self.bad_keys():
            self.refused(lambda key=key: self.made.add(key), KeyTypeError, NullKeyError)  # type: ignore[misc]
            self.refused(lambda key=key: key in self.made, KeyTypeError, NullKeyError)  # type: ignore[misc]
        for batch in ("text", b"bytes", 7, None):
            self.refused(lambda batch=batch: self.made.add_many(batch))  # type: ignore[misc]
        self.refused(lambda: self.made.add_many(["a"], threads=0))
        self.refused(lambda: self.made.add_many(["a"], nulls="no"))

    def clear(self) -> None:
        self.done += 1
        self.made.clear()
        self.keys.clear()
        self.holds(self.copied() == self.make_plain(), "clear forgets every key")
        self.asked_absent, self.expected_wrong, self.wrong = 0, 0.0, 0

    def make_plain(self) -> Any:
        """An empty filter of the same parameters."""
        return self.make()

    def compare(self) -> None:
        self.made.validate()
        before = sound(self.made).stats()
        known = self.some(list(self.keys.values()), 2000)
        self.holds(self.made.contains_many(known, threads=self.threads()).all(), NO_LOSS)
        for key in known[:50]:
            self.holds(key in self.made, NO_LOSS, key)
        asked = self.absent(1500)
        found = self.made.contains_many(self.form(asked)).tolist()
        self.compare_absent(asked, found)
        wrong, rate = sum(found), before.predicted_error
        self.asked_absent += len(asked)
        self.expected_wrong += rate * len(asked)
        self.wrong += wrong
        self.compare_stats(self.made.stats(), before)

    def compare_absent(self, asked: list[Key], found: list[bool]) -> None:
        """What is said of absent keys."""

    def compare_stats(self, stats: Any, before: Any) -> None:
        """What `stats()` tells."""
        self.holds(stats.as_dict() == before.as_dict(), "a question changes nothing")


class BloomTrial(SeenTrial):
    """`BloomFilter`, in memory or in a shared file."""

    structure = "BloomFilter"

    def __init__(self, *arguments: Any) -> None:
        self.bits: set[int] = set()
        self.known_bits: dict[bytes | int, list[int]] = {}
        self.words: dict[str, Any] = {}
        super().__init__(*arguments)

    def make(self) -> Any:
        if not self.words:
            capacity = int(self.draw.choice([50, 2000, 40_000]))
            rate = float(self.draw.choice([0.2, 0.01, 1e-3, 1e-5]))
            sizes = {"bits": capacity * 8 + 1, "hashes": int(self.draw.integers(1, 20))}
            kinds: list[dict[str, Any]] = [
                {},
                {"layout": "blocked"},
                {"layout": "classic"},
                {"paper": {"derivation": "double"}, "layout": "classic"},
                {"paper": {"derivation": "slices"}, "layout": "classic"},
                {"hash": "keyed", "secret": b"0123456789abcdef"},
                {"seed": 77},
            ]
            self.words = kinds[int(self.draw.integers(len(kinds)))]
            if self.draw.random() < 0.2:
                self.words = sizes
            else:
                self.words = {"capacity": capacity, "error_rate": rate, **self.words}
        return BloomFilter(**self.words)

    def positions(self, key: Key) -> list[int]:
        same = same_key(key)
        found = self.known_bits.get(same)
        if found is None:
            found = sound(self.made).positions(key)
            self.known_bits[same] = found
        return found

    def predict(self, key: Key) -> bool:
        places = self.positions(key)
        seen = self.bits.issuperset(places)
        self.bits.update(places)
        return seen

    def verbs(self) -> dict[Verb, float]:
        return {
            self.add_one: 4, self.add_batch: 4, self.add_with_nulls: 1,
            self.add_with_a_bad_key: 1, self.add_by_threads: 0.5, self.use_wrongly: 0.2,
            self.restore: 1, self.merge: 0.7, self.intersect: 0.3, self.clear: 0.4,
        }  # fmt: skip

    def clear(self) -> None:
        self.bits.clear()
        super().clear()

    def kept(self, after: Any, before: Any) -> Any:
        if before.path is not None:
            return after
        return super().kept(after, before)

    def merge(self) -> None:
        other, both = self.make(), self.copied().copy()
        keys = self.next_rows(500)[0]
        other.add_many(keys)
        both.add_many(keys)
        left = sound(self.made).copy()
        how = int(self.draw.integers(3))
        if how == 0:
            self.made.merge(other)
        elif how == 1:
            self.made |= other
        else:
            united = left | other
            self.holds(united == both and left == self.copied(), SAME_FILTER)
            self.made.merge(other)
        self.holds(self.copied() == both, SAME_FILTER)
        for key in keys:
            self.predict(key)
            self.keys[same_key(key)] = key
        wrong = BloomFilter(**self.words | self.other_hash())
        self.refused(lambda: self.made.merge(wrong), IncompatibleError)

    def other_hash(self) -> dict[str, Any]:
        """What makes a filter of other cells."""
        return {"secret": b"another secret.."} if "secret" in self.words else {"seed": 12345}

    def intersect(self) -> None:
        other = self.make()
        new = self.next_rows(300)[0]
        keys = self.some(list(self.keys.values()), 500)
        other.add_many(keys + new)
        common = self.copied() & other
        held = common.contains_many([*keys, *(k for k in new if same_key(k) in self.keys)])
        self.holds(held.all(), "an intersection holds every key that is in both")
        self.made &= other
        self.holds(self.copied() == common, "`a &= b` is `a & b`")
        theirs = set[int]()
        for key in keys + new:
            theirs.update(self.positions(key))
        self.bits &= theirs
        in_other = {same_key(key) for key in keys + new}
        self.keys = {same: key for same, key in self.keys.items() if same in in_other}
        self.asked_absent, self.expected_wrong, self.wrong = 0, 0.0, 0

    def compare_absent(self, asked: list[Key], found: list[bool]) -> None:
        for key, said in zip(asked, found, strict=True):
            must = self.bits.issuperset(sound(self.made).positions(key))
            self.holds(said == must, "a key is seen if all of its bits are set", key, said)

    def compare_stats(self, stats: Any, before: Any) -> None:
        super().compare_stats(stats, before)
        size = stats.cells
        self.holds(
            abs(stats.fill - len(self.bits) / size) < 1e-12,
            "`fill` is the share of bits set",
            stats.fill,
            len(self.bits) / size,
        )
        if 0 < self.expected_wrong < self.asked_absent:
            mean = self.expected_wrong / self.asked_absent
            # A given size may have small divisors; the page calls its formula coarse there.
            if "bits" in self.words:
                pass
            else:
                self.not_more_wrong(self.asked_absent, self.wrong, mean, RATE)
                if self.made.layout == "blocked":
                    self.rate_of_wrong(self.asked_absent, self.wrong, mean, RATE)
        if self.made.layout == "classic" and stats.fill < 1:
            items = -(size / stats.hashes) * math.log1p(-stats.fill)
            self.holds(math.isclose(stats.items, items, rel_tol=1e-9, abs_tol=1e-9),
                       "`items` is n = -(m/k) ln(1 - s)", stats.items, items)  # fmt: skip
        self.holds(self.made.estimated_items() == stats.items, "estimated_items() is stats().items")
        words = {n: w for n, w in self.words.items() if n not in ("hash", "seed", "secret")}
        plan = BloomFilter.plan(**words)
        if plan.error_rate and len(self.keys) <= (plan.capacity or 0):
            # With one seed in a thousand it may be more than 1.02 times.
            self.holds(stats.predicted_error <= 1.1 * plan.error_rate, "a filter keeps its error "
                       "rate up to its capacity", stats.predicted_error)  # fmt: skip
        self.holds(stats.bytes == plan.bytes, "`plan` tells the memory", stats.bytes, plan.bytes)


class MappedTrial(BloomTrial):
    """`BloomFilter.open`: a file that several openers share."""

    structure = "BloomFilter, mapped"

    def make(self) -> Any:
        plain = super().make()
        self.path = self.folder / f"mapped-{self.seed}"
        if self.path.exists():
            return plain
        return BloomFilter.open(self.path, mode="c", **self.words)

    def make_plain(self) -> Any:
        return BloomFilter(**self.words)

    def copied(self) -> Any:
        return sound(self.made).copy()

    def verbs(self) -> dict[Verb, float]:
        verbs = super().verbs()
        del verbs[self.restore]
        return verbs | {self.reopen: 1, self.ask_another_opener: 1}

    def reopen(self) -> None:
        """Closed it is an ordinary file; opened again it goes on."""
        self.done += 1
        before = self.copied()
        if self.draw.random() < 0.5:
            self.made.flush()
        self.made.close()
        self.holds(BloomFilter.load(self.path) == before, "a file that was closed can be loaded")
        if self.draw.random() < 0.3:
            before.save(self.path)
        self.made = self.plant(BloomFilter.open(self.path, mode="r+"))
        self.holds(self.copied() == before, "a file that `save` wrote can be opened")

    def ask_another_opener(self) -> None:
        keys = self.next_rows(50)[0]
        with BloomFilter.open(self.path, mode="r") as reader:
            for key in keys:
                self.expect(key, self.made.add(key))
                self.holds(key in reader, "what one adds, all others see at once", key)
            self.refusal(lambda: reader.add("x"), ReadOnlyError)
            wrong = self.words | self.other_hash()
            self.refusal(lambda: BloomFilter.open(self.path, **wrong), IncompatibleError)
        with BloomFilter.open(self.path, mode="r+") as writer:
            more = self.next_rows(50)[0]
            for key, new in zip(more, writer.add_many(more).tolist(), strict=True):
                self.expect(key, new)
                self.holds(key in self.made, "what one adds, all others see at once", key)


class ScalableTrial(SeenTrial):
    """`ScalableBloomFilter`: few keys in the first layer, so that there are many."""

    structure = "ScalableBloomFilter"

    def __init__(self, *arguments: Any) -> None:
        self.words: dict[str, Any] = {}
        self.new = 0
        super().__init__(*arguments)

    def make(self) -> Any:
        if not self.words:
            self.words = {
                "capacity": int(self.draw.choice([64, 1024, 20_000])),
                "error_rate": float(self.draw.choice([0.05, 0.01, 1e-3])),
                "growth": float(self.draw.choice([1.0, 2.0, 8.0, 32.0])),
                "tightening": float(self.draw.choice([0.5, 0.85])),
                "seed": int(self.draw.integers(1000)),
            }
            if self.words["growth"] == 1.0:
                self.words["capacity"] = 20_000
        return ScalableBloomFilter(**self.words)

    def predict(self, key: Key) -> bool | None:
        return None

    def expect(self, key: Key, new: Any) -> None:
        self.new += bool(new)
        super().expect(key, new)

    def verbs(self) -> dict[Verb, float]:
        return {
            self.add_one: 4, self.add_batch: 4, self.add_with_nulls: 1,
            self.use_wrongly: 0.2, self.restore: 1, self.clear: 0.02, self.add_in_order: 1,
            self.add_with_a_bad_key: 0.5,
        }  # fmt: skip

    def add_with_a_bad_key(self) -> None:
        super().add_with_a_bad_key()
        self.new = round(sound(self.made).estimated_items())

    def add_in_order(self) -> None:
        """A batch beside single calls on a copy."""
        twin, keys = sound(self.made).copy(), self.next_rows(300)[0]
        one_by_one = [twin.add(key) for key in keys]
        answers = self.made.add_many(self.form(keys), threads=self.threads()).tolist()
        self.holds(answers == one_by_one, IN_ORDER)
        self.holds(twin == sound(self.made), IN_ORDER)
        for key, new in zip(keys, answers, strict=True):
            self.expect(key, new)

    def clear(self) -> None:
        super().clear()
        self.new = 0

    def compare_stats(self, stats: Any, before: Any) -> None:
        super().compare_stats(stats, before)
        self.holds(
            self.made.estimated_items() == self.new,
            "estimated_items() is the number of keys that were called new",
            self.new,
        )
        # The promise is about the average over seeds; a small filter may be beside it.
        if self.words["capacity"] >= 1024:
            self.holds(stats.predicted_error <= 1.15 * self.words["error_rate"],
                       "the error rate stays under the target however many keys there are",
                       stats.predicted_error)  # fmt: skip
        total = sum(layer.predicted_error for layer in stats.layers)
        self.holds(math.isclose(stats.predicted_error, total, rel_tol=1e-9),
                   "predicted_error is the sum of the layers' errors", total)  # fmt: skip
        self.not_more_wrong(
            self.asked_absent, self.wrong, self.expected_wrong / max(self.asked_absent, 1), RATE
        )
        room = sum(layer.capacity for layer in stats.layers[:-1])
        self.holds(self.new >= room, "the next layer is opened when one took as many new keys as "
                   "it was made for", self.new, room)  # fmt: skip
